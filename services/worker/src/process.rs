//! A process that the scheduler knows: what workers and drivers have in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tripod_backoff::Backoff;
use tripod_client::wire::{RayCall, RayCancelRequest, RayResult, RayRun, RayWaitRequest, ray_call::Call};
use tripod_client::{Client, Offers, Registration, Scheduler};
use tripod_objstore::Teller;
use tripod_proto::ray::{
    AddContainedObjectIDsRequest, ExportReusableVariableRequest, IncrementRefCountRequest, Obj,
    ObjReadyRequest, PutObjRequest, RegisterWorkerReply, RequestObjRequest,
};

use crate::again::{self, Attempt};
use crate::config::Config;
use crate::error::{CallError, GetError, Lost, TaskError};
use crate::outbox::{self, Outbox, call, decrement};
use crate::reference::{ObjectRef, reading};
use crate::reusable::{self, ExportError};
use crate::store::Store;
use crate::task::Task;
use crate::value::{ValueError, from_obj, ids_inside, to_obj};
use crate::{ObjectId, failed};

/// A value that is in this machine's store by itself, since its worker is here too, needs no word to the scheduler.
/// After so long it is asked for: it may be elsewhere, or lost.
const REQUEST_AFTER: Duration = Duration::from_millis(3);
/// How long a process tries to reach the cluster before it gives up: longer than any election.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a function may be unknown after it was asked for; workers register theirs when they start.
const FUNCTION_PATIENCE: Duration = Duration::from_secs(60);
/// Between two attempts meanwhile.
const FUNCTION_BACKOFF: Backoff = Backoff::new(Duration::from_millis(20), Duration::from_millis(500));

/// A worker or driver. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) id: u64,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) outbox: Outbox,
    pub(crate) store: Store,
    /// The running task's next call that makes objects, so that another attempt of it gets the same ones.
    children: Option<Arc<AtomicU32>>,
    /// The task that runs, whose calls they are.
    run: Option<RayRun>,
    /// The name of its function.
    function: Arc<str>,
}

/// What became of a value that was to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Now,
    /// By an earlier attempt of the same task, whose worker died: it is that object.
    Before,
}

/// Why a process could not begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BeginError {
    #[error(transparent)]
    Cluster(#[from] tripod_client::Error),
    #[error(
        "the object store at {address} cannot be used: {text}; next: start one on this machine with `tripod objstore`"
    )]
    Store { address: String, text: String },
}

impl Process {
    /// Registers, and connects to the store that the scheduler names.
    pub(crate) async fn begin(
        config: &Config,
        slots: Option<u32>,
        offers: Offers,
    ) -> Result<(Self, RegisterWorkerReply), BeginError> {
        let client = Client::new(&tripod_client::Config::new(config.endpoints.clone()))?;
        let session = rand::random();
        let scheduler = Arc::new(Scheduler::new(client, &config.job, session, PATIENCE));
        let registration = Registration {
            host: config.host.clone(),
            store: config.store.clone(),
            is_driver: slots.is_none(),
            slots: slots.unwrap_or(1),
            offers,
            // A worker has time; whoever begins a program wants to know why it does not begin.
            level_patience: slots.is_none().then_some(PATIENCE),
        };
        let reply = scheduler.register_worker(&registration).await?;
        let id = reply.workerid;
        let unusable = |text| BeginError::Store { address: reply.objstore_address.clone(), text };
        let store = Store::connect(&reply.objstore_address, id).await.map_err(unusable)?;
        let outbox = Outbox::start(Arc::clone(&scheduler), id);
        let function = Arc::from("");
        Ok((Self { id, scheduler, outbox, store, children: None, run: None, function }, reply))
    }

    /// This process while it runs a task.
    pub(crate) fn within_task(&self, function: &str, run: Option<RayRun>) -> Self {
        Self { children: Some(Arc::default()), run, function: function.into(), ..self.clone() }
    }

    fn child(&self) -> Option<u32> {
        self.children.as_ref().map(|children| children.fetch_add(1, Ordering::Relaxed))
    }

    /// Submits a task, and waits while nobody knows its function.
    pub(crate) async fn submit(&self, task: &Task) -> Result<Vec<ObjectRef>, CallError> {
        let child = self.child();
        let mut calls = task.calls(self.id, child, self.run);
        let deadline = Instant::now() + FUNCTION_PATIENCE;
        let mut backoff = FUNCTION_BACKOFF;
        loop {
            let mut results = self.outbox.ask(calls.clone()).await?;
            let submitted = results.pop().ok_or(CallError::Unexpected)?;
            for counted in results {
                outbox::done(counted)?;
            }
            match outbox::submitted(submitted) {
                Ok(reply) if reply.function_registered => {
                    return Ok(reply.result.iter().map(|id| ObjectRef::owned(*id, &self.outbox)).collect());
                }
                Ok(_) if Instant::now() < deadline => {}
                refused => {
                    let referred = task.referred();
                    if !referred.is_empty() {
                        self.outbox.tell(vec![decrement(referred)]);
                    }
                    refused?;
                    let text = format!(
                        "no worker has registered function `{}` for {} s; next: `tripod ray status`",
                        task.name(),
                        FUNCTION_PATIENCE.as_secs()
                    );
                    let (code, reason) = (tonic::Code::NotFound, "function-unknown".to_owned());
                    return Err(CallError::Refused { code, text, reason });
                }
            }
            // What it refers to is counted already.
            calls.drain(..calls.len() - 1);
            backoff.rest().await;
        }
    }

    /// Writes a value as an object.
    pub(crate) async fn put<T: Serialize + ?Sized>(&self, value: &T) -> Result<ObjectRef, PutError> {
        let value = to_obj(value)?;
        let child = self.child();
        let put = PutObjRequest { workerid: self.id, hold: true };
        let put = RayCall { child, run: self.run, ..call(Call::Put(put)) };
        let reply = self.one(put).await?;
        let id = outbox::put(reply)?;
        let object = ObjectRef::owned(id.objectid, &self.outbox);
        let written = if id.already_present {
            Ok(Written::Before)
        } else {
            self.write(id.objectid, &value, None).await
        };
        match (written, self.run) {
            (Ok(Written::Before), Some(run)) => {
                let attempt = Attempt { run, function: Arc::clone(&self.function) };
                tokio::spawn(again::compare(self.clone(), attempt, object.clone(), value));
            }
            (Ok(_), _) => {}
            (Err(error), _) => {
                // What is never made would be kept for ever. If even this fails, it ends with the process.
                let text = error.to_string();
                let (reason, function) = (failed::EXCEPTION.into(), "put".into());
                let failure = TaskError { reason, function, text, history: vec![] };
                let _ = self.write(id.objectid, &failed::write(&failure), None).await;
                return Err(error);
            }
        }
        Ok(object)
    }

    /// Writes an object into the store of this machine, which tells the scheduler; and which objects are inside. Of a
    /// result of an attempt the caller tells ([`Self::ready`]), with the end of that.
    pub(crate) async fn write(
        &self,
        object: u64,
        value: &Obj,
        run: Option<RayRun>,
    ) -> Result<Written, PutError> {
        let data = Bytes::from(value.encode_to_vec());
        let teller = if run.is_some() { Teller::Maker } else { Teller::Store };
        let written = match self.store.put(object, data, run, teller).await {
            Ok(()) => Written::Now,
            Err((tonic::Code::AlreadyExists, _)) => Written::Before,
            Err((code, text)) => return Err(PutError::Store { object, code, text }),
        };
        let contained = ids_inside(value);
        if !contained.is_empty() {
            let counted = IncrementRefCountRequest { objectid: contained.clone() };
            let inside = AddContainedObjectIDsRequest { objectid: object, contained_objectid: contained };
            self.outbox.tell(vec![call(Call::Increment(counted)), call(Call::Contained(inside))]);
        }
        Ok(written)
    }

    /// Tells that an attempt's result is in the store of this machine.
    pub(crate) fn ready(&self, object: u64, run: RayRun) -> RayCall {
        let ready = ObjReadyRequest { objectid: object, objstoreid: self.store.id() };
        RayCall { run: Some(run), ..call(Call::Ready(ready)) }
    }

    /// A reference to an object whose id was inside of a value. The value's own object must still be referred to.
    pub(crate) async fn adopt(&self, object: ObjectId) -> Result<ObjectRef, CallError> {
        self.count(vec![object.0]).await?;
        Ok(ObjectRef::owned(object.0, &self.outbox))
    }

    /// The value of an object, once there is one.
    pub(crate) async fn get<T: DeserializeOwned>(&self, object: &ObjectRef) -> Result<T, GetError> {
        let id = object.id().0;
        let value = self.fetched(id).await?;
        match failed::read(&value) {
            Some(error) => Err(GetError::Failed(Box::new(error))),
            None => {
                reading(&self.outbox, || from_obj(&value)).map_err(|why| GetError::Value { object: id, why })
            }
        }
    }

    /// An object, once there is one. The scheduler is asked to bring it unless it is here at once.
    pub(crate) async fn fetched(&self, id: u64) -> Result<Obj, GetError> {
        let mut got = std::pin::pin!(self.value(id));
        if let Ok(value) = tokio::time::timeout(REQUEST_AFTER, &mut got).await {
            return value;
        }
        let ask = RequestObjRequest { workerid: self.id, objectid: id };
        let asked = async { outbox::done(self.one(call(Call::Request(ask))).await?) };
        tokio::select! {
            value = &mut got => value,
            refused = asked => {
                refused?;
                got.await
            }
        }
    }

    /// An object of the store of this machine, once it is there.
    pub(crate) async fn value(&self, id: u64) -> Result<Obj, GetError> {
        let stored = self.store.get(id).await;
        let data = stored.map_err(|(code, text)| GetError::Store { object: id, code, text })?;
        Obj::decode(data).map_err(|error| GetError::Value { object: id, why: ValueError(error.to_string()) })
    }

    /// Whether each of the objects is decided, as soon as so many are, or time is up.
    pub(crate) async fn wait(
        &self,
        objects: &[ObjectRef],
        at_least: usize,
        timeout: Duration,
    ) -> Result<Vec<bool>, CallError> {
        let mut decided = vec![false; objects.len()];
        let ask = RayWaitRequest {
            objectids: objects.iter().map(|object| object.id().0).collect(),
            at_least: u32::try_from(at_least).unwrap_or(u32::MAX),
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        };
        let lost = |error: tripod_client::Error| CallError::Lost(Lost { why: error.to_string().into() });
        for waited in self.scheduler.wait(ask).await.map_err(lost)?.objects {
            if let Some(place) = decided.get_mut(waited.place as usize) {
                *place = true;
            }
        }
        Ok(decided)
    }

    /// Makes the value of a reusable variable known to all workers.
    pub(crate) async fn export<T: Serialize + ?Sized>(
        &self,
        name: &str,
        value: &T,
    ) -> Result<(), ExportError> {
        let message =
            ExportReusableVariableRequest { reusable_variable: Some(reusable::write(name, value)?) };
        Ok(self.scheduler.export_variable(message).await.map_err(CallError::from)?)
    }

    /// Ends the task that is to make an object; whether there was something to end.
    pub(crate) async fn cancel(&self, object: &ObjectRef, grace: Duration) -> Result<bool, CallError> {
        let cancel = RayCancelRequest {
            workerid: self.id,
            objectid: object.id().0,
            grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
        };
        let told = outbox::cancelled(self.one(call(Call::Cancel(cancel))).await?)?;
        Ok(!told.over)
    }

    async fn count(&self, objects: Vec<u64>) -> Result<(), CallError> {
        outbox::done(self.one(call(Call::Increment(IncrementRefCountRequest { objectid: objects }))).await?)
    }

    async fn one(&self, call: RayCall) -> Result<RayResult, CallError> {
        self.outbox.ask(vec![call]).await?.pop().ok_or(CallError::Unexpected)
    }
}

/// Why a value was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    #[error(transparent)]
    Value(#[from] ValueError),
    #[error("object {object}: the object store of this machine answered {code:?}: {text}")]
    Store { object: u64, code: tonic::Code, text: String },
    #[error(transparent)]
    Call(#[from] CallError),
}
