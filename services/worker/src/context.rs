//! What a running task can do: submit other tasks, and read and write objects. It runs on a thread of its own, so
//! its calls block.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;

use crate::ObjectId;
use crate::error::{CallError, GetError};
use crate::process::{Process, PutError};
use crate::reference::ObjectRef;
use crate::task::Task;

/// A running task's view of the cluster.
pub struct Context {
    process: Process,
    runtime: Handle,
}

impl Context {
    pub(crate) fn new(process: &Process) -> Self {
        Self { process: process.within_task(), runtime: Handle::current() }
    }

    /// Submits a task. An attempt of this task that is repeated gets the same results for the same calls.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn submit(&self, task: &Task) -> Result<Vec<ObjectRef>, CallError> {
        self.runtime.block_on(self.process.submit(task))
    }

    /// Writes a value as an object.
    ///
    /// # Errors
    /// [`PutError`].
    pub fn put<T: Serialize + ?Sized>(&self, value: &T) -> Result<ObjectRef, PutError> {
        self.runtime.block_on(self.process.put(value))
    }

    /// The value of an object, once there is one.
    ///
    /// # Errors
    /// [`GetError`].
    pub fn get<T: DeserializeOwned>(&self, object: &ObjectRef) -> Result<T, GetError> {
        self.runtime.block_on(self.process.get(object))
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
        self.runtime.block_on(self.process.wait(objects, at_least, timeout))
    }

    /// A reference to an object whose id was inside of an argument.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn adopt(&self, object: ObjectId) -> Result<ObjectRef, CallError> {
        self.runtime.block_on(self.process.adopt(object))
    }
}
