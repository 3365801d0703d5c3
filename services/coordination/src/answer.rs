//! What the state machine answered, taken apart: the half of encoding in which dialects do not
//! differ. An answer that the asked command never gives is a defect of ours, not the caller's.

use bytes::Bytes;
use tonic::Status;
use tripod_state::ids::{BarrierCounter, Incarnation, ServiceIncarnation, TaskId};
use tripod_state::{Answer, task};

/// An empty message, for everything that only succeeds.
pub(crate) fn done<T: Default>(answer: Answer) -> Result<T, Status> {
    match answer {
        Answer::Done | Answer::Deleted { .. } | Answer::Value { .. } => Ok(T::default()),
        other => Err(unexpected(&other)),
    }
}

pub(crate) fn service(answer: Answer) -> Result<ServiceIncarnation, Status> {
    match answer {
        Answer::Registered { service } => Ok(service),
        other => Err(unexpected(&other)),
    }
}

pub(crate) fn value(answer: Answer) -> Result<Bytes, Status> {
    match answer {
        Answer::Value { value, .. } => Ok(value),
        other => Err(unexpected(&other)),
    }
}

pub(crate) fn counter(answer: Answer) -> Result<BarrierCounter, Status> {
    match answer {
        Answer::BarrierPassed { counter } => Ok(counter),
        other => Err(unexpected(&other)),
    }
}

pub(crate) fn alive(answer: Answer) -> Result<Vec<(TaskId, Incarnation)>, Status> {
    match answer {
        Answer::Alive(tasks) => Ok(tasks),
        other => Err(unexpected(&other)),
    }
}

pub(crate) fn report(answer: Answer) -> Result<task::Report, Status> {
    match answer {
        Answer::Tasks(report) => Ok(report),
        other => Err(unexpected(&other)),
    }
}

pub(crate) fn devices(answer: Answer) -> Result<(ServiceIncarnation, Vec<Bytes>), Status> {
    match answer {
        Answer::Devices { service, devices } => Ok((service, devices)),
        other => Err(unexpected(&other)),
    }
}

pub(crate) fn unexpected(answer: &Answer) -> Status {
    tracing::error!(?answer, "unexpected answer from the state machine");
    Status::internal("unexpected answer from the state machine")
}
