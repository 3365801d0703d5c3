//! Writing results and telling the ends of tasks, while the next ones run already.

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tripod_client::wire::{RayCall, RayRun, ray_call::Call};
use tripod_proto::ray::ready_for_new_task_request::PreviousTaskInfo;
use tripod_proto::ray::{AliasObjectIDsRequest, ReadyForNewTaskRequest, Task, Value};

use crate::error::{CallError, Lost};
use crate::failed;
use crate::function::Output;
use crate::outbox::{call, decrement};
use crate::process::{Process, PutError};
use crate::store;
use crate::value::ids_inside;
use crate::worker::execute::Executed;

/// Tells the ends of all tasks that were executed, until no more come.
///
/// # Errors
/// The scheduler does not know this worker any more.
pub(super) async fn run(
    process: &Process,
    mut executed: mpsc::UnboundedReceiver<Result<Executed, Lost>>,
) -> Result<(), Lost> {
    let mut writing = JoinSet::new();
    loop {
        tokio::select! {
            next = executed.recv() => match next {
                // Whoever said what became of a task may be given the next one: each is told as soon as it can be.
                Some(executed) => drop(writing.spawn(finish(process.clone(), executed?))),
                None => break,
            },
            Some(finished) = writing.join_next() => finished.map_err(ended)??,
        }
    }
    while let Some(finished) = writing.join_next().await {
        finished.map_err(ended)??;
    }
    Ok(())
}

#[allow(clippy::needless_pass_by_value, reason = "it is used as a function")]
fn ended(error: tokio::task::JoinError) -> Lost {
    Lost { why: format!("the end of a task could not be told: {error}").into() }
}

/// Writes the results of one task, or why there are none, and tells its end.
async fn finish(process: Process, executed: Executed) -> Result<(), Lost> {
    let Executed { name, task, run, wanted, is_cancelled, outcome } = executed;
    let wanted = |place: usize| !is_cancelled && wanted.get(place).copied().unwrap_or(true);
    let outcome = if is_cancelled {
        Err(failed::exception(&name, "the task was cancelled".to_owned()))
    } else {
        outcome
    };
    let mut calls = Vec::new();
    let mut outcome = match outcome {
        Ok(outputs) => write(&process, &task, outputs, run, &wanted, &mut calls)
            .await?
            .map_err(|text| failed::exception(&name, text)),
        Err(error) => Err(error),
    };
    if let Err(error) = &mut outcome {
        let object = failed::write(error);
        calls.clear();
        for (place, result) in task.result.iter().enumerate().filter(|(place, _)| wanted(*place)) {
            match lost(process.write(*result, &object, run).await).await? {
                Ok(_) => calls.extend(run.map(|run| process.ready(*result, run))),
                Err(unwritten) => {
                    error.text = format!("{}; result {place} could not be written: {unwritten}", error.text);
                }
            }
        }
    }
    calls.push(decrement_all(&task));
    calls.retain(|call| !matches!(&call.call, Some(Call::Decrement(none)) if none.objectid.is_empty()));
    let previous = PreviousTaskInfo {
        task_succeeded: outcome.is_ok(),
        error_message: outcome.err().map(|error| error.text).unwrap_or_default().into_bytes().into(),
    };
    let idle = ReadyForNewTaskRequest { workerid: process.id, previous_task_info: Some(previous) };
    calls.push(RayCall { run, ..call(Call::Idle(idle)) });
    // Nothing need wait until this end is known; that this worker is lost, it will be told too.
    process.outbox.tell(calls);
    Ok(())
}

/// The references that a task brings along, which are its worker's when it has begun: one for each occurrence of an
/// object in its arguments, and one for each result.
fn decrement_all(task: &Task) -> RayCall {
    let arguments = task.arg.iter().flat_map(|argument| match argument {
        Value { id, obj: None } => vec![*id],
        Value { obj: Some(value), .. } => ids_inside(value),
    });
    decrement(arguments.chain(task.result.iter().copied()).collect())
}

/// Writes the results, as far as they are wanted. Calls that must come before the end of the task are added.
async fn write(
    process: &Process,
    task: &Task,
    outputs: Vec<Output>,
    run: Option<RayRun>,
    wanted: &impl Fn(usize) -> bool,
    calls: &mut Vec<RayCall>,
) -> Result<Result<(), String>, Lost> {
    for (place, (result, output)) in task.result.iter().zip(outputs).enumerate() {
        let (value, inside) = match output {
            Output::Value(value) => (value, Vec::new()),
            Output::Containing(value, inside) => (value, inside),
            Output::Object(object) => {
                let alias = AliasObjectIDsRequest { alias_objectid: *result, target_objectid: object.id().0 };
                calls.push(RayCall { run, ..call(Call::Alias(alias)) });
                // It must be referred to until the two are tied; the drop of this one comes after.
                process.outbox.tell(std::mem::take(calls));
                drop(object);
                continue;
            }
        };
        if wanted(place) {
            if let Err(error) = lost(process.write(*result, &value, run).await).await? {
                return Ok(Err(format!("result {place}: {error}")));
            }
            calls.extend(run.map(|run| process.ready(*result, run)));
        }
        // The object has references of its own by now.
        drop(inside);
    }
    Ok(Ok(()))
}

/// Takes the loss of this worker apart from what is the task's own trouble.
async fn lost<T>(written: Result<T, PutError>) -> Result<Result<T, PutError>, Lost> {
    match written {
        Err(PutError::Store { code, text, .. }) if store::is_gone(code) => Err(store::gone(&text).await),
        Err(PutError::Call(CallError::Lost(lost))) => Err(lost),
        written => Ok(written),
    }
}
