//! What the tests of this crate share: a service over a state in memory, and raw calls to it.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod frames;
pub(crate) mod payloads;
pub(crate) mod raw;
pub(crate) mod schema;
pub(crate) mod stage;
pub(crate) mod task;
pub(crate) mod worker;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};
use tripod_coordination::{routes, serve_in_contact};
use tripod_gateway::{Contact, ContactSwitch, Gateway, JobBinding, MemoryBackend, Options};
use tripod_state::ids::{JobId, ServiceIncarnation};
use tripod_state::{Answer, Command, job};

/// The service incarnation of every job in the tests.
pub(crate) const SERVICE: u64 = 7;
/// No test waits longer than this for anything.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A served port over a state in memory.
pub(crate) struct Served {
    pub(crate) gateway: Gateway,
    pub(crate) backend: Arc<MemoryBackend>,
    pub(crate) address: SocketAddr,
    /// Whether the node is in contact with the cluster.
    pub(crate) contact: ContactSwitch,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl Served {
    /// Serves the job named `job`, which may not exist yet.
    pub(crate) async fn start(options: Options) -> Self {
        let (gateway, backend) = Gateway::in_memory_with(options);
        Self::serve(gateway, backend).await
    }

    async fn serve(gateway: Gateway, backend: Arc<MemoryBackend>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound port");
        let routes = routes(&gateway, &JobBinding::Named("job".to_owned()));
        let (stop, stopped) = oneshot::channel();
        let (at_port, contact) = Contact::by_hand();
        let serving = tokio::spawn(async move {
            let shutdown = async { drop(stopped.await) };
            serve_in_contact(listener, routes, at_port, shutdown).await.expect("serving");
        });
        Self { gateway, backend, address, contact, stop: Some(stop), serving }
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
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).expect("an address");
        endpoint.connect().await.expect("a connection")
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
        let (gateway, backend) = (self.gateway.clone(), Arc::clone(&self.backend));
        self.end().await;
        Self::serve(gateway, backend).await
    }

    /// Another port over the same state, as another node has it.
    pub(crate) async fn beside(&self) -> Self {
        Self::serve(self.gateway.clone(), Arc::clone(&self.backend)).await
    }

    /// Waits until the server has stopped.
    pub(crate) async fn end(self) {
        tokio::time::timeout(DEADLINE, self.serving).await.expect("it ends").expect("it ends well");
    }
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + DEADLINE;
    while !holds() {
        assert!(tokio::time::Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
