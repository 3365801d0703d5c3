//! A worker that is done with every task as soon as it has it.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tripod_client::wire::ray_call::Call;
use tripod_client::wire::{RayCall, RayRun};
use tripod_proto::ray::ready_for_new_task_request::PreviousTaskInfo;
use tripod_proto::ray::{
    DecrementRefCountRequest, ExecuteTaskRequest, ObjReadyRequest, ReadyForNewTaskRequest,
    RegisterFunctionRequest,
};

use super::FUNCTION;
use super::driver::Board;
use super::peer::{self, StoreObjects};
use super::process::Process;

/// Tasks whose ends are told in one batch.
const TOLD_MAX: usize = 256;

/// Begins a worker, which goes on until the run is over.
pub(super) async fn start(
    process: Process,
    address: &str,
    store: u64,
    held: &Arc<StoreObjects>,
    done: &Arc<Board>,
    parts: &mut JoinSet<()>,
) -> anyhow::Result<()> {
    let incoming = tripod_dial::listen(address).await;
    let incoming = incoming.with_context(|| format!("a worker cannot listen at {address}"))?;
    let (sender, tasks) = mpsc::unbounded_channel();
    peer::serve_worker(incoming, sender, parts);
    let function = RegisterFunctionRequest {
        workerid: process.id,
        fnname: FUNCTION.as_bytes().into(),
        num_return_vals: 1,
    };
    let idle = ReadyForNewTaskRequest { workerid: process.id, previous_task_info: None };
    process.call(vec![call(Call::Function(function)), call(Call::Idle(idle))]).await?;
    let (held, done) = (Arc::clone(held), Arc::clone(done));
    parts.spawn(async move {
        if let Err(error) = finish_all(&process, tasks, store, &held, &done).await {
            eprintln!("error: worker {}: {error:#}", process.id);
        }
    });
    Ok(())
}

async fn finish_all(
    process: &Process,
    mut tasks: mpsc::UnboundedReceiver<ExecuteTaskRequest>,
    store: u64,
    held: &StoreObjects,
    done: &Board,
) -> anyhow::Result<()> {
    let mut given = Vec::with_capacity(TOLD_MAX);
    // A new leader gives again what an earlier one has given.
    let mut seen = BTreeMap::new();
    while tasks.recv_many(&mut given, TOLD_MAX).await > 0 {
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for request in given.drain(..) {
            let (operationid, attempt) = (request.operationid.unwrap_or_default(), request.attempt);
            if seen.insert(operationid, attempt).is_some_and(|last| last >= attempt) {
                continue;
            }
            let run = Some(RayRun { operationid, attempt });
            let objects = request.task.unwrap_or_default().result;
            for object in &objects {
                held.add(*object);
                let ready = ObjReadyRequest { objectid: *object, objstoreid: store };
                calls.push(RayCall { run, ..call(Call::Ready(ready)) });
            }
            results.extend(&objects);
            calls.push(call(Call::Decrement(DecrementRefCountRequest { objectid: objects })));
            let previous = PreviousTaskInfo { task_succeeded: true, ..PreviousTaskInfo::default() };
            let idle = ReadyForNewTaskRequest { workerid: process.id, previous_task_info: Some(previous) };
            calls.push(RayCall { run, ..call(Call::Idle(idle)) });
        }
        while seen.len() > 100_000 {
            seen.pop_first();
        }
        if calls.is_empty() {
            continue;
        }
        let answered = process.call(calls).await?;
        if let Some(refused) = answered.iter().find(|result| result.code != 0) {
            anyhow::bail!("a call was refused: {}", refused.text);
        }
        done.note(&results);
    }
    Ok(())
}

pub(super) fn call(call: Call) -> RayCall {
    RayCall { call: Some(call), ..RayCall::default() }
}
