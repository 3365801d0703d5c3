//! What the leader takes of other nodes: a command is read before it is appended, as whoever applies it will read it.
//!
//! A node of ours encodes what it has checked. Anybody else who reaches the peer port could have bytes committed that
//! nobody can read, and every node would stop at them.

use tripod_state::ids::LogIndex;
use tripod_state::{Envelope, State, level};

use crate::apply::state_machine::StateMachine;
use crate::base::codec;
use crate::base::command::COMMAND_BYTES_MAX;
use crate::care::space::{Admission, Admitted};
use crate::lead::outcome::Outcome;

/// Reads proposals of other nodes.
pub(crate) struct Inspector {
    machine: StateMachine,
    admission: Admission,
}

impl Inspector {
    pub(crate) fn new(machine: StateMachine, admission: Admission) -> Self {
        Self { machine, admission }
    }

    /// A command of the first feature level: it passes no other check.
    ///
    /// # Errors
    /// The outcome; nothing is to be appended.
    pub(crate) fn first(&self, payload: &[u8]) -> Result<Option<Admitted>, Outcome> {
        let (envelope, admitted) = self.newer(payload)?;
        let kind = envelope.command.kind();
        if kind.needs > level::FIRST {
            // It would be refused when it is applied, or stop who cannot apply it.
            return Err(refused(&format!(
                "{} needs feature level {} and was not sent so",
                kind.name, kind.needs
            )));
        }
        Ok(admitted)
    }

    /// A command of any level, which is the door's to check. The room that it has is kept until it was applied.
    ///
    /// # Errors
    /// The outcome; nothing is to be appended.
    pub(crate) fn newer(&self, payload: &[u8]) -> Result<(Envelope, Option<Admitted>), Outcome> {
        if payload.len() > COMMAND_BYTES_MAX {
            return Err(refused(&format!("it has {} bytes, more than {COMMAND_BYTES_MAX}", payload.len())));
        }
        let envelope: Envelope = codec::decode(payload).map_err(|error| refused(&error.to_string()))?;
        let tasks_of = |job| self.machine.read(|state: &State| state.tasks_of(job));
        if let Err(fault) = envelope.command.check_lists(&tasks_of) {
            return Err(Outcome::Applied(self.applied().0, Err(fault)));
        }
        let admitted = self.admission.admit(&self.machine, &envelope, payload.len());
        let admitted = admitted.map_err(|refusal| Outcome::from(Err(refusal)))?;
        Ok((envelope, admitted))
    }

    fn applied(&self) -> LogIndex {
        LogIndex(self.machine.applied_index())
    }
}

fn refused(problem: &str) -> Outcome {
    tracing::warn!(problem, "T3116 peer-nonsense: a command that a peer proposed is not appended");
    Outcome::NoLeader(format!("T3116 peer-nonsense: the command is not appended: {problem}"))
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::{BarrierCounter, FeatureLevel, NodeId, TaskId};
    use tripod_state::{Command, Fault, barrier, kv, level, member};

    use super::*;
    use crate::base::options::StateLimits;
    use crate::test_cluster::{Cluster, create_job, once};

    fn encoded(command: Command) -> Vec<u8> {
        codec::encode(&Envelope { stamp: None, command })
    }

    fn text<T: std::fmt::Debug>(refused: Result<T, Outcome>) -> String {
        match refused.unwrap_err() {
            Outcome::NoLeader(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn f4_only_what_everybody_can_read_and_apply_is_taken_of_other_nodes() {
        once(async || {
            let cluster = Cluster::start(1).await;
            cluster.leader().await;
            let scope = create_job(cluster.node(1)).await;
            let inspector = Inspector::new(
                cluster.node(1).node().machine().clone(),
                Admission::new(StateLimits::default()),
            );
            let delete = Command::Kv(kv::Command::Delete { scope, key: "k".into() });
            assert!(inspector.first(&encoded(delete)).is_ok());
            for garbage in [&b""[..], b"\xff\x00\xff\x00\xff", b"\x01\x00\x63"] {
                let told = text(inspector.first(garbage));
                assert!(told.contains("T3116 peer-nonsense") && told.contains("is not appended"), "{told}");
            }
            let nested = [&[1, 0][..], &[7].repeat(1_000_000)].concat();
            assert!(text(inspector.first(&nested)).contains("within each other"));
            assert!(text(inspector.first(&vec![1; COMMAND_BYTES_MAX + 1])).contains("more than"));
            // Whoever applies it would stop, as no build supports that level.
            let raise = level::Command::Raise { to: FeatureLevel(99), heard: vec![NodeId(1)] };
            assert!(text(inspector.first(&encoded(Command::Level(raise)))).contains("needs feature level 2"));
            let drain = member::Command::Drain { node: NodeId(1), drained: true };
            assert!(
                text(inspector.first(&encoded(Command::Member(drain.clone())))).contains("was not sent so")
            );
            assert!(inspector.newer(&encoded(Command::Member(drain))).is_ok());
            let arrive = Command::Barrier(barrier::Command::Arrive {
                scope,
                barrier: "b".into(),
                counter: BarrierCounter(0),
                timeout_ms: 1,
                tasks: vec![TaskId(0); 1_000_000],
                task: TaskId(0),
            });
            let refused = inspector.first(&encoded(arrive)).unwrap_err();
            assert!(matches!(refused, Outcome::Applied(_, Err(Fault::LimitExceeded { .. }))), "{refused:?}");
            cluster.stop().await;
        });
    }
}
