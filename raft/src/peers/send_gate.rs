//! What this node may send as a leader. Followers take any append, an empty one too, for a sign that
//! their leader lives; so one that cannot lead must not send them, or nobody else will be elected.

use tokio::sync::watch;

/// How much of a leader's messages goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flow {
    /// All of them.
    Open,
    /// Heartbeats, of which openraft itself pauses those that are too many, and no entries.
    Heartbeats,
    /// None.
    Shut,
}

/// The way out of a node, over all connections to its peers. Clones are the same gate.
#[derive(Debug, Clone)]
pub(crate) struct SendGate {
    flow: watch::Sender<Flow>,
}

impl SendGate {
    pub(crate) fn new() -> Self {
        Self { flow: watch::Sender::new(Flow::Open) }
    }

    pub(crate) fn set(&self, flow: Flow) {
        self.flow.send_if_modified(|current| {
            let changed = *current != flow;
            *current = flow;
            changed
        });
    }

    /// Whether heartbeats go out.
    pub(crate) fn passes_heartbeats(&self) -> bool {
        *self.flow.borrow() < Flow::Shut
    }

    /// Whether entries and snapshots go out.
    pub(crate) fn passes_entries(&self) -> bool {
        *self.flow.borrow() == Flow::Open
    }

    /// Resolves as soon as entries do not go out any more.
    pub(crate) fn closed_for_entries(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut flow = self.flow.subscribe();
        async move {
            // The sender is gone when the node is: nothing goes out then, either.
            let _ = flow.wait_for(|flow| *flow != Flow::Open).await;
        }
    }
}
