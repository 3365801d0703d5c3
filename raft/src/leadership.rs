//! Who leads, as the rest of the process needs to know it.

use std::time::Duration;

use openraft::ServerState;
use openraft::async_runtime::WatchReceiver as _;
use tokio::sync::watch;
use tripod_state::ids::{NodeId, Term};

use crate::fitness::Unfit;
use crate::handle::Leadership;
use crate::measures::{ElectionCounts, ElectionTally};
use crate::types::{LogId, Raft, ServerMetrics, Vote};

/// How long calls that a leader has begun may still be answered after it gave up or was deposed.
const DEPOSED_GRACE: Duration = Duration::from_secs(1);

/// What the leadership follows from, besides openraft's metrics.
pub(crate) struct Sources {
    pub(crate) applied: watch::Receiver<Option<LogId>>,
    /// Why this node must not lead, if so.
    pub(crate) unfit: watch::Receiver<Option<Unfit>>,
    /// The leader whose appends come in, before its vote is durable here.
    pub(crate) heard: watch::Receiver<Option<Vote>>,
}

/// Reads the leadership of the cluster. Clones watch the same.
#[derive(Debug, Clone)]
pub(crate) struct LeadershipWatch {
    node: u64,
    current: watch::Receiver<Leadership>,
    elections: ElectionTally,
}

impl LeadershipWatch {
    /// Follows openraft's metrics and the state machine for as long as anybody listens.
    pub(crate) fn start(node: u64, raft: &Raft, sources: Sources) -> Self {
        let elections = ElectionTally::default();
        let unknown = Leadership { leader: None, term: Term(0), ready_here: false };
        let (sender, current) = watch::channel(unknown);
        tokio::spawn(follow(node, raft.clone(), sources, sender, elections.clone()));
        Self { node, current, elections }
    }

    pub(crate) fn node(&self) -> u64 {
        self.node
    }

    /// How often leaders came, as this node saw it.
    pub(crate) fn elections(&self) -> ElectionCounts {
        self.elections.counts()
    }

    pub(crate) fn get(&self) -> Leadership {
        *self.current.borrow()
    }

    pub(crate) fn leads_here(&self) -> bool {
        self.get().leader == Some(NodeId(self.node))
    }

    /// Resolves a while after this node has ceased to lead. Who waits for its engine or its disk until
    /// then may wait for ever.
    pub(crate) async fn deposed(&self) {
        let mut leadership = self.subscribe();
        let elsewhere = Some(NodeId(self.node));
        loop {
            // An error means that the node is stopping: it does not lead then, either.
            let _ = leadership.wait_for(|now| now.leader != elsewhere).await;
            tokio::time::sleep(DEPOSED_GRACE).await;
            if !self.leads_here() {
                return;
            }
        }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Leadership> {
        self.current.clone()
    }
}

async fn follow(
    node: u64,
    raft: Raft,
    mut sources: Sources,
    sender: watch::Sender<Leadership>,
    elections: ElectionTally,
) {
    let mut counted = Counted::default();
    // What is read must be what is waited on: openraft publishes its several metrics one after the
    // other, and a view read from another one may be older than the wake-up, with none to follow.
    let mut metrics = raft.server_metrics();
    loop {
        let next = {
            let metrics = metrics.borrow_and_update();
            counted.look(&metrics, &elections);
            leadership(node, &metrics, &mut sources)
        };
        counted.learn(next.leader, &elections);
        sender.send_if_modified(|current| {
            let changed = *current != next;
            *current = next;
            changed
        });
        // About to be ready: every applied entry may be the one.
        let awaits_apply = next.leader == Some(NodeId(node)) && !next.ready_here;
        let changed = tokio::select! {
            changed = metrics.changed() => changed.is_ok(),
            changed = sources.unfit.changed() => changed.is_ok(),
            changed = sources.heard.changed() => changed.is_ok(),
            changed = sources.applied.changed(), if awaits_apply => changed.is_ok(),
            () = sender.closed() => false,
        };
        if !changed {
            break;
        }
    }
    sender.send_modify(|current| {
        current.leader = None;
        current.ready_here = false;
    });
}

/// What has been counted of elections.
#[derive(Debug, Default)]
struct Counted {
    /// The term of the last election in which this node stood.
    stood: Option<u64>,
    leader: Option<NodeId>,
}

impl Counted {
    /// A candidate is one election for each term that it votes for itself in. Between two looks it may have won.
    fn look(&mut self, metrics: &ServerMetrics, elections: &ElectionTally) {
        let term = metrics.vote.leader_id.term;
        let stands = matches!(metrics.state, ServerState::Candidate | ServerState::Leader);
        if stands && self.stood != Some(term) {
            self.stood = Some(term);
            elections.stood();
        }
    }

    /// To lose a leader is no change; to find another than the last one is.
    fn learn(&mut self, leader: Option<NodeId>, elections: &ElectionTally) {
        if leader.is_some() && leader != self.leader {
            if self.leader.is_some() {
                elections.leader_changed();
            }
            self.leader = leader;
        }
    }
}

fn leadership(node: u64, metrics: &ServerMetrics, sources: &mut Sources) -> Leadership {
    let applied = *sources.applied.borrow_and_update();
    let unfit = *sources.unfit.borrow_and_update();
    let heard = *sources.heard.borrow_and_update();
    let known = by_metrics(node, metrics, applied);
    match heard {
        // Nobody follows this node any more, whatever its engine has made of that.
        // One that is no member yet, as this node knows, could not be called.
        Some(vote) if vote.leader_id.node_id != node && vote > metrics.vote && is_member(metrics, &vote) => {
            Leadership {
                leader: Some(NodeId(vote.leader_id.node_id)),
                term: Term(vote.leader_id.term),
                ready_here: false,
            }
        }
        _ if unfit.is_some() && known.leader == Some(NodeId(node)) => {
            Leadership { leader: None, ready_here: false, ..known }
        }
        _ => known,
    }
}

fn is_member(metrics: &ServerMetrics, vote: &Vote) -> bool {
    metrics.membership_config.membership().get_node(&vote.leader_id.node_id).is_some()
}

/// What openraft's view amounts to. The first entry of a leader's term is its own blank one, so a
/// leader whose last applied entry is of its own term has applied all of earlier terms.
fn by_metrics(node: u64, metrics: &ServerMetrics, applied: Option<LogId>) -> Leadership {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_leader_than_the_last_one_is_a_change_and_the_first_one_is_none() {
        let (mut counted, elections) = (Counted::default(), ElectionTally::default());
        for leader in [None, Some(1), None, Some(1), Some(2), Some(2), None, Some(1)] {
            counted.learn(leader.map(NodeId), &elections);
        }
        assert_eq!(elections.counts(), ElectionCounts { stood: 0, leader_changes: 2 });
    }
}
