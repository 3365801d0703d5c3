//! One task of a simulated worker, from its beginning to the report.

use std::time::Duration;

use rand::RngExt as _;
use tokio::time::{Instant, sleep_until, timeout_at};
use tripod_proto::ray as pb;
use tripod_proto::ray::ready_for_new_task_request::PreviousTaskInfo;
use tripod_proto::tripod::v1::ray_call::Call;
use tripod_proto::tripod::v1::{RayCall, RayRun};

use super::super::beat;
use super::super::calls::{Calls, Gone, call, decrement};
use super::super::function::{Output, Running, SLOW, holding, is_exported};
use super::super::mars;
use super::super::shelf::Refused;
use super::super::value::Value;
use super::Worker;
use super::inbox::run_of;
use crate::witness::now;

/// How long a task takes at most, in milliseconds: most of them, and the slow ones.
const TASK_MS_MAX: u64 = 120;
const SLOW_MS_MAX: u64 = 600;
/// How long an argument may take to come before the task is given back: it may have to be made again, by a task that
/// waits behind it.
const ARGUMENT_WAIT: Duration = Duration::from_secs(1);

/// Why a task is given back that was not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Back {
    /// An argument does not come.
    Late,
    /// An argument cannot come to this store, and workers of another one may be able to execute it.
    Elsewhere,
}

impl Back {
    fn counted(self) -> &'static str {
        match self {
            Self::Late => "tasks that were given back for an argument",
            Self::Elsewhere => "tasks that were given back for workers of another store",
        }
    }
}

/// An argument that stands in the task.
fn by_value(value: &pb::Obj) -> Value {
    if let Some(node) = &value.pyobj_data {
        return mars::chunk_of(&node.data);
    }
    let data = value.int_data.as_ref().map(|int| int.data).unwrap_or_default();
    Value::Number(data.cast_unsigned())
}

impl Worker<'_> {
    /// `version`: of the exported function that the task calls, as this worker has it now.
    pub(super) async fn execute(
        &self,
        mut calls: Calls,
        request: pb::ExecuteTaskRequest,
        version: Option<u64>,
    ) -> Result<(), Gone> {
        self.life.awake().await;
        beat::good(&mut self.good_until.clone()).await;
        let run = run_of(&request);
        let task = request.task.clone().unwrap_or_default();
        let arguments = match self.arguments(&task, request.elsewhere).await? {
            Ok(arguments) => arguments,
            Err(why) => {
                self.machine.witness.count(why.counted());
                return self.give_back(&mut calls, self.inbox.give_back_all(run), true).await;
            }
        };
        let name = String::from_utf8_lossy(&task.name).into_owned();
        let (id, RayRun { operationid, attempt }) = (self.id, run);
        let begun = format!("worker {id} begins {name}, task {operationid}.{attempt}");
        self.machine.witness.note(now(), "scheduler", format_args!("{begun}"));
        self.machine.witness.scheduled(|rule| rule.begun(operationid, attempt, id));
        if let (true, Some(Value::Number(needed))) = (is_exported(&name), arguments.get(1)) {
            self.machine.witness.scheduled(|rule| rule.knows(id, &name, version, *needed));
        }
        let most_ms = if name == SLOW { SLOW_MS_MAX } else { TASK_MS_MAX };
        let took = calls.client.dice.random_range(1..most_ms);
        tokio::time::sleep(Duration::from_millis(took)).await;
        self.life.awake().await;
        let outputs = Running::new(self, &mut calls, run).call(&name, &arguments).await?;
        self.life.awake().await;
        // Before its end is told: what is given back after that would be given back by an idle worker.
        self.inbox.ended(run);
        let report = self.results(&request, run, &outputs)?;
        self.machine.witness.scheduled(|rule| {
            rule.let_go(operationid);
            Ok(())
        });
        let told = calls.batch(report, &["aliased", "contained", "other-attempt", "deallocated"]).await?;
        let accepted = told.last().is_some_and(|result| result.code == 0);
        self.machine.witness.note(now(), "scheduler", format_args!("{begun} and ends it: {accepted}"));
        self.machine.witness.count("tasks that workers ended");
        Ok(())
    }

    async fn arguments(&self, task: &pb::Task, elsewhere: bool) -> Result<Result<Vec<Value>, Back>, Gone> {
        let mut arguments = Vec::new();
        for argument in &task.arg {
            arguments.push(match &argument.obj {
                None => match self.argument(argument.id, elsewhere).await? {
                    Ok(got) => got,
                    Err(why) => return Ok(Err(why)),
                },
                Some(value) => by_value(value),
            });
        }
        Ok(Ok(arguments))
    }

    async fn argument(&self, object: u64, elsewhere: bool) -> Result<Result<Value, Back>, Gone> {
        let late = Instant::now() + ARGUMENT_WAIT;
        match timeout_at(late, self.shelf.get(object)).await {
            Ok(Ok(Err(Refused))) if elsewhere => return Ok(Err(Back::Elsewhere)),
            // Where nobody else can execute it a worker would fail it. That its store has no such object is only for
            // a while here, and what a task makes must not depend on it.
            Ok(Ok(Err(Refused))) => sleep_until(late).await,
            Ok(got) => return Ok(got?.map_err(|Refused| Back::Late)),
            Err(_) => {}
        }
        Ok(Err(Back::Late))
    }

    /// Writes the results. What is to be told of them, and that the task has ended.
    fn results(
        &self,
        request: &pb::ExecuteTaskRequest,
        run: RayRun,
        outputs: &[Output],
    ) -> Result<Vec<RayCall>, Gone> {
        let task = request.task.clone().unwrap_or_default();
        let wanted = |place: usize| request.store_output.get(place).copied().unwrap_or(true);
        let mut calls = Vec::new();
        let mut failed = None;
        for (place, result) in task.result.iter().enumerate() {
            match outputs.get(place.min(outputs.len() - 1)) {
                Some(Output::Value(value)) => {
                    if let Value::Error { text, .. } = value {
                        failed = Some(text.clone());
                    }
                    if wanted(place) {
                        self.shelf.put(*result, value.clone(), Some(run))?;
                    }
                    if let Value::Holding(inner) = value {
                        calls.extend(if wanted(place) {
                            holding(*result, *inner)
                        } else {
                            vec![decrement(vec![*inner])]
                        });
                    }
                }
                Some(Output::Object(object)) => {
                    let alias =
                        pb::AliasObjectIDsRequest { alias_objectid: *result, target_objectid: *object };
                    calls.push(RayCall { run: Some(run), ..call(Call::Alias(alias)) });
                    calls.push(decrement(vec![*object]));
                }
                None => {}
            }
        }
        let by_reference = |argument: &pb::Value| argument.obj.is_none().then_some(argument.id);
        let held = task.arg.iter().filter_map(by_reference).chain(task.result.iter().copied());
        calls.push(decrement(held.collect()));
        let previous = PreviousTaskInfo {
            task_succeeded: failed.is_none(),
            error_message: failed.unwrap_or_default().into_bytes().into(),
        };
        let idle = pb::ReadyForNewTaskRequest { workerid: self.id, previous_task_info: Some(previous) };
        calls.push(RayCall { run: Some(run), ..call(Call::Idle(idle)) });
        Ok(calls)
    }
}
