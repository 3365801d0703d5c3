//! Executing tasks, one after the other.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::watch;
use tripod_client::wire::{RayCall, RayRun, ray_call::Call};
use tripod_proto::ray::ready_for_new_task_request::PreviousTaskInfo;
use tripod_proto::ray::{
    AliasObjectIDsRequest, ExecuteTaskRequest, Obj, ReadyForNewTaskRequest, Task, Value,
};

use crate::beat::Standing;
use crate::context::Context;
use crate::error::{CallError, GetError, Lost, TaskError};
use crate::failed;
use crate::function::{Output, Registered};
use crate::outbox::{call, decrement};
use crate::process::{Process, PutError};
use crate::value::ids_inside;
use crate::worker::Tasks;
use crate::worker::inbox::Item;

/// Executes what comes until the worker is told to end.
///
/// # Errors
/// The scheduler does not know this worker any more.
pub(super) async fn run(
    functions: &[Registered],
    process: &Process,
    mut tasks: Tasks,
    running: &watch::Sender<Vec<RayRun>>,
    mut standing: watch::Receiver<Standing>,
) -> Result<(), Lost> {
    while let Some(Item::Task(request)) = tasks.recv().await {
        // Whoever is not heard may have been given up: another worker may do it already.
        if standing.wait_for(|standing| *standing != Standing::Unheard).await.is_err() {
            return Err(Lost { why: "this worker's heartbeats have ended".into() });
        }
        let run = run_of(&request);
        running.send_replace(run.into_iter().collect());
        execute(functions, process, *request, run).await?;
        running.send_replace(Vec::new());
    }
    Ok(())
}

fn run_of(request: &ExecuteTaskRequest) -> Option<RayRun> {
    request.operationid.map(|operationid| RayRun { operationid, attempt: request.attempt })
}

/// Executes one task, and tells what came of it.
async fn execute(
    functions: &[Registered],
    process: &Process,
    request: ExecuteTaskRequest,
    run: Option<RayRun>,
) -> Result<(), Lost> {
    let task = request.task.unwrap_or_default();
    let name = String::from_utf8_lossy(&task.name).into_owned();
    let wanted = |place: usize| request.store_output.get(place).copied().unwrap_or(true);
    let outcome = match functions.iter().find(|function| function.name == name) {
        Some(function) => call_function(function, process, &task).await?,
        None => Err(format!("this worker has no function `{name}`")),
    };
    let mut calls = Vec::new();
    let mut outcome = match outcome {
        Ok(outputs) => write(process, &task, outputs, run, &wanted, &mut calls).await?,
        Err(text) => Err(text),
    };
    if let Err(text) = outcome.clone() {
        let error = TaskError {
            reason: failed::EXCEPTION.to_owned(),
            function: name.clone(),
            text: text.clone(),
            history: Vec::new(),
        };
        let object = failed::write(&error);
        calls.clear();
        for (place, result) in task.result.iter().enumerate().filter(|(place, _)| wanted(*place)) {
            if let Err(error) = lost(process.write(*result, &object, run).await)? {
                outcome = Err(format!("{text}; result {place} could not be written: {error}"));
            }
        }
    }
    calls.push(decrement_all(&task));
    calls.retain(|call| !matches!(&call.call, Some(Call::Decrement(none)) if none.objectid.is_empty()));
    let previous = PreviousTaskInfo {
        task_succeeded: outcome.is_ok(),
        error_message: outcome.err().unwrap_or_default().into_bytes().into(),
    };
    let idle = ReadyForNewTaskRequest { workerid: process.id, previous_task_info: Some(previous) };
    calls.push(RayCall { run, ..call(Call::Idle(idle)) });
    // The next task need not wait until this one's end is known; that this worker is lost, it will be told too.
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

/// The results of the function, or why there are none.
async fn call_function(
    function: &Registered,
    process: &Process,
    task: &Task,
) -> Result<Result<Vec<Output>, String>, Lost> {
    let mut arguments = Vec::with_capacity(task.arg.len());
    for (place, argument) in task.arg.iter().enumerate() {
        match argument_of(process, argument).await? {
            Ok(value) => match failed::read(&value) {
                Some(TaskError { function: origin, text, .. }) => {
                    return Ok(Err(format!(
                        "argument {place} of function {} was produced by failed {origin}: {text}",
                        function.name
                    )));
                }
                None => arguments.push(value),
            },
            Err(error) => return Ok(Err(format!("argument {place} of function {}: {error}", function.name))),
        }
    }
    let (body, context) = (function.body.clone(), Context::new(process));
    let called = tokio::task::spawn_blocking(move || {
        catch_unwind(AssertUnwindSafe(|| body(&context, &arguments)))
            .unwrap_or_else(|panic| Err(format!("panicked: {}", words(panic.as_ref()))))
    });
    let outputs = match called.await {
        Ok(outputs) => outputs,
        Err(error) => Err(format!("it was ended: {error}")),
    };
    let results = task.result.len();
    Ok(outputs.and_then(|outputs| match outputs.len() {
        given if given == results => Ok(outputs),
        given => Err(format!(
            "function {} was declared with {results} return values and gave {given}",
            function.name
        )),
    }))
}

async fn argument_of(process: &Process, argument: &Value) -> Result<Result<Obj, String>, Lost> {
    match argument {
        Value { obj: Some(value), .. } => Ok(Ok(value.clone())),
        Value { id, obj: None } => match process.value(*id).await {
            Ok(value) => Ok(Ok(value)),
            Err(GetError::Call(CallError::Lost(lost))) => Err(lost),
            Err(error) => Ok(Err(error.to_string())),
        },
    }
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
        match output {
            Output::Value(value) if wanted(place) => {
                if let Err(error) = lost(process.write(*result, &value, run).await)? {
                    return Ok(Err(format!("result {place}: {error}")));
                }
            }
            Output::Value(_) => {}
            Output::Object(object) => {
                let alias = AliasObjectIDsRequest { alias_objectid: *result, target_objectid: object.id().0 };
                calls.push(RayCall { run, ..call(Call::Alias(alias)) });
                // It must be referred to until the two are tied; the drop of this one comes after.
                process.outbox.tell(std::mem::take(calls));
                drop(object);
            }
        }
    }
    Ok(Ok(()))
}

/// Takes the loss of this worker apart from what is the task's own trouble.
fn lost<T>(written: Result<T, PutError>) -> Result<Result<T, PutError>, Lost> {
    match written {
        Err(PutError::Call(CallError::Lost(lost))) => Err(lost),
        written => Ok(written),
    }
}

/// What a panic says.
fn words(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word")
}
