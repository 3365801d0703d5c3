//! What a task says, and what it is answered, over dialect N.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use tonic::Status;
use tripod_proto::xla::coordination::{
    BarrierRequest, BarrierResponse, HeartbeatRequest, HeartbeatResponse, Incarnations, RegisterTaskRequest,
    RegisterTaskResponse, ShutdownTaskRequest,
};

const REGISTER: &str = "/xla.coordination.CoordinationService/RegisterTask";
const HEARTBEAT: &str = "/xla.coordination.CoordinationService/Heartbeat";
const BARRIER: &str = "/xla.coordination.CoordinationService/Barrier";
const SHUT_DOWN: &str = "/xla.coordination.CoordinationService/ShutdownTask";
/// How long a barrier may take: longer than whoever measures waits.
const BARRIER_TIMEOUT: Duration = Duration::from_secs(3600);

/// What all tasks of a job do together: each waits for all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Register,
    /// By its name.
    Barrier(&'static str),
    Leave,
}

/// One run of a task's process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Life {
    pub(super) task: i32,
    pub(super) incarnation: u64,
}

/// A call: its path and its message.
pub(super) type Call = (&'static str, Bytes);

impl Life {
    /// The call that makes a step. `service` is what the registration was answered, 0 before it.
    pub(super) fn step(self, step: Step, service: u64) -> Call {
        let Self { task, incarnation } = self;
        match step {
            Step::Register => call(REGISTER, &RegisterTaskRequest { incarnation, source_task_id: task }),
            Step::Barrier(name) => {
                let request = BarrierRequest {
                    incarnations: Some(self.incarnations(service)),
                    barrier_id: name.to_owned(),
                    barrier_timeout_in_ms: i64::try_from(BARRIER_TIMEOUT.as_millis()).unwrap_or(i64::MAX),
                    // An empty list means every task.
                    task_ids: Vec::new(),
                    source_task_id: task,
                    counter: 0,
                };
                call(BARRIER, &request)
            }
            Step::Leave => {
                let incarnations = Some(self.incarnations(service));
                call(SHUT_DOWN, &ShutdownTaskRequest { incarnations, source_task_id: task })
            }
        }
    }

    pub(super) fn beat(self, service: u64) -> Call {
        let Self { task, incarnation } = self;
        let incarnations = Some(self.incarnations(service));
        call(HEARTBEAT, &HeartbeatRequest { incarnations, incarnation, source_task_id: task })
    }

    fn incarnations(self, service: u64) -> Incarnations {
        Incarnations { task_id: self.task, task_incarnation: self.incarnation, service_incarnation: service }
    }
}

/// The service's incarnation, from the answer to a registration.
///
/// # Errors
/// The bytes are no such answer.
pub(super) fn registered(answer: Bytes) -> Result<u64, Status> {
    Ok(read::<RegisterTaskResponse>(answer)?.service_incarnation)
}

/// Whether a barrier has let the task pass.
///
/// # Errors
/// Another instance of it has.
pub(super) fn passed(answer: Bytes) -> Result<(), Status> {
    match read::<BarrierResponse>(answer)?.counter {
        0 => Ok(()),
        other => Err(Status::data_loss(format!("instance {other} of the barrier answered for 0"))),
    }
}

/// Whether the service that the task has registered at has taken its heartbeat.
///
/// # Errors
/// Another one has.
pub(super) fn beaten(answer: Bytes, service: u64) -> Result<(), Status> {
    if read::<HeartbeatResponse>(answer)?.service_incarnation == service {
        return Ok(());
    }
    Err(Status::data_loss("another service incarnation answered"))
}

fn call(path: &'static str, message: &impl Message) -> Call {
    (path, message.encode_to_vec().into())
}

fn read<M: Message + Default>(answer: Bytes) -> Result<M, Status> {
    M::decode(answer).map_err(|error| Status::internal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Life = Life { task: 3, incarnation: 5 };

    #[test]
    fn a_task_says_which_life_of_it_speaks() {
        let (path, message) = LIFE.step(Step::Register, 0);
        assert_eq!(path, REGISTER);
        let told = RegisterTaskRequest::decode(message).unwrap();
        assert_eq!((told.source_task_id, told.incarnation), (3, 5));
        let (path, message) = LIFE.step(Step::Barrier("b"), 7);
        assert_eq!(path, BARRIER);
        let told = BarrierRequest::decode(message).unwrap();
        assert_eq!((told.barrier_id.as_str(), told.source_task_id, told.task_ids.len()), ("b", 3, 0));
        let said = told.incarnations.unwrap();
        assert_eq!((said.task_id, said.task_incarnation, said.service_incarnation), (3, 5, 7));
    }

    #[test]
    fn answers_of_others_are_none() {
        let barrier = |counter| BarrierResponse { counter }.encode_to_vec().into();
        assert!(passed(barrier(0)).is_ok());
        assert!(passed(barrier(1)).unwrap_err().message().contains("instance 1"));
        let beat = |service_incarnation| HeartbeatResponse { service_incarnation }.encode_to_vec().into();
        assert!(beaten(beat(7), 7).is_ok());
        assert!(beaten(beat(8), 7).is_err());
        assert!(registered(Bytes::from_static(b"\xff")).is_err());
    }
}
