//! What goes to a client.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tripod_port::Account;

use super::ended::Ended;

/// How long a client may take over an answer.
pub(crate) const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Answers are counted until they are taken.
pub(crate) struct Outgoing<W> {
    writer: W,
    account: Account,
}

impl<W: AsyncWrite + Unpin> Outgoing<W> {
    pub(crate) fn new(writer: W, account: Account) -> Self {
        Self { writer, account }
    }

    pub(crate) async fn send(&mut self, frame: &Bytes) -> Result<(), Ended> {
        let _held = self.account.answer(frame.len() as u64)?;
        let written = tokio::time::timeout(ANSWER_TIME, async {
            self.writer.write_all(frame).await?;
            self.writer.flush().await
        });
        let late = Ended::Untaken { seconds: ANSWER_TIME.as_secs() };
        Ok(written.await.map_err(|_| late)??)
    }
}
