//! Messages of dialect L to commands of the domain.

use bytes::Bytes;
use tonic::Status;
use tripod_proto::xla as pb;
use tripod_state::ids::{ClientId, DurationMs, Incarnation, ServiceIncarnation, TaskId};
use tripod_state::runtime::{BarrierId, Call, Command, INCARNATION, Patience, Refusal};
use tripod_state::{Fault, Scope};

use super::topology::Topology;
use super::waiting_call::{Begin, Over, WaitingCall};
use crate::caller::Caller;

/// The only version of the protocol that was ever released.
const PROTOCOL_VERSION: i32 = 3;

/// What a connect must agree on before anything else is looked at.
pub(super) fn check_version(request: &pb::ConnectRequest) -> Result<(), Status> {
    match request.protocol_version {
        PROTOCOL_VERSION => Ok(()),
        other => Err(Status::invalid_argument(format!("Invalid protocol version {other}"))),
    }
}

pub(super) fn connect(caller: Caller, request: &pb::ConnectRequest, _: Patience) -> WaitingCall {
    let scope = Scope { job: caller.job, service: None };
    let (task, client) = (TaskId(request.node_id), ClientId(request.client_id));
    let waited_ms = i64::from(request.timeout_milliseconds);
    WaitingCall {
        begin: Begin::Command(Command::Connect { scope, task, client }),
        patience_ms: waited_ms,
        over: Over::Command(Command::Withdraw { scope, task, client, waited_ms }),
        task: Some(task),
    }
}

/// Waits as long as the job lets its tasks register.
pub(super) fn enumerate(
    session: u64,
    caller: Caller,
    topology: &Topology,
    patience: Patience,
) -> WaitingCall {
    let (scope, waited_ms) = (scope(caller, session), signed(patience.enumerate));
    let (task, topology) = (TaskId(topology.node_id()), topology.bytes().clone());
    WaitingCall {
        begin: Begin::Command(Command::Enumerate { scope, task, topology }),
        patience_ms: waited_ms,
        over: Over::Fault(Fault::Runtime(Refusal::TimedOut { call: Call::Enumerate, waited_ms })),
        task: Some(task),
    }
}

pub(super) fn heartbeat(caller: Caller, request: &pb::HeartbeatRequest) -> (Scope, TaskId, Incarnation) {
    (scope(caller, request.session_id), TaskId(request.node_id), INCARNATION)
}

pub(super) fn shutdown(caller: Caller, request: &pb::ShutdownRequest, patience: Patience) -> WaitingCall {
    let (scope, waited_ms) = (scope(caller, request.session_id), signed(patience.shutdown));
    let task = TaskId(request.node_id);
    WaitingCall {
        begin: Begin::Command(Command::Shutdown { scope, task }),
        patience_ms: waited_ms,
        over: Over::Command(Command::GiveUpShutdown { scope, waited_ms }),
        // Clients leave it at zero; what their connection speaks for says whose it is.
        task: Some(task).filter(|task| task.0 != 0),
    }
}

pub(super) fn get(caller: Caller, request: &pb::KeyValueGetRequest, _: Patience) -> WaitingCall {
    let asked = String::from_utf8_lossy(&request.key).into_owned();
    WaitingCall {
        begin: Begin::Key(scope(caller, request.session_id), request.key.clone()),
        patience_ms: i64::from(request.timeout_milliseconds),
        over: Over::Fault(Fault::KeyMissing { asked }),
        // What its connection speaks for is added by whoever has the request.
        task: None,
    }
}

pub(super) fn set(caller: Caller, request: &pb::KeyValueSetRequest) -> tripod_state::Command {
    let (key, value): (Bytes, Bytes) = (request.key.clone(), request.value.clone());
    let scope = scope(caller, request.session_id);
    tripod_state::Command::Runtime(Command::Put { scope, key, value })
}

pub(super) fn barrier(caller: Caller, request: &pb::WaitAtBarrierRequest, _: Patience) -> WaitingCall {
    let (scope, barrier) = (scope(caller, request.session_id), BarrierId(request.barrier_id.clone()));
    let waited_ms = i64::from(request.timeout_milliseconds);
    let task = TaskId(request.node_id);
    WaitingCall {
        begin: Begin::Command(Command::Arrive { scope, barrier: barrier.clone(), task }),
        patience_ms: waited_ms,
        over: Over::Command(Command::GiveUp { scope, barrier, waited_ms }),
        task: Some(task),
    }
}

/// A session is what other dialects call the incarnation of the job's service.
fn scope(caller: Caller, session: u64) -> Scope {
    Scope { job: caller.job, service: Some(ServiceIncarnation(session)) }
}

fn signed(length: DurationMs) -> i64 {
    i64::try_from(length.0).unwrap_or(i64::MAX)
}
