//! Whether a node can serve now, as load balancers and probes ask it.
//!
//! Readiness says where to send clients, and nothing else follows from it. A disk without room is therefore
//! no reason: the leader refuses what grows, by whichever node it comes, and every node still answers the
//! rest. That an operator has drained the node is one, although it answers whoever comes: agents and xDS are not
//! sent there either. As with these, it counts only while there is a node that is not drained.

use std::time::Duration;

use tokio::time::{Instant, timeout};
use tripod_state::ids::LogIndex;

use crate::gateway::{Consistency, Gateway};

/// How long a probe waits for a read; probes themselves give up after a second by default.
const READ_PATIENCE: Duration = Duration::from_millis(500);
/// A disk that takes longer than this for one flush does not answer. Slower than any election, so that a
/// leader with such a disk has given up by then.
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// A word: `leader`, `read`, `disk`, `drained`.
    pub name: &'static str,
    /// What is wrong with it, if anything.
    pub trouble: Option<String>,
}

/// What came of looking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    /// Always the same ones, in the same order.
    pub checks: Vec<Check>,
}

impl Readiness {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.checks.iter().all(|check| check.trouble.is_none())
    }

    /// What is wrong, the first of it: the rest mostly follows from that.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.checks.iter().find_map(|check| check.trouble.as_deref())
    }
}

impl Gateway {
    /// Looks whether this node can serve now. Takes half a second at most.
    pub async fn readiness(&self) -> Readiness {
        let (began, applied) = (Instant::now(), self.backend.applied_index());
        let read = match timeout(READ_PATIENCE, self.read(Consistency::Linearizable, |_| ())).await {
            Ok(Ok(())) => None,
            Ok(Err(outage)) => Some(outage.to_string()),
            Err(_) if self.is_busy_since(began, applied) => None,
            Err(_) => Some(format!("the cluster did not answer within {} ms", READ_PATIENCE.as_millis())),
        };
        let status = self.admin().status();
        // Whoever could be read from knows a leader, whatever this node has heard of it since.
        let leader = (status.leader.is_none() && read.is_some())
            .then(|| format!("no leader is known in term {}", status.term));
        let disk = self
            .admin()
            .measures()
            .flush
            .under_way
            .filter(|took| *took >= FLUSH_PATIENCE)
            .map(|took| format!("the disk has not answered for {:.1} s", took.as_secs_f64()));
        let node = status.node;
        let aside = self.read(Consistency::Local, |state| state.stands_aside(node)).await;
        let drained = aside.is_ok_and(|aside| aside).then(|| {
            format!("an operator wants clients to use other nodes; `tripod node undrain {node}` ends that")
        });
        let check = |name, trouble| Check { name, trouble };
        let checks =
            [check("leader", leader), check("read", read), check("disk", disk), check("drained", drained)];
        Readiness { checks: checks.into() }
    }

    /// Whether this node has been answered with a quorum and has applied something since then: a read waits behind what
    /// others want, as it does when all tasks of a large gang arrive at once. To send their clients away makes that worse.
    fn is_busy_since(&self, began: Instant, applied: LogIndex) -> bool {
        let is_answered = self.backend.last_contact().is_some_and(|answered| answered >= began);
        is_answered && self.backend.applied_index() > applied
    }
}

#[cfg(test)]
mod tests {
    use tripod_raft::{FlushTimes, Measures};
    use tripod_state::State;
    use tripod_state::ids::{NodeId, Term, TimeMs};
    use tripod_state::member::{self, Addresses, Listed};
    use tripod_state::{ApplyContext, Command, Envelope, level};

    use super::*;

    fn troubled(readiness: &Readiness) -> Vec<&'static str> {
        let troubled = readiness.checks.iter().filter(|check| check.trouble.is_some());
        troubled.map(|check| check.name).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_leader_a_node_is_not_ready_and_says_so_in_half_a_second() {
        let (gateway, backend) = Gateway::in_memory();
        assert!(gateway.readiness().await.is_ready());
        backend.depose();
        let began = Instant::now();
        let readiness = gateway.readiness().await;
        assert!(began.elapsed() <= READ_PATIENCE + Duration::from_millis(10), "{:?}", began.elapsed());
        assert_eq!(troubled(&readiness), ["leader", "read"]);
        assert_eq!(readiness.trouble(), Some("no leader is known in term 1"));
        backend.elect();
        assert!(gateway.readiness().await.is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn a_disk_that_does_not_answer_is_told_and_a_slow_one_is_not() {
        let (gateway, backend) = Gateway::in_memory();
        let flushing = |took| Measures {
            flush: FlushTimes { under_way: Some(took), ..FlushTimes::default() },
            ..Measures::default()
        };
        backend.set_measures(flushing(FLUSH_PATIENCE / 2));
        assert!(gateway.readiness().await.is_ready());
        backend.set_measures(flushing(FLUSH_PATIENCE * 4));
        let readiness = gateway.readiness().await;
        assert_eq!(troubled(&readiness), ["disk"]);
        assert_eq!(readiness.trouble(), Some("the disk has not answered for 4.0 s"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_drained_node_is_not_ready_as_long_as_another_one_serves() {
        let (gateway, backend) = Gateway::in_memory();
        backend.replace(members(&[(1, true), (2, false)]));
        let readiness = gateway.readiness().await;
        assert_eq!(troubled(&readiness), ["drained"]);
        assert!(readiness.trouble().is_some_and(|told| told.contains("tripod node undrain 1")));
        backend.replace(members(&[(1, true), (2, true)]));
        assert!(gateway.readiness().await.is_ready(), "clients have no other node");
        backend.replace(members(&[(1, false), (2, true)]));
        assert!(gateway.readiness().await.is_ready(), "another one is drained");
    }

    /// A state with these nodes, some of them drained.
    fn members(nodes: &[(u64, bool)]) -> State {
        let mut state = State::default();
        let listed =
            |&(node, _): &(u64, bool)| Listed { node: NodeId(node), peer: format!("p:{node}"), voter: true };
        state.follow_members(&nodes.iter().map(listed).collect::<Vec<_>>());
        let heard = nodes.iter().map(|(node, _)| NodeId(*node)).collect();
        let raise = Command::Level(level::Command::Raise { to: level::NEWEST, heard });
        let announce = |&(node, _): &(u64, bool)| member::Command::Announce {
            node: NodeId(node),
            addresses: Addresses {
                client: format!("c:{node}"),
                http: format!("h:{node}"),
                job_host: "c".into(),
                job_port_first: 1,
                job_port_count: 1,
            },
        };
        let drain = |&(node, drained): &(u64, bool)| member::Command::Drain { node: NodeId(node), drained };
        let of_members = nodes.iter().map(announce).chain(nodes.iter().map(drain)).map(Command::Member);
        for (command, index) in [raise].into_iter().chain(of_members).zip(1..) {
            let context = ApplyContext { index: LogIndex(index), term: Term(1), now_ms: TimeMs(0) };
            let envelope = Envelope { stamp: None, command };
            state.apply(&context, envelope).reply.expect("accepted");
        }
        state
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_stops_is_not_ready() {
        let (gateway, backend) = Gateway::in_memory();
        backend.stop();
        assert!(!gateway.readiness().await.is_ready());
    }
}
