//! How many calls of one connection may not be cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};

use parking_lot::Mutex;

/// Counts the calls of a connection that must be answered in full before it may end. Every request
/// carries its connection's among its extensions.
#[derive(Debug, Clone, Default)]
pub struct Line {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    unfinished: AtomicUsize,
    /// Who waits for the last of them.
    waiting: Mutex<Option<Waker>>,
}

/// A call that may not be cut, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Unfinished {
    line: Line,
}

impl Line {
    /// Counts a call.
    pub(crate) fn enter(&self) -> Unfinished {
        self.shared.unfinished.fetch_add(1, Ordering::SeqCst);
        Unfinished { line: self.clone() }
    }

    /// Whether no call is counted. If one is, the task of `context` is woken after the last.
    pub(super) fn is_quiet(&self, context: &Context<'_>) -> bool {
        *self.shared.waiting.lock() = Some(context.waker().clone());
        self.shared.unfinished.load(Ordering::SeqCst) == 0
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let Shared { unfinished, waiting } = &*self.line.shared;
        if unfinished.fetch_sub(1, Ordering::SeqCst) == 1
            && let Some(waker) = waiting.lock().take()
        {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use super::*;

    #[tokio::test]
    async fn the_last_call_wakes_who_waits() {
        let line = Line::default();
        let calls = [line.enter(), line.enter()];
        let quiet = tokio::spawn(async move {
            poll_fn(|context| if line.is_quiet(context) { Poll::Ready(()) } else { Poll::Pending }).await;
        });
        for call in calls {
            tokio::task::yield_now().await;
            assert!(!quiet.is_finished());
            drop(call);
        }
        quiet.await.unwrap();
    }
}
