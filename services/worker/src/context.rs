//! What a running task can do: submit other tasks, and read and write objects. It runs on a thread of its own, so
//! its calls block.

use std::future::Future;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tonic::Code;
use tripod_client::wire::RayRun;

use crate::ObjectId;
use crate::error::{CallError, GetError};
use crate::process::{Process, PutError};
use crate::reference::ObjectRef;
use crate::reusable::{ReusableError, ReusableGuard, Uses};
use crate::store;
use crate::task::Task;
use crate::worker::{Executor, Ticket};

/// A running task's view of the cluster.
pub struct Context {
    process: Process,
    executor: Executor,
    ticket: Ticket,
    /// What the object store of this machine said when it was found to be gone. Whatever becomes of the task then is
    /// not its own fault.
    store_gone: OnceLock<String>,
    uses: Uses,
    /// When the task is to end, if somebody wants it to.
    end_by: watch::Receiver<Option<Instant>>,
}

/// How long a task may wait before its worker begins another one.
const WAIT_SHORT: Duration = Duration::from_millis(5);

impl Context {
    pub(crate) fn new(executor: &Executor, function: &str, (ticket, run): (Ticket, Option<RayRun>)) -> Self {
        Self {
            process: executor.process.within_task(function, run),
            executor: executor.clone(),
            ticket,
            store_gone: OnceLock::new(),
            uses: Uses::of(&executor.reusables),
            end_by: executor.inbox.end_of(ticket),
        }
    }

    /// The reusable variables that the task has used.
    pub(crate) fn into_uses(self) -> Uses {
        self.uses
    }

    /// What the store said, if a call of the task found it to be gone.
    pub(crate) fn store_gone(&self) -> Option<&str> {
        self.store_gone.get().map(String::as_str)
    }

    fn note_store(&self, code: Code, text: &str) {
        if store::is_gone(code) {
            self.store_gone.get_or_init(|| text.to_owned());
        }
    }

    /// Waits for something that others do, perhaps this worker itself.
    fn wait_for<T>(&self, what: impl Future<Output = T>) -> T {
        let Executor { inbox, runtime, .. } = &self.executor;
        runtime.block_on(async {
            let mut what = std::pin::pin!(what);
            if let Ok(come) = tokio::time::timeout(WAIT_SHORT, &mut what).await {
                return come;
            }
            if inbox.waits(self.ticket) {
                self.executor.clone().start();
            }
            let come = what.await;
            inbox.resumes(self.ticket);
            come
        })
    }

    /// Whether somebody wants the task to end. Whatever it gives then, its results are told to be cancelled; and if it does
    /// not return within the time that it was given, its worker ends, and with that whatever else it does.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.end_by.borrow().is_some()
    }

    /// Resolves when somebody wants the task to end.
    pub async fn cancelled(&self) {
        let mut end_by = self.end_by.clone();
        if end_by.wait_for(Option::is_some).await.is_err() {
            // The task has ended, and nobody can want it any more.
            std::future::pending::<()>().await;
        }
    }

    /// Waits for so long, but not when somebody wants the task to end; whether somebody does.
    #[must_use]
    pub fn cancelled_within(&self, time: Duration) -> bool {
        // The clock is the runtime's.
        self.executor.runtime.block_on(async { tokio::time::timeout(time, self.cancelled()).await.is_ok() })
    }

    /// Submits a task. An attempt of this task that is repeated gets the same results for the same calls.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn submit(&self, task: &Task) -> Result<Vec<ObjectRef>, CallError> {
        self.executor.runtime.block_on(self.process.submit(task))
    }

    /// Writes a value as an object. An attempt of this task that is repeated gets the object of its first one, whose
    /// value stays; if it would have written another value, the worker's log says so.
    ///
    /// # Errors
    /// [`PutError`].
    pub fn put<T: Serialize + ?Sized>(&self, value: &T) -> Result<ObjectRef, PutError> {
        let put = self.executor.runtime.block_on(self.process.put(value));
        if let Err(PutError::Store { code, text, .. }) = &put {
            self.note_store(*code, text);
        }
        put
    }

    /// The value of an object, once there is one.
    ///
    /// # Errors
    /// [`GetError`].
    pub fn get<T: DeserializeOwned>(&self, object: &ObjectRef) -> Result<T, GetError> {
        let got = self.wait_for(async {
            tokio::select! {
                biased;
                () = self.cancelled() => Err(GetError::Call(cancelled())),
                got = self.process.get(object) => got,
            }
        });
        if let Err(GetError::Store { code, text, .. }) = &got {
            self.note_store(*code, text);
        }
        got
    }

    /// As [`crate::Driver::wait`].
    ///
    /// # Errors
    /// [`CallError`].
    pub fn wait(
        &self,
        objects: &[ObjectRef],
        at_least: usize,
        timeout: Duration,
    ) -> Result<Vec<bool>, CallError> {
        self.wait_for(async {
            tokio::select! {
                biased;
                () = self.cancelled() => Err(cancelled()),
                decided = self.process.wait(objects, at_least, timeout) => decided,
            }
        })
    }

    /// A reusable variable that the worker declares ([`crate::Worker::reusable`]), as every task finds it. What this one
    /// changes nobody else sees: when the task has ended, the worker makes the variable anew.
    ///
    /// # Errors
    /// [`ReusableError`].
    pub fn reusable<T: Send + 'static>(&self, name: &str) -> Result<ReusableGuard<'_, T>, ReusableError> {
        self.uses.take(name)
    }

    /// A reference to an object whose id was inside of an argument.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn adopt(&self, object: ObjectId) -> Result<ObjectRef, CallError> {
        self.executor.runtime.block_on(self.process.adopt(object))
    }
}

/// What a task is told that waits and is to end.
fn cancelled() -> CallError {
    let text = "the task was cancelled, and waits for nothing any more".to_owned();
    CallError::Refused { code: Code::Cancelled, text, reason: "cancelled".to_owned() }
}
