//! Whether a node can serve now, as load balancers and probes ask it.
//!
//! Readiness says where to send clients, and nothing else follows from it. A disk without room is therefore
//! no reason: the leader refuses what grows, by whichever node it comes, and every node still answers the
//! rest.

use std::time::Duration;

use tokio::time::timeout;

use crate::gateway::{Consistency, Gateway};

/// How long a probe waits for a read; probes themselves give up after a second by default.
const READ_PATIENCE: Duration = Duration::from_millis(500);
/// A disk that takes longer than this for one flush does not answer. Slower than any election, so that a
/// leader with such a disk has given up by then.
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// A word: `leader`, `read`, `disk`.
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
        let read = match timeout(READ_PATIENCE, self.read(Consistency::Linearizable, |_| ())).await {
            Ok(Ok(())) => None,
            Ok(Err(outage)) => Some(outage.to_string()),
            Err(_) => Some(format!("the cluster did not answer within {} ms", READ_PATIENCE.as_millis())),
        };
        let status = self.status();
        // Whoever could be read from knows a leader, whatever this node has heard of it since.
        let leader = (status.leader.is_none() && read.is_some())
            .then(|| format!("no leader is known in term {}", status.term));
        let disk = self
            .measures()
            .flush
            .under_way
            .filter(|took| *took >= FLUSH_PATIENCE)
            .map(|took| format!("the disk has not answered for {:.1} s", took.as_secs_f64()));
        let check = |name, trouble| Check { name, trouble };
        Readiness { checks: vec![check("leader", leader), check("read", read), check("disk", disk)] }
    }
}

#[cfg(test)]
mod tests {
    use tripod_raft::{FlushTimes, Measures};

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
        let began = tokio::time::Instant::now();
        let readiness = gateway.readiness().await;
        assert!(began.elapsed() <= READ_PATIENCE + Duration::from_millis(10), "{:?}", began.elapsed());
        assert_eq!(troubled(&readiness), ["leader", "read"]);
        assert_eq!(readiness.trouble(), Some("no leader is known in term 1"));
        backend.elect();
        assert!(gateway.readiness().await.is_ready());
    }

    #[tokio::test]
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

    #[tokio::test]
    async fn a_node_that_stops_is_not_ready() {
        let (gateway, backend) = Gateway::in_memory();
        backend.stop();
        assert!(!gateway.readiness().await.is_ready());
    }
}
