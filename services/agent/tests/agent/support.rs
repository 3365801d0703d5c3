//! An agent under test, and clients of it.

use std::future::Future;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};
use tripod_agent::{Agent, AgentConfig, AgentStatus, Error, Listen, Poll, StatusHandle, Timing};
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient;

use crate::fake::Node;

/// No test waits longer than this for anything.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) type Client = CoordinationServiceClient<Channel>;

/// A running agent.
pub(crate) struct Served {
    pub(crate) place: Listen,
    handle: StatusHandle,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<(), Error>>,
}

/// An agent of these nodes for the job `train`, with limits that suit a test.
pub(crate) fn config(nodes: &[&Node]) -> AgentConfig {
    AgentConfig {
        listen: vec![Listen::Tcp("127.0.0.1:0".into())],
        allow_remote: false,
        cluster: nodes.iter().map(|node| node.address.clone()).collect(),
        job: "train".into(),
        spec: None,
        poll: Poll::Hold,
        timing: Timing {
            probe_interval: Duration::from_millis(100),
            // The first node is the one in use, however slow the machine is at the moment.
            head_start: DEADLINE,
            drain: Duration::from_millis(300),
            ..Timing::default()
        },
    }
}

impl Served {
    pub(crate) async fn start(config: AgentConfig) -> Self {
        let agent = Agent::open(config).await.expect("opened");
        let (place, handle) = (agent.places().remove(0), agent.status_handle());
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(agent.run(async { drop(stopped.await) }));
        Self { place, handle, stop, running }
    }

    pub(crate) async fn of(nodes: &[&Node]) -> Self {
        Self::start(config(nodes)).await
    }

    /// A client with a connection of its own.
    pub(crate) async fn client(&self) -> Client {
        let uri = match &self.place {
            Listen::Tcp(address) => format!("http://{address}"),
            Listen::Unix(path) => format!("unix://{}", path.display()),
        };
        let endpoint = Endpoint::from_shared(uri).expect("an address");
        CoordinationServiceClient::new(endpoint.connect().await.expect("the agent listens"))
    }

    pub(crate) fn status(&self) -> AgentStatus {
        self.handle.status()
    }

    /// The address of the node in use.
    pub(crate) fn upstream(&self) -> Option<String> {
        self.status().upstream.map(|upstream| upstream.address)
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) async fn stop(self) {
        self.stop.send(()).expect("running");
        soon(self.running).await.expect("it does not panic").expect("it ends well");
    }
}

/// The outcome of something that must not take long.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("in time")
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + DEADLINE;
    while !holds() {
        assert!(tokio::time::Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
