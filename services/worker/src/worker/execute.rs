//! Executing tasks, one after the other, on a thread of its own: functions block as they like.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tripod_client::wire::RayRun;
use tripod_proto::ray::{ExecuteTaskRequest, Obj, Task, Value};

use crate::beat::Liveness;
use crate::caught::caught;
use crate::context::Context;
use crate::error::{CallError, GetError, Lost, TaskError};
use crate::failed;
use crate::function::{Output, Registered};
use crate::process::Process;
use crate::reference::reading;
use crate::reusable::Reusables;
use crate::store;
use crate::worker::inbox::{Inbox, Item, Ticket, run_of};

/// How long a task's arguments may take to come before it is given back: one of them may have to be made again, by a
/// task that waits behind it. Large ones go on coming meanwhile.
const ARGUMENT_WAIT: Duration = Duration::from_secs(1);

/// A task that was executed, and whose end is to be told.
pub(crate) struct Executed {
    pub(super) name: String,
    pub(super) task: Task,
    pub(super) run: Option<RayRun>,
    /// Whether the results are to be stored, by their places. None: all of them.
    pub(super) wanted: Vec<bool>,
    /// Somebody wanted it to end: the scheduler says what becomes of its results.
    pub(super) is_cancelled: bool,
    pub(super) outcome: Result<Vec<Output>, TaskError>,
}

/// A task that was given to this worker.
#[derive(Debug, Clone, Copy)]
struct Given {
    ticket: Ticket,
    /// Workers of another store may be able to execute it.
    elsewhere: bool,
}

/// What executes. A clone executes beside it, while a task waits.
#[derive(Clone)]
pub(crate) struct Executor {
    pub(super) functions: Arc<Vec<Registered>>,
    pub(crate) reusables: Arc<Reusables>,
    pub(crate) process: Process,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) runtime: Handle,
    pub(super) liveness: watch::Receiver<Liveness>,
    pub(super) executed: mpsc::UnboundedSender<Result<Executed, Lost>>,
}

impl Executor {
    /// Executes on a thread of its own. A function that never ends holds up nothing but its thread when the worker
    /// ends.
    pub(crate) fn start(self) {
        let executed = self.executed.clone();
        let work = move || {
            let executed = self.executed.clone();
            if let Err(lost) = self.run() {
                drop(executed.send(Err(lost)));
            }
        };
        if let Err(error) = std::thread::Builder::new().name("tripod-tasks".to_owned()).spawn(work) {
            let why = format!("there is no thread for tasks: {error}");
            drop(executed.send(Err(Lost { why: why.into() })));
        }
    }

    /// Executes what comes until the worker is told to end, or another thread does it.
    ///
    /// # Errors
    /// The scheduler does not know this worker any more.
    fn run(mut self) -> Result<(), Lost> {
        while let Some((ticket, item)) = self.inbox.next() {
            let request = match item {
                Item::Task(request) => request,
                Item::Variable(variable) => {
                    self.reusables.import(&variable);
                    self.inbox.ended(ticket);
                    continue;
                }
                Item::End => break,
            };
            self.heard()?;
            let run = run_of(&request);
            let ExecuteTaskRequest { task, store_output, elsewhere, .. } = *request;
            let task = task.unwrap_or_default();
            let name = String::from_utf8_lossy(&task.name).into_owned();
            let context = Context::new(&self, &name, (ticket, run));
            let outcome = match self.functions.iter().find(|function| function.name == name) {
                Some(function) => match self.call(function, &task, Given { ticket, elsewhere }, &context)? {
                    Some(outcome) => outcome,
                    None => continue,
                },
                None => Err(failed::exception(&name, format!("this worker has no function `{name}`"))),
            };
            let is_cancelled = context.is_cancelled();
            let uses = context.into_uses();
            if uses.is_empty() {
                self.inbox.ended(ticket);
            } else {
                self.inbox.keeps_up(ticket);
            }
            let executed = Executed { name, task, run, wanted: store_output, is_cancelled, outcome };
            let told = self.executed.send(Ok(executed));
            if !uses.is_empty() {
                // The report need not wait for that, but the next task must.
                uses.renew();
                self.inbox.ended(ticket);
            }
            if told.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Waits while nobody is heard: this worker may have been given up, and another one do its tasks already.
    fn heard(&mut self) -> Result<(), Lost> {
        if *self.liveness.borrow() != Liveness::Unheard {
            return Ok(());
        }
        let heard = self.liveness.wait_for(|liveness| *liveness != Liveness::Unheard);
        let ended = |_| Lost { why: "this worker's heartbeats have ended".into() };
        self.runtime.block_on(heard).map(drop).map_err(ended)
    }

    /// The results of the function, or why there are none. `None`: the task was given back.
    #[allow(clippy::type_complexity, reason = "lost, given back, and failed are three things")]
    fn call(
        &self,
        function: &Registered,
        task: &Task,
        given: Given,
        context: &Context,
    ) -> Result<Option<Result<Vec<Output>, TaskError>>, Lost> {
        let mut arguments = Vec::with_capacity(task.arg.len());
        for (place, argument) in task.arg.iter().enumerate() {
            let object = argument.id;
            let Some(argument) = self.argument(given, argument)? else { return Ok(None) };
            match argument {
                Ok(value) => match failed::read(&value) {
                    Some(error) => {
                        return Ok(Some(Err(failed::by_argument(&function.name, place, object, &error))));
                    }
                    None => arguments.push(value),
                },
                Err(error) => {
                    let text = format!("argument {place} of function {}: {error}", function.name);
                    return Ok(Some(Err(failed::exception(&function.name, text))));
                }
            }
        }
        let outputs = caught(|| reading(&self.process.outbox, || (function.body)(context, &arguments)));
        // One that has results would find that out when it writes why there are none.
        if let (Err(_), Some(text)) = (&outputs, context.store_gone()) {
            return Err(store::gone_for_thread(text));
        }
        let results = task.result.len();
        let outputs = outputs.and_then(|outputs| match outputs.len() {
            given if given == results => Ok(outputs),
            given => Err(format!(
                "function {} was declared with {results} return values and gave {given}",
                function.name
            )),
        });
        Ok(Some(outputs.map_err(|text| failed::exception(&function.name, text))))
    }

    /// The value of an argument, or why there is none. `None`: it does not come, or cannot, and the task was given back.
    #[allow(clippy::type_complexity, reason = "lost, given back, and failed are three things")]
    fn argument(&self, given: Given, argument: &Value) -> Result<Option<Result<Obj, String>>, Lost> {
        let id = match argument {
            Value { obj: Some(value), .. } => return Ok(Some(Ok(value.clone()))),
            Value { id, obj: None } => *id,
        };
        let got = self.runtime.block_on(async {
            let mut value = std::pin::pin!(self.process.value(id));
            match tokio::time::timeout(ARGUMENT_WAIT, &mut value).await {
                Ok(got) => Some(got),
                Err(_) if self.inbox.give_back_all(given.ticket) => None,
                Err(_) => Some(value.await),
            }
        });
        match got {
            None => Ok(None),
            Some(Ok(value)) => Ok(Some(Ok(value))),
            Some(Err(GetError::Call(CallError::Lost(lost)))) => Err(lost),
            Some(Err(GetError::Store { code, text, .. })) if store::is_gone(code) => {
                Err(store::gone_for_thread(&text))
            }
            Some(Err(GetError::Store { code, .. }))
                if given.elsewhere
                    && store::is_elsewhere(code)
                    && self.inbox.give_back_elsewhere(given.ticket) =>
            {
                Ok(None)
            }
            Some(Err(error)) => Ok(Some(Err(error.to_string()))),
        }
    }
}
