//! The coordination services of JAX and TensorFlow, in all dialects.

use crate::check::Check;
use crate::row::Row;
use crate::rpc::{
    TensorflowCoordinationService as T, TensorflowEagerService, TensorflowWorkerService,
    XlaCoordinationService as N, XlaDistributedRuntimeService as L,
};

/// What a task says of itself.
const ITSELF: Row = Row::of("- - - - j s - - -").itself(Check::OwnTask);
/// What is the job's.
const WITHIN_JOB: Row = Row::of("- - - - j j - - -");

pub(super) const fn xla(method: N) -> Row {
    match method {
        N::RegisterTask
        | N::Heartbeat
        | N::ShutdownTask
        | N::Barrier
        | N::CancelBarrier
        | N::PollForError
        | N::ReportErrorToService
        | N::GetAliveTasks => ITSELF,
        N::WatchTasks
        | N::InsertKeyValue
        | N::GetKeyValue
        | N::TryGetKeyValue
        | N::IncrementKeyValue
        | N::GetKeyValueDir
        | N::DeleteKeyValue => WITHIN_JOB,
    }
}

pub(super) const fn tensorflow(method: T) -> Row {
    match method {
        T::RegisterTask
        | T::Heartbeat
        | T::WaitForAllTasks
        | T::ShutdownTask
        | T::ResetTask
        | T::ReportErrorToService
        | T::ReportErrorToTask
        | T::Barrier
        | T::CancelBarrier
        | T::GetAliveTasks
        | T::PollForError => ITSELF,
        T::GetTaskState
        | T::WatchJobState
        | T::InsertKeyValue
        | T::GetKeyValue
        | T::TryGetKeyValue
        | T::IncrementKeyValue
        | T::GetKeyValueDir
        | T::DeleteKeyValue => WITHIN_JOB,
    }
}

pub(super) const fn runtime(method: L) -> Row {
    match method {
        L::Connect
        | L::EnumerateDevices
        | L::Heartbeat
        | L::Shutdown
        | L::KeyValueGet
        | L::KeyValueSet
        | L::WaitAtBarrier => ITSELF,
    }
}

pub(super) const fn worker(method: TensorflowWorkerService) -> Row {
    match method {
        TensorflowWorkerService::GetStatus => WITHIN_JOB,
    }
}

pub(super) const fn eager(method: TensorflowEagerService) -> Row {
    match method {
        TensorflowEagerService::CreateContext
        | TensorflowEagerService::UpdateContext
        | TensorflowEagerService::Enqueue
        | TensorflowEagerService::KeepAlive
        | TensorflowEagerService::CloseContext => WITHIN_JOB,
    }
}
