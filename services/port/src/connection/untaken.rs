//! Answers that a client does not take, as its connection sees it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;
use tripod_proto::code::Code;

use crate::bytes_held::{Account, CONNECTION_BYTES_FREE};

/// For so long answers may lie unread, if memory is short.
const UNREAD_TIME: Duration = Duration::from_secs(30);

/// Looks after what h2 has not been able to write.
pub(super) struct Untaken {
    account: Account,
    /// Set while more lies unread than every connection may have.
    period: Option<Pin<Box<Sleep>>>,
    /// h2 has written something since it had nothing more to write.
    is_written_since: bool,
}

impl Untaken {
    pub(super) fn of(account: Account) -> Self {
        Self { account, period: None, is_written_since: false }
    }

    /// Ready when answers have lain unread for too long.
    pub(super) fn poll_stalled(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.account.is_deaf() {
            tracing::debug!("a client does not read that its calls are refused: its connection ends");
            return Poll::Ready(());
        }
        if self.account.untaken() <= CONNECTION_BYTES_FREE {
            self.period = None;
            return Poll::Pending;
        }
        let account = &self.account;
        let period = self.period.get_or_insert_with(|| {
            // What was made before belongs to the period that ends now.
            let _ = account.next_period();
            Box::pin(tokio::time::sleep(UNREAD_TIME))
        });
        while period.as_mut().poll(context).is_ready() {
            let unread = self.account.next_period();
            if unread > CONNECTION_BYTES_FREE && self.account.budget().is_short() {
                let (seconds, code) = (UNREAD_TIME.as_secs(), Code::LeftUnfinished);
                tracing::warn!(
                    code = code.number(),
                    unread,
                    "{code}: a client read nothing of its answers for {seconds} s, and memory is short: its connection \
                     ends"
                );
                return Poll::Ready(());
            }
            period.set(tokio::time::sleep(UNREAD_TIME));
        }
        Poll::Pending
    }

    /// h2 has written something.
    pub(super) fn note_write(&mut self) {
        self.is_written_since = true;
    }

    /// The socket has taken what h2 has written. h2 may have more, unless it has written nothing since the last time.
    pub(super) fn note_flush(&mut self, context: &Context<'_>) {
        let is_all_written = !std::mem::take(&mut self.is_written_since);
        if !self.account.written(is_all_written) {
            context.waker().wake_by_ref();
        }
    }
}
