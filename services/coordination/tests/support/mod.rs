//! What the tests of this crate share: a service over a state in memory, and raw calls to it.
//!
//! It is reached by lines and not by sockets, so that the clock of a test can stand still. What is about sockets is in
//! `serving`.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod frames;
pub(crate) mod payloads;
pub(crate) mod raw;
pub(crate) mod schema;
pub(crate) mod stage;
pub(crate) mod task;
pub(crate) mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::DuplexStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};
use tripod_coordination::Coordination;
use tripod_gateway::{FrontEnds, Gateway, JobBinding, MemoryBackend, Options, PortKind};
use tripod_lines::Lines;
use tripod_local::{ConnectionLimits, Connections};
use tripod_port::{Contact, ContactSwitch, Listener, PortResources, serve_through};
use tripod_state::ids::{JobId, ServiceIncarnation};
use tripod_state::{Answer, Command, job, level};

/// The service incarnation of every job in the tests.
pub(crate) const SERVICE: u64 = 7;
/// How long clients wait that have to say so, where what they wait for comes.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// A served port over a state in memory.
pub(crate) struct Served {
    pub(crate) gateway: Gateway,
    pub(crate) backend: Arc<MemoryBackend>,
    lines: Lines,
    place: String,
    /// Whether the node is in contact with the cluster.
    pub(crate) contact: ContactSwitch,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

/// The dialects for the job named `job`.
pub(crate) fn dialects(gateway: &Gateway) -> tripod_port::Served {
    let front_ends = FrontEnds::of(vec![Box::new(Coordination::new(gateway.clone()))]);
    front_ends.served(PortKind::Client, &JobBinding::Named("job".to_owned()))
}

impl Served {
    /// Serves the job named `job`, which may not exist yet.
    pub(crate) async fn start(options: Options) -> Self {
        let (gateway, backend) = Gateway::in_memory_with(options);
        Self::serve(gateway, backend, &Lines::new())
    }

    fn serve(gateway: Gateway, backend: Arc<MemoryBackend>, lines: &Lines) -> Self {
        static NODES: AtomicU64 = AtomicU64::new(0);
        let place = format!("node-{}:7700", NODES.fetch_add(1, Ordering::Relaxed));
        let listener = Listener::within(lines.listen(&place));
        let dialects = dialects(&gateway);
        let (stop, stopped) = oneshot::channel();
        let (at_port, contact) = Contact::by_hand();
        let resources = PortResources::new(at_port, Connections::new(ConnectionLimits::none()));
        let resources = resources.charging(gateway.memory().clone());
        let serving = tokio::spawn(async move {
            let shutdown = async { drop(stopped.await) };
            serve_through(listener, dialects, resources, shutdown).await.expect("serving");
        });
        Self { gateway, backend, lines: lines.clone(), place, contact, stop: Some(stop), serving }
    }

    /// From now on everything that this build knows is in force, as in every new cluster.
    pub(crate) async fn raise(&self) {
        let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
        self.gateway.submit(Command::Level(raise)).await.expect("a leader").expect("nobody is against it");
    }

    /// [`Self::start`], with a job of `tasks` tasks.
    pub(crate) async fn with_tasks(tasks: u32) -> Self {
        let served = Self::start(Options::default()).await;
        served.create(job::Spec { poll: job::Poll::Hold, ..job::Spec::of_tasks(tasks) }).await;
        served
    }

    pub(crate) async fn create(&self, spec: job::Spec) -> JobId {
        self.create_named("job", spec).await
    }

    pub(crate) async fn create_named(&self, name: &str, spec: job::Spec) -> JobId {
        let service = ServiceIncarnation(SERVICE);
        let command = job::Command::Create { name: name.to_owned(), spec, service };
        match self.gateway.submit(Command::Job(command)).await.expect("in memory") {
            Ok(Answer::Job(summary)) => summary.id,
            other => panic!("no job: {other:?}"),
        }
    }

    pub(crate) async fn connect(&self) -> Channel {
        self.connect_as(|endpoint| endpoint).await
    }

    /// [`Self::connect`], set up in another way.
    pub(crate) async fn connect_as(&self, set_up: impl FnOnce(Endpoint) -> Endpoint) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.place)).expect("an address");
        self.lines.connect(set_up(endpoint)).await.expect("a connection")
    }

    /// A connection for a client of frames.
    pub(crate) fn dial(&self) -> DuplexStream {
        self.lines.dial(&self.place).expect("the port is open")
    }

    /// Asks the server to stop and waits until it has.
    pub(crate) async fn stop(mut self) {
        self.begin_to_stop();
        self.end().await;
    }

    /// Asks the server to stop.
    pub(crate) fn begin_to_stop(&mut self) {
        self.stop.take().expect("stopped once").send(()).expect("serving");
    }

    /// The same state on another port, once this one has stopped.
    pub(crate) async fn again(self) -> Self {
        let (gateway, backend, lines) = (self.gateway.clone(), Arc::clone(&self.backend), self.lines.clone());
        self.end().await;
        Self::serve(gateway, backend, &lines)
    }

    /// Another port over the same state, as another node has it.
    pub(crate) fn beside(&self) -> Self {
        Self::serve(self.gateway.clone(), Arc::clone(&self.backend), &self.lines)
    }

    /// Waits until the server has stopped.
    pub(crate) async fn end(self) {
        tripod_wait::within("the end of a port", self.serving).await.expect("it ends well");
    }
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    tripod_wait::until(what, || holds().then_some(())).await;
}
