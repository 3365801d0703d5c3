//! What the leader takes of other nodes: a command is read before it is appended, as whoever applies it will read it.
//!
//! A node of ours encodes what it has checked. Anybody else who reaches the peer port could have bytes committed that
//! nobody can read, and every node would stop at them.

use tripod_state::ids::{FeatureLevel, LogIndex};
use tripod_state::{Command, Envelope, State, level};

use crate::apply::state_machine::StateMachine;
use crate::base::codec;
use crate::base::command::COMMAND_BYTES_MAX;
use crate::base::error::ProposeError;
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

    /// A command whose sender says that it needs no more than `needs_max`. What needs more than the first level must
    /// have leave. The room that a command has is kept until it was applied.
    ///
    /// # Errors
    /// The outcome; nothing is to be appended.
    pub(crate) fn inspect(
        &self,
        payload: &[u8],
        needs_max: FeatureLevel,
        has_leave: impl FnOnce(&Command) -> Result<(), ProposeError>,
    ) -> Result<Option<Admitted>, Outcome> {
        if payload.len() > COMMAND_BYTES_MAX {
            return Err(refused(&format!("it has {} bytes, more than {COMMAND_BYTES_MAX}", payload.len())));
        }
        let envelope: Envelope = codec::decode(payload).map_err(|error| refused(&error.to_string()))?;
        let tasks_of = |job| self.machine.read(|state: &State| state.tasks_of(job));
        if let Err(fault) = envelope.command.check_lists(&tasks_of) {
            return Err(Outcome::Applied(self.applied().0, Err(fault)));
        }
        let kind = envelope.command.kind();
        if kind.needs > needs_max {
            // It would be refused when it is applied, or stop who cannot apply it.
            return Err(refused(&format!(
                "{} needs feature level {} and was not sent so",
                kind.name, kind.needs
            )));
        }
        if kind.needs > level::FIRST {
            has_leave(&envelope.command).map_err(|refusal| Outcome::from(Err(refusal)))?;
        }
        let admitted = self.admission.admit(&self.machine, &envelope, payload.len());
        admitted.map_err(|refusal| Outcome::from(Err(refusal)))
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
    use tripod_state::ids::{BarrierCounter, NodeId, TaskId};
    use tripod_state::{Fault, barrier, kv, member};

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
            let first = |payload: &[u8]| inspector.inspect(payload, level::FIRST, |_| Ok(()));
            let delete = Command::Kv(kv::Command::Delete { scope, key: "k".into() });
            assert!(first(&encoded(delete)).is_ok());
            for garbage in [&b""[..], b"\xff\x00\xff\x00\xff", b"\x01\x00\x63"] {
                let told = text(first(garbage));
                assert!(told.contains("T3116 peer-nonsense") && told.contains("is not appended"), "{told}");
            }
            let nested = [&[1, 0][..], &[7].repeat(1_000_000)].concat();
            assert!(text(first(&nested)).contains("within each other"));
            assert!(text(first(&vec![1; COMMAND_BYTES_MAX + 1])).contains("more than"));
            // Whoever applies it would stop, as no build supports that level.
            let raise = level::Command::Raise { to: FeatureLevel(99), heard: vec![NodeId(1)] };
            assert!(text(first(&encoded(Command::Level(raise)))).contains("needs feature level 2"));
            let drain = member::Command::Drain { node: NodeId(1), drained: true };
            assert!(text(first(&encoded(Command::Member(drain.clone())))).contains("was not sent so"));
            let drain = encoded(Command::Member(drain));
            assert!(inspector.inspect(&drain, level::NEWEST, |_| Ok(())).is_ok());
            let no_leave =
                inspector.inspect(&drain, level::NEWEST, |_| Err(ProposeError::Level("no".into())));
            assert!(matches!(no_leave, Err(Outcome::Level(_))), "{no_leave:?}");
            let arrive = Command::Barrier(barrier::Command::Arrive {
                scope,
                barrier: "b".into(),
                counter: BarrierCounter(0),
                timeout_ms: 1,
                tasks: vec![TaskId(0); 1_000_000],
                task: TaskId(0),
            });
            let refused = first(&encoded(arrive)).unwrap_err();
            assert!(matches!(refused, Outcome::Applied(_, Err(Fault::LimitExceeded { .. }))), "{refused:?}");
            cluster.stop().await;
        });
    }
}
