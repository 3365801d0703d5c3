//! A driver: submits tasks and reads what comes of them.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::AbortHandle;
use tripod_client::Offers;

use crate::ObjectId;
use crate::beat;
use crate::config::Config;
use crate::error::{CallError, GetError};
use crate::outbox::leave;
use crate::process::{BeginError, Process, PutError};
use crate::reference::ObjectRef;
use crate::reusable::ExportError;
use crate::task::Task;

/// A process that submits tasks. While it lives, its references keep objects; it says so by heartbeats.
pub struct Driver {
    process: Process,
    beats: AbortHandle,
}

impl Driver {
    /// Begins as a driver.
    ///
    /// # Errors
    /// [`BeginError`].
    pub async fn begin(config: &Config) -> Result<Self, BeginError> {
        let (process, _) = Process::begin(config, None, Offers::default()).await?;
        let beats = tokio::spawn(beat::of_driver(process.clone())).abort_handle();
        Ok(Self { process, beats })
    }

    /// Submits a task; answers with references to its results. Many can be under way at a time.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn submit(&self, task: &Task) -> Result<Vec<ObjectRef>, CallError> {
        self.process.submit(task).await
    }

    /// Ends the task that is to make an object: one that waits at once, one that runs with its worker's process unless
    /// it ends within `grace`, which may be ten minutes at most. Whoever asks for what it was to make is told that it was
    /// cancelled; tasks that it has submitted stay. Whether there was something to end: what is over stays as it is.
    /// Needs feature level 10.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn cancel(&self, object: &ObjectRef, grace: Duration) -> Result<bool, CallError> {
        self.process.cancel(object, grace).await
    }

    /// Writes a value as an object.
    ///
    /// # Errors
    /// [`PutError`].
    pub async fn put<T: Serialize + ?Sized>(&self, value: &T) -> Result<ObjectRef, PutError> {
        self.process.put(value).await
    }

    /// The value of an object, once there is one.
    ///
    /// # Errors
    /// [`GetError`].
    pub async fn get<T: DeserializeOwned>(&self, object: &ObjectRef) -> Result<T, GetError> {
        self.process.get(object).await
    }

    /// [`Self::get`] that waits no longer than `timeout`.
    ///
    /// # Errors
    /// [`GetError`].
    pub async fn get_within<T: DeserializeOwned>(
        &self,
        object: &ObjectRef,
        timeout: Duration,
    ) -> Result<T, GetError> {
        let waited_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let late = |_| GetError::TimedOut { object: object.id().0, waited_ms };
        tokio::time::timeout(timeout, self.get(object)).await.map_err(late)?
    }

    /// For each of the objects, whether it can be had or never will, as soon as `at_least` are decided (0: all), or
    /// time is up.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn wait(
        &self,
        objects: &[ObjectRef],
        at_least: usize,
        timeout: Duration,
    ) -> Result<Vec<bool>, CallError> {
        self.process.wait(objects, at_least, timeout).await
    }

    /// A reference to an object whose id was inside of a value that is still referred to.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn adopt(&self, object: ObjectId) -> Result<ObjectRef, CallError> {
        self.process.adopt(object).await
    }

    /// Exports the value of a reusable variable. Every worker that declares the variable as exported
    /// ([`crate::Reusable::exported`]) has the value ahead of the tasks that are submitted when this has returned, also a
    /// worker that comes later. Of several exports of a name the last counts, and from feature level 4 on the cluster keeps
    /// no other one. Every worker is sent it, so a value that is large and that few tasks need is better put, and given to
    /// them as an argument.
    ///
    /// # Errors
    /// [`ExportError`].
    pub async fn export<T: Serialize + ?Sized>(&self, name: &str, value: &T) -> Result<(), ExportError> {
        self.process.export(name, value).await
    }

    /// The driver's id.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.process.id
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.beats.abort();
        // Its references go with it; if this is not heard, by its silence.
        self.process.outbox.tell(vec![leave(self.process.id)]);
    }
}
