//! A worker: executes tasks, one after the other.

mod execute;
mod finish;
mod inbox;
mod service;

use std::fmt::Display;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, sleep};
use tonic::transport::Server;
use tripod_client::Offers;
use tripod_client::wire::RayRun;
use tripod_client::wire::ray_call::Call;
use tripod_dial::PortIncoming;
use tripod_proto::ray::worker_service_server::WorkerServiceServer;
use tripod_proto::ray::{ReadyForNewTaskRequest, RegisterFunctionRequest};
use tripod_proto::tripod::v1::ray_peer_server::RayPeerServer;

use crate::beat::{self, Liveness};
use crate::config::Config;
use crate::context::Context;
use crate::error::{CallError, Lost};
use crate::function::{Body, Output, Plain, Registered, of_fallible, of_plain};
use crate::outbox::{self, call};
use crate::process::{BeginError, Process};
use crate::reusable::{Declared, Reusable, Reusables};
pub(crate) use crate::worker::execute::Executor;
pub(crate) use crate::worker::inbox::{Inbox, Ticket};
use tripod_proto::ray::Obj;

/// How many tasks a worker may be given at a time, unless it says otherwise: enough that it need not wait for the
/// next ones while the last ones' ends are told. It is given as many only while its tasks are short.
const SLOTS: u32 = 128;
/// What waits behind a task that runs for this long is given back, and how often that is looked at.
const LONG: Duration = Duration::from_millis(100);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long a worker that ends tries to say so.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);
/// How often another id is asked for when somebody else has the port that goes with one.
const PORTS_TRIED: u32 = 8;
/// Between two of them: an address that is not this machine's fails every time.
const PORTS_PAUSE: Duration = Duration::from_millis(200);

/// A worker before it begins: the functions that it can execute, and the variables that they use.
pub struct Worker {
    config: Config,
    slots: u32,
    offers: Offers,
    functions: Vec<Registered>,
    reusables: Vec<Declared>,
}

/// Why a worker ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error(transparent)]
    Begin(#[from] BeginError),
    #[error(
        "cannot listen at {address}, where the scheduler wants the worker: {error}; next: see `ss -tanp`"
    )]
    Listen { address: String, error: std::io::Error },
    #[error(transparent)]
    Call(#[from] CallError),
    /// Nothing ends a thread but the end of its process.
    #[error(
        "attempt {attempt} of task {operation} was cancelled and did not end in time, so this worker ends; next: begin \
         it anew, and let its functions ask `Context::is_cancelled`"
    )]
    Stuck { operation: u64, attempt: u32 },
}

/// How one life of a worker ended.
enum End {
    /// It was told to end.
    Dismissed,
    /// It was given up; it may begin another life.
    Expired,
}

impl Worker {
    /// A worker without functions.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, slots: SLOTS, offers: Offers::default(), functions: Vec::new(), reusables: Vec::new() }
    }

    /// How many tasks it may be given at a time; they run in order, one after the other.
    #[must_use]
    pub fn slots(mut self, slots: u32) -> Self {
        self.slots = slots.max(1);
        self
    }

    /// What it has for its tasks: others that need more are not given to it. One task runs at a time, so it has all.
    #[must_use]
    pub fn offers(mut self, offers: Offers) -> Self {
        self.offers = offers;
        self
    }

    /// Executes `function` under this name (`module.function`).
    #[must_use]
    pub fn function<A, F: Plain<A, Result: Serialize>>(self, name: &str, function: F) -> Self {
        self.register(name, 1, of_plain(function))
    }

    /// Executes `function`, which may fail, under this name.
    #[must_use]
    pub fn fallible<A, R: Serialize, E: Display, F: Plain<A, Result = Result<R, E>>>(
        self,
        name: &str,
        function: F,
    ) -> Self {
        self.register(name, 1, of_fallible(function))
    }

    /// Executes a function that calls others, or has any number of results.
    #[must_use]
    pub fn full(
        self,
        name: &str,
        results: u64,
        function: impl Fn(&Context, &[Obj]) -> Result<Vec<Output>, String> + Send + Sync + 'static,
    ) -> Self {
        self.register(name, results, Arc::new(function))
    }

    /// Has a variable under this name, which functions use with [`Context::reusable`]. Declared again, it is the last one.
    #[must_use]
    pub fn reusable<T: Send + 'static>(mut self, name: &str, reusable: Reusable<T>) -> Self {
        self.reusables.retain(|known| known.name != name);
        self.reusables.push(reusable.named(name));
        self
    }

    fn register(mut self, name: &str, results: u64, body: Body) -> Self {
        self.functions.push(Registered { name: name.to_owned(), results, body });
        self
    }

    /// Executes tasks until it is told to end, by the scheduler or by `shutdown`, or one that was cancelled does not end:
    /// the process is to end then, for the task's thread runs on. When the scheduler has given it up,
    /// it begins anew under another id.
    ///
    /// # Errors
    /// [`WorkerError`].
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), WorkerError> {
        let mut shutdown = std::pin::pin!(shutdown);
        let functions = Arc::new(self.functions.clone());
        loop {
            let begun = tokio::select! {
                () = &mut shutdown => return Ok(()),
                begun = self.begin() => begun?,
            };
            let process = begun.0.clone();
            tokio::select! {
                () = &mut shutdown => {
                    leave(&process).await;
                    return Ok(());
                }
                ended = self.live(&functions, begun) => match ended? {
                    End::Dismissed => return Ok(()),
                    End::Expired => tracing::warn!("the scheduler has given up this worker: it registers again"),
                },
            }
        }
    }

    async fn live(
        &self,
        functions: &Arc<Vec<Registered>>,
        (process, incoming): (Process, PortIncoming),
    ) -> Result<End, WorkerError> {
        let inbox = Arc::new(Inbox::new(process.id, process.outbox.clone()));
        let _closed = Closed(Arc::clone(&inbox));
        let liveness = watch::Sender::new(Liveness::Good);
        let mut parts = JoinSet::new();
        let service = service::Service::new(process.id, Arc::clone(&inbox));
        let server = Server::builder()
            .layer(tripod_dial::gate_of_worker())
            .add_service(WorkerServiceServer::new(service.clone()))
            .add_service(RayPeerServer::new(service));
        parts.spawn(async move {
            if let Err(error) = server.serve_with_incoming(incoming).await {
                tracing::error!(%error, "the worker's port failed");
            }
        });
        let watched = Arc::clone(&inbox);
        let running = move || watched.running();
        parts.spawn(beat::of_worker(process.clone(), running, liveness.clone()));
        parts.spawn(give_back(Arc::clone(&inbox)));
        let mut known = liveness.subscribe();
        let reusables = Arc::new(Reusables::new(&self.reusables));
        tokio::select! {
            // Before it says that it can be given tasks: others can run them meanwhile.
            () = reusables.prepare() => {}
            end = over(&mut known) => return Ok(end),
        }
        self.announce(&process).await?;
        let (sender, executed) = mpsc::unbounded_channel();
        let executor = Executor {
            functions: Arc::clone(functions),
            reusables,
            process: process.clone(),
            inbox: Arc::clone(&inbox),
            runtime: Handle::current(),
            liveness: liveness.subscribe(),
            executed: sender,
        };
        executor.start();
        let executing = finish::run(&process, executed);
        tokio::select! {
            ended = executing => Ok(match ended {
                Ok(()) => End::Dismissed,
                Err(Lost { .. }) => End::Expired,
            }),
            end = over(&mut known) => Ok(end),
            stuck = stuck(&inbox) => {
                leave(&process).await;
                Err(stuck)
            }
        }
    }

    /// Registers, and listens where the scheduler says.
    async fn begin(&self) -> Result<(Process, PortIncoming), WorkerError> {
        let mut tried = 0;
        loop {
            let (process, reply) =
                Process::begin(&self.config, Some(self.slots), self.offers.clone()).await?;
            let address = reply.worker_address;
            tried += 1;
            let error = match listen(&address).await {
                Ok(incoming) => {
                    tracing::info!(worker = process.id, address, store = reply.objstoreid, "worker is up");
                    return Ok((process, incoming));
                }
                Err(error) => error,
            };
            // Nobody need wait until it is missed.
            leave(&process).await;
            if tried >= PORTS_TRIED {
                return Err(WorkerError::Listen { address, error });
            }
            tracing::warn!(address, %error, "somebody else has this worker's port: another id is asked for");
            sleep(PORTS_PAUSE).await;
        }
    }

    /// Says which functions it can execute, and that it can be given a task.
    async fn announce(&self, process: &Process) -> Result<(), WorkerError> {
        let function = |function: &Registered| {
            call(Call::Function(RegisterFunctionRequest {
                workerid: process.id,
                fnname: function.name.clone().into_bytes().into(),
                num_return_vals: function.results,
            }))
        };
        let mut calls: Vec<_> = self.functions.iter().map(function).collect();
        let idle = ReadyForNewTaskRequest { workerid: process.id, previous_task_info: None };
        calls.push(call(Call::Idle(idle)));
        let told = process.outbox.ask(calls).await.map_err(CallError::Lost)?;
        told.into_iter().try_for_each(outbox::done)?;
        Ok(())
    }
}

/// Waits until the cluster has no use for the worker any more.
async fn over(known: &mut watch::Receiver<Liveness>) -> End {
    let over = known.wait_for(|liveness| matches!(liveness, Liveness::Expired | Liveness::Dismissed));
    match over.await.as_deref() {
        Ok(Liveness::Dismissed) => End::Dismissed,
        _ => End::Expired,
    }
}

async fn listen(address: &str) -> std::io::Result<PortIncoming> {
    let wanted: SocketAddr = address.parse().map_err(std::io::Error::other)?;
    tripod_dial::listen_as_worker(wanted).await
}

/// Gives back what waits for too long, as long as it is polled.
async fn give_back(inbox: Arc<Inbox>) {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        inbox.give_back_behind(LONG);
    }
}

/// Resolves when a task has not ended that was to end.
async fn stuck(inbox: &Inbox) -> WorkerError {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        if let Some(RayRun { operationid, attempt }) = inbox.stuck() {
            return WorkerError::Stuck { operation: operationid, attempt };
        }
    }
}

/// Says that this worker ends, so that its tasks need not wait until it is missed.
async fn leave(process: &Process) {
    let told = process.outbox.ask(vec![outbox::leave(process.id)]);
    if tokio::time::timeout(LEAVE_TIMEOUT, told).await.is_err() {
        tracing::info!(worker = process.id, "nobody was told that this worker ends: it will be missed");
    }
}

/// Lets the thread that executes end.
struct Closed(Arc<Inbox>);

impl Drop for Closed {
    fn drop(&mut self) {
        self.0.close();
    }
}
