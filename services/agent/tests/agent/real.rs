//! The agent between clients and the services that nodes really have, over a state in memory. One test has sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::Channel;
use tonic::{Code, Request};
use tripod_agent::{AgentConfig, Kind, TaskOrigin};
use tripod_coordination::{COORDINATION_KEY, Coordination};
use tripod_gateway::{FrontEnds, Gateway, JobBinding, MemoryBackend, Mishap, PortKind};
use tripod_native::Native;
use tripod_port::Listener;
use tripod_proto::tensorflow as t;
use tripod_proto::tensorflow::coordination_service_client::CoordinationServiceClient;
use tripod_proto::xla;
use tripod_proto::xla::coordination as n;
use tripod_proto::xla::distributed_runtime_service_client::DistributedRuntimeServiceClient;
use tripod_state::ids::{Incarnation, ServiceIncarnation, TaskId};
use tripod_state::{Command, job, level, runtime};

use crate::support::{Client, Served, agent, config, lines, soon, until};

const SERVICE: u64 = 7;

/// Two nodes' ports over one state.
struct Cluster {
    gateway: Gateway,
    backend: Arc<MemoryBackend>,
    ports: Vec<Port>,
}

struct Port {
    address: String,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Cluster {
    async fn start() -> Self {
        let listen = [1, 2].map(|node| {
            let address = format!("node-{node}:7700");
            (Listener::within(lines().listen(&address)), address)
        });
        Self::of(listen).await
    }

    async fn with_sockets() -> Self {
        let listen = async || {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let address = listener.local_addr().expect("bound").to_string();
            (listener.into(), address)
        };
        Self::of([listen().await, listen().await]).await
    }

    /// With the job `train` of two tasks, which releases polls.
    async fn of(listen: [(Listener, String); 2]) -> Self {
        let (gateway, backend) = Gateway::in_memory();
        let spec = job::Spec { poll: job::Poll::Release, ..job::Spec::of_tasks(2) };
        let service = ServiceIncarnation(SERVICE);
        let create = job::Command::Create { name: "train".to_owned(), spec, service };
        gateway.submit(Command::Job(create)).await.expect("in memory").expect("created");
        let ports = listen.map(|(listener, address)| Port::open(&gateway, listener, address));
        Self { gateway, backend, ports: ports.into() }
    }

    async fn submit(&self, command: Command) {
        self.gateway.submit(command).await.expect("in memory").expect("nobody is against it");
    }

    /// An agent's configuration for it.
    fn config(&self) -> AgentConfig {
        let cluster = self.ports.iter().map(|port| port.address.clone()).collect();
        AgentConfig { cluster, ..config(&[]) }
    }
}

impl Port {
    fn open(gateway: &Gateway, listener: Listener, address: String) -> Self {
        // Not the job of the clients: theirs is told by the agent.
        let binding = JobBinding::Named("default".to_owned());
        let front_ends = FrontEnds::of(vec![
            Box::new(Coordination::new(gateway.clone())),
            Box::new(Native::alone(gateway.clone())),
        ]);
        let served = front_ends.served(PortKind::Client, &binding);
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(async move {
            tripod_port::serve(listener, served, async { drop(stopped.await) }).await.expect("serving");
        });
        Self { address, stop, serving }
    }

    async fn stop(self) {
        self.stop.send(()).expect("serving");
        soon(self.serving).await.expect("no panic");
    }
}

fn incarnations() -> Option<n::Incarnations> {
    Some(n::Incarnations { service_incarnation: SERVICE, ..Default::default() })
}

async fn register(client: &mut Client, task: i32) -> u64 {
    let request = n::RegisterTaskRequest { incarnation: 40, source_task_id: task };
    soon(client.register_task(request)).await.expect("registered").into_inner().service_incarnation
}

async fn increment(client: &mut Client) -> String {
    let request = n::IncrementKeyValueRequest { incarnations: incarnations(), key: "k".into(), increment: 1 };
    let kv = soon(client.increment_key_value(request)).await.expect("incremented").into_inner().kv;
    String::from_utf8(kv.expect("an entry").value.to_vec()).expect("digits")
}

async fn heartbeat(client: &mut Client, task: i32) -> u64 {
    let message = n::HeartbeatRequest { incarnations: incarnations(), incarnation: 40, source_task_id: task };
    let mut request = Request::new(message);
    request.set_timeout(Duration::from_secs(25));
    soon(client.heartbeat(request)).await.expect("alive").into_inner().service_incarnation
}

async fn barrier(mut client: Client, task: i32) -> Result<i64, tonic::Status> {
    let request = n::BarrierRequest {
        incarnations: incarnations(),
        barrier_id: "b".into(),
        barrier_timeout_in_ms: 60_000,
        source_task_id: task,
        ..Default::default()
    };
    client.barrier(request).await.map(|reply| reply.into_inner().counter)
}

#[tokio::test]
async fn a_job_goes_on_through_the_planned_stop_of_a_node() {
    let mut cluster = Cluster::with_sockets().await;
    let served = Served::with_sockets(cluster.config()).await;
    let (mut first, mut second) = (served.client().await, served.client().await);
    assert_eq!(tokio::join!(register(&mut first, 0), register(&mut second, 1)), (SERVICE, SERVICE));
    assert_eq!((heartbeat(&mut first, 0).await, heartbeat(&mut second, 1).await), (SERVICE, SERVICE));
    assert_eq!(increment(&mut first).await, "1");

    let mut poller = first.clone();
    let poll = n::PollForErrorRequest { incarnations: incarnations(), source_task_id: 0 };
    let poll = tokio::spawn(async move { poller.poll_for_error(poll).await });
    let waiting = tokio::spawn(barrier(first.clone(), 0));
    until("both are held", || {
        let held = served.status().held;
        held.contains_key(&Kind::Poll) && held.contains_key(&Kind::Barrier)
    })
    .await;

    let stopped = cluster.ports.remove(0);
    assert_eq!(served.upstream(), Some(stopped.address.clone()));
    stopped.stop().await;
    assert_eq!(increment(&mut second).await, "2");
    assert_eq!(served.upstream(), Some(cluster.ports[0].address.clone()));
    let arrived = soon(barrier(second.clone(), 1)).await.expect("it passes");
    assert_eq!(soon(waiting).await.expect("no panic").expect("it passes"), arrived);
    assert_eq!(heartbeat(&mut first, 0).await, SERVICE);
    assert!(!poll.is_finished(), "the agent has it held although the job releases polls");

    let report = n::ReportErrorToServiceRequest {
        incarnations: incarnations(),
        source_task_id: 1,
        error_code: 5,
        error_message: "boom".into(),
    };
    soon(second.report_error_to_service(report)).await.expect("reported");
    let told = soon(poll).await.expect("no panic").expect_err("there is an error");
    assert_eq!((told.code(), told.message()), (Code::NotFound, "boom"));
    assert!(told.details().windows(COORDINATION_KEY.len()).any(|part| part == COORDINATION_KEY.as_bytes()));
}

#[tokio::test(start_paused = true)]
async fn heartbeats_are_told_in_a_word_also_after_a_change_of_leaders() {
    let cluster = Cluster::start().await;
    let served = Served::start(cluster.config());
    let (mut first, mut second) = (served.client().await, served.client().await);
    tokio::join!(register(&mut first, 0), register(&mut second, 1));
    for _ in 0..3 {
        let before = served.status().beats_in_words;
        let in_a_word = async {
            while served.status().beats_in_words < before + 4 {
                let answers = tokio::join!(heartbeat(&mut first, 0), heartbeat(&mut second, 1));
                assert_eq!(answers, (SERVICE, SERVICE));
            }
        };
        soon(in_a_word).await;
        cluster.backend.elect();
    }
    assert_eq!(served.status().beats_leased, 0, "each got the cluster's verdict");
}

#[tokio::test(start_paused = true)]
async fn a_registration_by_an_agent_says_where_it_comes_from() {
    let cluster = Cluster::start().await;
    let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
    cluster.submit(Command::Level(raise)).await;
    let origin = TaskOrigin { host: "a3-7".into(), agent: "tripod 0.1.0".into(), ..TaskOrigin::default() };
    let served = Served::running(agent(cluster.config()).telling(&origin));
    let (mut first, mut second) = (served.client().await, served.client().await);
    tokio::join!(register(&mut first, 0), register(&mut second, 1));
    let state = cluster.backend.state();
    let job = state.job_named("train").expect("created");
    for task in [0, 1].map(TaskId) {
        let told = state.origin(job, task, Incarnation(40)).expect("it was told");
        assert_eq!((told.host.as_str(), told.agent.as_str()), ("a3-7", "tripod 0.1.0"));
        assert!(told.client.starts_with("tonic/") && told.pid == 0, "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_devices_of_all_tasks_come_to_a_host_once() {
    let cluster = Cluster::start().await;
    let served = Served::start(cluster.config());
    let connect = async |node_id| {
        let mut client = DistributedRuntimeServiceClient::new(served.channel().await);
        let (protocol_version, timeout_milliseconds, client_id) = (3, 60_000, 40);
        let request = xla::ConnectRequest { protocol_version, timeout_milliseconds, node_id, client_id };
        let session_id = soon(client.connect(request)).await.expect("connected").into_inner().session_id;
        (client, session_id)
    };
    let (one, other) = tokio::join!(connect(0), connect(1));
    let asked = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&asked);
    cluster.backend.set_mishaps(move |envelope| {
        let is_exchange = matches!(envelope.command, Command::Runtime(runtime::Command::Enumerate { .. }));
        counted.fetch_add(usize::from(is_exchange), Ordering::Relaxed);
        Mishap::Success
    });
    // A node with one device that says nothing of itself.
    let exchange = async |(mut client, session_id): (DistributedRuntimeServiceClient<Channel>, u64),
                          node: u8| {
        let local_topology = vec![8, node, 26, 0].into();
        let request = xla::EnumerateDevicesRequest { session_id, local_topology };
        soon(client.enumerate_devices(request)).await.expect("exchanged").into_inner().global_topology
    };
    let (one, other) = tokio::join!(exchange(one, 0), exchange(other, 1));
    assert_eq!(one, other);
    assert!(!one.is_empty());
    assert_eq!(asked.load(Ordering::Relaxed), 3, "each hands its own in, and one has all of them sent");
}

/// Calls of the older dialect do not say whose they are, and all clients of an agent come by one connection.
#[tokio::test(start_paused = true)]
async fn the_cluster_is_told_which_client_came_back() {
    let cluster = Cluster::start().await;
    cluster.submit(Command::Level(level::Command::Raise { to: level::NEWEST, heard: Vec::new() })).await;
    let spec = job::Spec { recoverable: true, ..job::Spec::of_tasks(2) };
    let (name, service) = ("again".to_owned(), ServiceIncarnation(SERVICE));
    cluster.submit(Command::Job(job::Command::Create { name, spec, service })).await;
    let served = Served::start(AgentConfig { job: "again".to_owned(), ..cluster.config() });
    let register = async |task_id, incarnation| {
        let mut client = CoordinationServiceClient::new(served.channel().await);
        let job_name = "jax_worker".to_owned();
        let source_task = Some(t::CoordinatedTask { job_name, task_id, recoverable: false });
        let request = t::RegisterTaskRequest { incarnation, source_task };
        soon(client.register_task(request)).await.expect("registered");
        client
    };
    let insert = async |client: &mut CoordinationServiceClient<Channel>| {
        let kv = Some(t::KeyValueEntry { key: "topology".to_owned(), value: "all".into() });
        let request = t::InsertKeyValueRequest { kv, allow_overwrite: false };
        soon(client.insert_key_value(request)).await.map(drop).map_err(|status| status.code())
    };
    let (mut first, mut other) = tokio::join!(register(0, 40), register(1, 41));
    assert_eq!(insert(&mut first).await, Ok(()));
    assert_eq!(insert(&mut other).await, Err(Code::AlreadyExists));
    let mut again = register(0, 42).await;
    assert_eq!(insert(&mut again).await, Ok(()));
    assert_eq!(insert(&mut other).await, Err(Code::AlreadyExists), "it is in its first life");
    assert_eq!(insert(&mut first).await, Err(Code::AlreadyExists), "that life is over");
}

#[tokio::test(start_paused = true)]
async fn what_a_node_does_not_know_is_found_out_and_not_done_twice() {
    let cluster = Cluster::start().await;
    let served = Served::start(cluster.config());
    let (mut first, mut second) = (served.client().await, served.client().await);
    tokio::join!(register(&mut first, 0), register(&mut second, 1));
    let mut proposals = 0;
    cluster.backend.set_mishaps(move |_| {
        proposals += 1;
        match proposals % 4 {
            1 => Mishap::UnknownButApplied,
            2 => Mishap::UnknownAndLost,
            3 => Mishap::NoLeader,
            _ => Mishap::Success,
        }
    });
    for expected in 1..=10 {
        assert_eq!(increment(&mut first).await, expected.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn after_an_agent_s_planned_stop_its_clients_hear_of_errors_by_heartbeat() {
    let cluster = Cluster::start().await;
    let served = Served::start(cluster.config());
    let (mut first, mut second) = (served.client().await, served.client().await);
    tokio::join!(register(&mut first, 0), register(&mut second, 1));
    let poll = n::PollForErrorRequest { incarnations: incarnations(), source_task_id: 0 };
    let poll = tokio::spawn(async move { first.poll_for_error(poll).await });
    until("it is held", || served.status().held.contains_key(&Kind::Poll)).await;
    assert_eq!(heartbeat(&mut second, 1).await, SERVICE, "so the poll has reached the cluster");
    soon(served.stop()).await;
    let ended = soon(poll).await.expect("no panic").expect_err("released");
    assert_eq!(ended.code(), Code::Cancelled, "every other code ends the client's process");

    let next = Served::start(cluster.config());
    let (mut first, mut second) = (next.client().await, next.client().await);
    assert_eq!(heartbeat(&mut first, 0).await, SERVICE, "all is well");
    let report = n::ReportErrorToServiceRequest {
        incarnations: incarnations(),
        source_task_id: 1,
        error_code: 5,
        error_message: "boom".into(),
    };
    soon(second.report_error_to_service(report)).await.expect("reported");
    let message = n::HeartbeatRequest { incarnations: incarnations(), incarnation: 40, source_task_id: 0 };
    let told = soon(first.heartbeat(message)).await.expect_err("told by the heartbeat");
    assert_eq!((told.code(), told.message()), (Code::NotFound, "boom"));
}
