//! One connection to a node.

use std::time::Duration;

use tokio::io::{AsyncWriteExt as _, ReadHalf, WriteHalf};

use super::answers::Answers;
use super::{Answer, Bytestream, Call, Failed};

/// How long a node may take over what it is sent, before it says anything.
const SEND_TIME: Duration = Duration::from_secs(10);
/// Answers that nobody waits for, until one that somebody does: some are late, and that many are none.
const UNASKED_MAX: u32 = 64;

/// By what an answer is told from others on the same connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestId(u64);

pub(crate) struct Connection {
    answers: Answers<ReadHalf<Box<dyn Bytestream>>>,
    writer: WriteHalf<Box<dyn Bytestream>>,
    asked: u64,
    unasked: u32,
}

impl Connection {
    pub(super) fn over(stream: Box<dyn Bytestream>) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self { answers: Answers::new(reader), writer, asked: 0, unasked: 0 }
    }

    /// Says something. After an error, or if the future is dropped, nothing can be said on this connection any more.
    ///
    /// # Errors
    /// [`Failed`].
    pub(crate) async fn send(&mut self, call: &Call) -> Result<RequestId, Failed> {
        self.asked += 1;
        let front = call.front(self.asked);
        let written = tokio::time::timeout(SEND_TIME, async {
            for part in [&front, &call.shared, &call.own] {
                self.writer.write_all(part).await?;
            }
            self.writer.flush().await
        });
        let untaken = Failed::Untaken { seconds: SEND_TIME.as_secs() };
        written.await.map_err(|_| untaken)??;
        Ok(RequestId(self.asked))
    }

    /// Waits for an answer. Others that come before it are late, and nobody's. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`Failed`]: the connection is of no use any more.
    pub(crate) async fn answer(&mut self, call: &Call, to: RequestId) -> Result<Answer, Failed> {
        loop {
            let answer = self.answers.next().await?;
            if answer.meta.request_id == to.0 && answer.meta.cmd == i32::from(call.command) {
                self.unasked = 0;
                return Ok(answer);
            }
            self.count_unasked()?;
        }
    }

    /// Reads what comes late while nothing is asked, until the node ends the connection or cannot be understood.
    pub(crate) async fn ended(&mut self) -> Failed {
        loop {
            if let Err(failed) = self.answers.next().await {
                return failed;
            }
            if let Err(failed) = self.count_unasked() {
                return failed;
            }
        }
    }

    fn count_unasked(&mut self) -> Result<(), Failed> {
        self.unasked += 1;
        if self.unasked > UNASKED_MAX {
            return Err(Failed::Unasked { count: self.unasked });
        }
        Ok(())
    }
}
