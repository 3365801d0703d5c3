//! Who leads, as the rest of the process needs to know it.

use std::time::Duration;

use openraft::ServerState;
use openraft::async_runtime::WatchReceiver as _;
use tokio::sync::watch;
use tokio::time::Instant;
use tripod_state::ids::{NodeId, Term};

use crate::apply::engine::{Raft, ServerMetrics};
use crate::base::types::{LogId, Vote};
use crate::lead::elections::{ElectionCounts, ElectionTally};
use crate::lead::leader_signs::Sign;

/// How long calls that a leader has begun may still be answered after it gave up or was deposed.
const DEPOSED_GRACE: Duration = Duration::from_secs(1);

/// Who leads, as this node knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leadership {
    pub leader: Option<NodeId>,
    pub term: Term,
    /// This node leads, and has applied everything of earlier terms.
    pub ready_here: bool,
}

/// Why a leader must not lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// Its disk has not answered for an election timeout.
    DiskStalled,
    /// No quorum has acknowledged anything that it sent within an election timeout.
    NoQuorum,
}

/// What the leadership follows from, besides openraft's metrics.
pub(crate) struct Sources {
    pub(crate) applied: watch::Receiver<Option<LogId>>,
    /// Why this node must not lead, if so.
    pub(crate) unfit: watch::Receiver<Option<Unfit>>,
    /// The leader whose appends come in, before its vote is durable here, and for how long that counts.
    pub(crate) heard: watch::Receiver<Option<Sign>>,
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

    /// Of a node that never hears of a leader.
    #[cfg(test)]
    pub(crate) fn without_leader(node: u64) -> Self {
        let unknown = Leadership { leader: None, term: Term(0), ready_here: false };
        Self { node, current: watch::channel(unknown).1, elections: ElectionTally::default() }
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
        let (next, until) = {
            let metrics = metrics.borrow_and_update();
            counted.look(&metrics, &elections);
            sources.look(node, &metrics)
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
            () = silence(until) => true,
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

/// Resolves when a leader has been silent for too long; for whoever needs no sign of life, never.
async fn silence(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

impl Sources {
    /// Who leads, and until when that holds if nothing more is heard; `None`: for as long as nothing changes.
    fn look(&mut self, node: u64, metrics: &ServerMetrics) -> (Leadership, Option<Instant>) {
        let applied = *self.applied.borrow_and_update();
        let fit = self.unfit.borrow_and_update().is_none();
        let heard = *self.heard.borrow_and_update();
        let members = metrics.membership_config.membership();
        let heard = heard.filter(|sign| {
            let leader = sign.vote.leader_id.node_id;
            // One that is no member, as this node knows, could not be called, whether it will be one or was one.
            leader != node && members.get_node(&leader).is_some()
        });
        let by_engine = by_metrics(node, metrics, applied);
        MetricsView { node: NodeId(node), vote: metrics.vote, by_engine, fit, heard }
            .leadership(Instant::now())
    }
}

/// What this node knows of who leads.
#[derive(Debug)]
struct MetricsView {
    node: NodeId,
    /// The newest vote that is durable here.
    vote: Vote,
    /// What the engine makes of that.
    by_engine: Leadership,
    /// Whether this node can lead, if it does.
    fit: bool,
    /// The last sign of life of another member.
    heard: Option<Sign>,
}

impl MetricsView {
    /// As [`Sources::look`] has it.
    fn leadership(&self, now: Instant) -> (Leadership, Option<Instant>) {
        let nobody = Leadership { leader: None, ready_here: false, ..self.by_engine };
        match self.heard {
            // Nobody follows this node any more, whatever its engine has made of that.
            Some(sign) if sign.vote > self.vote => {
                let leader = sign.vote.leader_id;
                let term = Term(leader.term);
                if sign.until > now {
                    let leader = Some(NodeId(leader.node_id));
                    return (Leadership { leader, term, ready_here: false }, Some(sign.until));
                }
                (Leadership { term, ..nobody }, None)
            }
            _ if self.by_engine.leader == Some(self.node) => {
                (if self.fit { self.by_engine } else { nobody }, None)
            }
            // The engine goes on naming a leader until another one is elected, which may never happen.
            Some(sign) if sign.vote == self.vote && sign.until > now => (self.by_engine, Some(sign.until)),
            _ => (nobody, None),
        }
    }
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
    use std::sync::Arc;

    use super::*;
    use crate::base::test_entries::id;

    const PATIENCE: Duration = Duration::from_millis(600);

    fn leads(leader: u64, term: u64) -> Leadership {
        Leadership { leader: Some(NodeId(leader)), term: Term(term), ready_here: false }
    }

    fn nobody(term: u64) -> Leadership {
        Leadership { leader: None, term: Term(term), ready_here: false }
    }

    /// Node 1, whose engine names node 2 in term 3.
    fn follows_2(heard: Option<Sign>) -> MetricsView {
        let (node, vote) = (NodeId(1), Vote::new_committed(3, 2));
        MetricsView { node, vote, by_engine: leads(2, 3), fit: true, heard }
    }

    fn sign(term: u64, node: u64, until: Instant) -> Option<Sign> {
        Some(Sign { vote: Vote::new_committed(term, node), until })
    }

    #[test]
    fn a_leader_is_named_for_as_long_as_it_is_heard() {
        let now = Instant::now();
        let until = now + PATIENCE;
        let heard = follows_2(sign(3, 2, until));
        assert_eq!(heard.leadership(now), (leads(2, 3), Some(until)));
        assert_eq!(heard.leadership(until), (nobody(3), None), "it is silent");
        assert_eq!(follows_2(None).leadership(now), (nobody(3), None), "this node has just started");
        let earlier = follows_2(sign(2, 3, until));
        assert_eq!(earlier.leadership(now), (nobody(3), None), "only one of earlier is heard");
    }

    #[test]
    fn who_is_heard_in_a_later_term_leads_whatever_the_engine_says_and_this_node_does_not() {
        let now = Instant::now();
        let until = now + PATIENCE;
        let newer = follows_2(sign(4, 3, until));
        assert_eq!(newer.leadership(now), (leads(3, 4), Some(until)));
        let (vote, by_engine) = (Vote::new_committed(3, 1), Leadership { ready_here: true, ..leads(1, 3) });
        let own = MetricsView { vote, by_engine, ..newer };
        assert_eq!(own.leadership(now), (leads(3, 4), Some(until)));
        assert_eq!(own.leadership(until), (nobody(4), None));
        let own = MetricsView { heard: sign(2, 3, until), ..own };
        assert_eq!(own.leadership(now), (by_engine, None));
        assert_eq!(MetricsView { fit: false, ..own }.leadership(now), (nobody(3), None));
    }

    #[test]
    fn a_leader_is_ready_when_it_has_applied_an_entry_of_its_own_term() {
        let metrics = ServerMetrics {
            id: 1,
            vote: Vote::new_committed(3, 1),
            state: ServerState::Leader,
            current_leader: Some(1),
            membership_config: Arc::default(),
            committed_membership_config: Arc::default(),
        };
        let ready = |applied| by_metrics(1, &metrics, applied).ready_here;
        assert!(!ready(None));
        assert!(!ready(Some(id(2, 9))), "more of earlier terms may be acknowledged");
        assert!(ready(Some(id(3, 10))));
    }

    #[test]
    fn another_leader_than_the_last_one_is_a_change_and_the_first_one_is_none() {
        let (mut counted, elections) = (Counted::default(), ElectionTally::default());
        for leader in [None, Some(1), None, Some(1), Some(2), Some(2), None, Some(1)] {
            counted.learn(leader.map(NodeId), &elections);
        }
        assert_eq!(elections.counts(), ElectionCounts { stood: 0, leader_changes: 2 });
    }
}
