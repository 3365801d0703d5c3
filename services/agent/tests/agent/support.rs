//! An agent under test, and clients of it.
//!
//! Clients, agent and nodes are reached by lines and not by sockets, so that the clock of a test can stand still.

use std::cell::Cell;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};
use tripod_agent::{
    Agent, AgentConfig, AgentStatus, ConnectionLimits, Error, Listen, MemoryLimits, Poll, StatusHandle,
    Timing,
};
use tripod_lines::Lines;
use tripod_port::Listener;
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient;

use crate::fake::Node;

/// Longer than anything that a test waits for.
pub(crate) const LONG: Duration = Duration::from_secs(30);

pub(crate) type Client = CoordinationServiceClient<Channel>;

/// A running agent.
pub(crate) struct Served {
    place: Listen,
    has_sockets: bool,
    handle: StatusHandle,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<(), Error>>,
}

/// The lines of this test, which has a thread of its own.
pub(crate) fn lines() -> Lines {
    thread_local! {
        static LINES: Lines = Lines::new();
    }
    LINES.with(Lines::clone)
}

/// An agent of these nodes for the job `train`, with limits that suit a test.
pub(crate) fn config(nodes: &[&Node]) -> AgentConfig {
    thread_local! {
        static AGENTS: Cell<u16> = const { Cell::new(1) };
    }
    let port = AGENTS.replace(AGENTS.get() + 1);
    AgentConfig {
        socket_uids: Vec::new(),
        listen: vec![Listen::Tcp(format!("agent:{port}"))],
        mindspore: None,
        allow_remote: false,
        cluster: nodes.iter().map(|node| node.address.clone()).collect(),
        job: "train".into(),
        spec: None,
        poll: Poll::Hold,
        memory: MemoryLimits::none(),
        connections: ConnectionLimits::none(),
        timing: Timing {
            probe_interval: Duration::from_millis(100),
            // The first node is the one in use.
            head_start: LONG,
            drain: Duration::from_millis(300),
            ..Timing::default()
        },
    }
}

/// An agent that is reached, and reaches nodes, by lines.
pub(crate) fn agent(config: AgentConfig) -> Agent {
    let listener = Listener::within(lines().listen(&config.listen[0].to_string()));
    Agent::within(config, listener, Arc::new(|node| lines().dial(node))).expect("opened")
}

impl Served {
    pub(crate) fn start(config: AgentConfig) -> Self {
        Self::run(agent(config), false)
    }

    /// [`Self::start`] that serves nodes of MindSpore at this place, too.
    pub(crate) fn with_mindspore(config: AgentConfig, place: &str) -> Self {
        let listener = Listener::within(lines().listen(place));
        Self::run(agent(config).with_mindspore(listener), false)
    }

    /// [`Self::start`] with sockets, at any free port.
    pub(crate) async fn with_sockets(config: AgentConfig) -> Self {
        let listen = vec![Listen::Tcp("127.0.0.1:0".into())];
        Self::run(Agent::open(AgentConfig { listen, ..config }).await.expect("opened"), true)
    }

    /// An agent that was made by [`agent`].
    pub(crate) fn running(agent: Agent) -> Self {
        Self::run(agent, false)
    }

    fn run(agent: Agent, has_sockets: bool) -> Self {
        let (place, handle) = (agent.places().remove(0), agent.status_handle());
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(agent.run(async { drop(stopped.await) }));
        Self { place, has_sockets, handle, stop, running }
    }

    pub(crate) fn of(nodes: &[&Node]) -> Self {
        Self::start(config(nodes))
    }

    /// A connection of its own.
    pub(crate) async fn channel(&self) -> Channel {
        if self.has_sockets {
            let endpoint = Endpoint::from_shared(format!("http://{}", self.place)).expect("an address");
            return endpoint.connect().await.expect("the agent listens");
        }
        lines().channel(&self.place.to_string()).await
    }

    /// A client with a connection of its own.
    pub(crate) async fn client(&self) -> Client {
        CoordinationServiceClient::new(self.channel().await)
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

/// The outcome of something that must come.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tripod_wait::within("an outcome", future).await
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    tripod_wait::until(what, || holds().then_some(())).await;
}
