//! How far a stream of appends runs ahead of the follower's answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::{Stream, StreamExt};
use tokio::sync::Semaphore;

/// Messages under way to one follower. While it writes one, another may already be with it; what
/// comes after that is gathered into the next. Without a bound every single entry, and every advance
/// of the commit, becomes a message of its own under load: more work for all nodes, and no sooner
/// done, as the follower flushes in groups.
const UNDER_WAY_MAX: usize = 2;

/// Counts the messages of one stream, and holds back the next while too many are unanswered.
#[derive(Debug)]
pub(super) struct Window {
    slots: Semaphore,
    owed: AtomicU64,
}

impl Window {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { slots: Semaphore::new(UNDER_WAY_MAX), owed: AtomicU64::new(0) })
    }

    /// Messages without an answer.
    pub(super) fn owed(&self) -> u64 {
        self.owed.load(Ordering::Relaxed)
    }

    /// Says that an answer came.
    pub(super) fn answered(&self) {
        self.owed.fetch_sub(1, Ordering::Relaxed);
        self.slots.add_permits(1);
    }

    /// The messages of `input`, each made only when it may be sent: openraft puts everything into it
    /// that has been appended until then. One that `may_wait` lets whatever is ready to run go first.
    pub(super) fn gate<S: Stream + Unpin>(
        self: Arc<Self>,
        input: S,
        may_wait: fn(&S::Item) -> bool,
    ) -> impl Stream<Item = S::Item> {
        futures::stream::unfold((input, self), move |(mut input, window)| async move {
            // An answer gives the slot back.
            window.slots.acquire().await.expect("the window is never closed").forget();
            let message = input.next().await?;
            if may_wait(&message) {
                tokio::task::yield_now().await;
            }
            window.owed.fetch_add(1, Ordering::Relaxed);
            Some((message, (input, window)))
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_message_beyond_the_window_is_made_when_an_answer_has_come() {
        let window = Window::new();
        let mut made = 0;
        let input = futures::stream::iter(0..5).inspect(|_| made += 1);
        let mut gated = Box::pin(window.clone().gate(input, |_| false));
        assert_eq!(gated.next().now_or_never(), Some(Some(0)));
        assert_eq!(gated.next().now_or_never(), Some(Some(1)));
        assert_eq!(gated.next().now_or_never(), None);
        assert_eq!(window.owed(), 2);

        window.answered();
        assert_eq!(gated.next().now_or_never(), Some(Some(2)));
        assert_eq!(gated.next().now_or_never(), None);
        assert_eq!(window.owed(), 2);
        drop(gated);
        assert_eq!(made, 3, "a message was taken before it could be sent");
    }

    #[test]
    fn the_end_of_the_input_is_the_end() {
        let window = Window::new();
        let mut gated = Box::pin(window.clone().gate(futures::stream::iter([1]), |_| false));
        assert_eq!(gated.next().now_or_never(), Some(Some(1)));
        assert_eq!(gated.next().now_or_never(), Some(None));
        assert_eq!(window.owed(), 1);
    }

    #[tokio::test]
    async fn what_may_wait_lets_others_go_first() {
        let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let window = Window::new();
        let mut gated = Box::pin(window.gate(futures::stream::iter([1, 2]), |message| *message == 2));
        let other = tokio::spawn({
            let order = order.clone();
            async move { order.lock().push("other") }
        });
        assert_eq!(gated.next().await, Some(1));
        order.lock().push("first");
        assert_eq!(gated.next().await, Some(2));
        order.lock().push("second");
        other.await.unwrap();
        assert_eq!(*order.lock(), ["first", "other", "second"]);
    }
}
