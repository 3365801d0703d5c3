//! Who leads, as the rest of the process needs to know it.

use openraft::ServerState;
use openraft::async_runtime::WatchReceiver as _;
use tokio::sync::watch;
use tripod_state::ids::{NodeId, Term};

use crate::handle::Leadership;
use crate::types::{LogId, Raft, ServerMetrics};

/// Reads the leadership of the cluster. Clones watch the same.
#[derive(Debug, Clone)]
pub(crate) struct LeadershipWatch {
    node: u64,
    current: watch::Receiver<Leadership>,
}

impl LeadershipWatch {
    /// Follows openraft's metrics and the state machine for as long as anybody listens.
    pub(crate) fn start(node: u64, raft: &Raft, applied: watch::Receiver<Option<LogId>>) -> Self {
        let unknown = Leadership { leader: None, term: Term(0), ready_here: false };
        let (sender, current) = watch::channel(unknown);
        tokio::spawn(follow(node, raft.clone(), applied, sender));
        Self { node, current }
    }

    pub(crate) fn node(&self) -> u64 {
        self.node
    }

    pub(crate) fn get(&self) -> Leadership {
        *self.current.borrow()
    }

    pub(crate) fn leads_here(&self) -> bool {
        self.get().leader == Some(NodeId(self.node))
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Leadership> {
        self.current.clone()
    }
}

async fn follow(
    node: u64,
    raft: Raft,
    mut applied: watch::Receiver<Option<LogId>>,
    sender: watch::Sender<Leadership>,
) {
    // What is read must be what is waited on: openraft publishes its several metrics one after the
    // other, and a view read from another one may be older than the wake-up, with none to follow.
    let mut metrics = raft.server_metrics();
    loop {
        let next = leadership(node, &metrics.borrow_and_update(), *applied.borrow_and_update());
        sender.send_if_modified(|current| {
            let changed = *current != next;
            *current = next;
            changed
        });
        if next.leader == Some(NodeId(node)) && !next.ready_here {
            // About to be ready: every applied entry may be the one.
            tokio::select! {
                changed = metrics.changed() => if changed.is_err() { break },
                changed = applied.changed() => if changed.is_err() { break },
                () = sender.closed() => break,
            }
        } else {
            tokio::select! {
                changed = metrics.changed() => if changed.is_err() { break },
                () = sender.closed() => break,
            }
        }
    }
    sender.send_modify(|current| {
        current.leader = None;
        current.ready_here = false;
    });
}

/// What openraft's view amounts to. The first entry of a leader's term is its own blank one, so a
/// leader whose last applied entry is of its own term has applied all of earlier terms.
fn leadership(node: u64, metrics: &ServerMetrics, applied: Option<LogId>) -> Leadership {
    let term = metrics.vote.leader_id.term;
    let leads = metrics.state == ServerState::Leader;
    let leader = match metrics.current_leader {
        Some(leader) if leader == node && !leads => None,
        leader => leader,
    };
    let ready_here = leads
        && leader == Some(node)
        && applied.is_some_and(|id| id.leader_id.term == term && id.leader_id.node_id == node);
    Leadership { leader: leader.map(NodeId), term: Term(term), ready_here }
}
