//! The one-way switch that says that this node cannot go on.

use std::sync::Arc;

use tokio::sync::watch;

/// Set once, by whatever part finds the node broken first; never cleared.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    reason: Arc<watch::Sender<Option<String>>>,
}

impl Failure {
    /// Nothing has failed yet.
    pub(crate) fn new() -> Self {
        Self { reason: Arc::new(watch::Sender::new(None)) }
    }

    /// Records the reason, unless an earlier one is known: the first is the cause, later ones follow.
    pub(crate) fn set(&self, reason: &str) {
        self.reason.send_if_modified(|current| {
            let first = current.is_none();
            if first {
                // Before anybody can know: who waits for it may end the process at once.
                tracing::error!(reason, "node failed");
                *current = Some(reason.to_owned());
            }
            first
        });
    }

    /// The reason, if the node has failed.
    pub(crate) fn get(&self) -> Option<String> {
        self.reason.borrow().clone()
    }

    /// Waits until the node fails.
    pub(crate) async fn wait(&self) -> String {
        let mut receiver = self.reason.subscribe();
        let reason = receiver.wait_for(Option::is_some).await;
        reason.expect("the sender is in self").clone().expect("waited for a reason")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_reason_stays() {
        let failure = Failure::new();
        assert_eq!(failure.get(), None);
        failure.set("first");
        failure.set("second");
        assert_eq!(failure.wait().await, "first");
    }
}
