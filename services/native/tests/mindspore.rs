//! MindSpore's clusters over a real connection and a gateway in memory, through our own client. The nodes are played: what
//! they say is put into the log as their front end would put it.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpListener;
use tonic::Code;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tripod_client::wire::mindspore_client::MindsporeClient;
use tripod_client::wire::mindspore_plan_request::Change;
use tripod_client::wire::mindspore_scale_request::Change as Scale;
use tripod_client::wire::sessions_client::SessionsClient;
use tripod_client::{Client, Config, Error, Mindspore, wire};
use tripod_gateway::{Gateway, MemoryBackend, Mishap};
use tripod_state::ids::{FeatureLevel, LogIndex, ServiceIncarnation, Term};
use tripod_state::mindspore::cluster::{Echo, Recipient, Request};
use tripod_state::mindspore::limits::NODES_MAX;
use tripod_state::mindspore::{self, Decision, Role, topology};
use tripod_state::{ApplyContext, Command, Envelope, Fault, Scope, State, job, level};

/// A served gateway with a job of one worker and three servers.
struct Service {
    client: Client,
    backend: Arc<MemoryBackend>,
    gateway: Gateway,
    scope: Scope,
    endpoint: String,
}

impl Service {
    async fn start() -> Self {
        let (gateway, backend) = Gateway::in_memory();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let endpoint = listener.local_addr().expect("bound").to_string();
        let incoming = TcpIncoming::from(listener);
        tokio::spawn(Server::builder().add_routes(common::routes(&gateway)).serve_with_incoming(incoming));
        let group = |name: &str, tasks| job::Group { name: name.to_owned(), tasks };
        let groups = vec![group("worker", 1), group("server", 3)];
        let spec = job::Spec { groups, ..job::Spec::of_tasks(4) };
        let create = job::Command::Create { name: "fl".into(), spec, service: ServiceIncarnation(7) };
        let create = Command::Job(create);
        gateway.submit(create).await.expect("no outage").expect("not refused");
        let raise = Command::Level(level::Command::Raise { to: level::NEWEST, heard: Vec::new() });
        gateway.submit(raise).await.expect("no outage").expect("not refused");
        let job = backend.state().job_named("fl").expect("created");
        let client = Client::new(&Config::new(vec![endpoint.clone()])).expect("a good address");
        Self { client, backend, gateway, scope: Scope { job, service: None }, endpoint }
    }

    /// The same with all nodes there, which know of each other.
    async fn ready() -> Self {
        let service = Self::start().await;
        for node in ["s0", "s1", "s2"] {
            service.register(node, Role::Server).await;
        }
        service.register("w0", Role::Worker).await;
        service.all_answer().await;
        service
    }

    fn mindspore(&self) -> Mindspore {
        self.client.mindspore("fl")
    }

    async fn submit(&self, command: mindspore::Command) -> Result<(), Fault> {
        self.gateway.submit(Command::Mindspore(command)).await.expect("no outage").map(|_| ())
    }

    async fn say(&self, request: Request) {
        let command = mindspore::Command::Cluster { scope: self.scope, request };
        self.submit(command).await.expect("not refused");
    }

    async fn decide(&self, decision: Decision) {
        self.submit(mindspore::Command::Lead { scope: self.scope, decision }).await.expect("not refused");
    }

    async fn register(&self, node: &str, role: Role) {
        let register = Request::Register {
            node: node.to_owned(),
            role,
            ip: "10.0.0.9".to_owned(),
            port: 7_000,
            offered_rank: None,
            recovering: false,
        };
        self.say(register).await;
    }

    async fn event(&self, node: &str, event: u32) {
        self.say(Request::Event { node: node.to_owned(), incarnation: None, event }).await;
    }

    /// Until nothing is left to be told.
    async fn all_answer(&self) {
        loop {
            let orders = self.backend.state().cluster_orders(self.scope.job);
            if orders.is_empty() {
                return;
            }
            let echo = |told: Recipient| Echo {
                member: told.member,
                incarnation: told.incarnation,
                order: told.orders[0],
            };
            self.decide(Decision::Echoed { echoes: orders.into_iter().map(echo).collect() }).await;
        }
    }

    fn generation(&self) -> u64 {
        self.backend.state().cluster(self.scope).expect("the job is there").generation
    }
}

/// Another process of a node has come and all nodes know of it, as if that stood in the log before what is proposed now.
fn move_node(backend: &MemoryBackend, scope: Scope) {
    let mut state = backend.state();
    let context = ApplyContext { index: LogIndex(1 << 20), term: Term(1), now_ms: state.now_ms() };
    let apply = |state: &mut State, command| {
        let envelope = Envelope { stamp: None, command: Command::Mindspore(command) };
        state.apply(&context, envelope).reply.expect("not refused");
    };
    let moved = Request::Register {
        node: "s1".into(),
        role: Role::Server,
        ip: "10.0.0.8".into(),
        port: 1,
        offered_rank: None,
        recovering: false,
    };
    apply(&mut state, mindspore::Command::Cluster { scope, request: moved });
    let orders = state.cluster_orders(scope.job).into_iter();
    let echo =
        |told: Recipient| Echo { member: told.member, incarnation: told.incarnation, order: told.orders[0] };
    let echoes = orders.map(echo).collect();
    apply(&mut state, mindspore::Command::Lead { scope, decision: Decision::Echoed { echoes } });
    backend.replace(state);
}

fn refusal<T: std::fmt::Debug>(outcome: Result<T, Error>) -> (Code, String, String) {
    match outcome {
        Err(Error::Refused { code, reason, message, .. }) => (code, reason, message),
        other => panic!("not refused: {other:?}"),
    }
}

fn leave(nodes: &[&str]) -> wire::MindsporeLeave {
    wire::MindsporeLeave { node_ids: nodes.iter().map(ToString::to_string).collect() }
}

#[tokio::test]
async fn a_job_without_nodes_has_no_cluster_of_either_kind() {
    let service = Service::start().await;
    assert_eq!(service.mindspore().state().await.expect("looked"), wire::MindsporeState::default());
    assert_eq!(service.mindspore().nodes().await.expect("looked"), wire::MindsporeNodes::default());
    let events = service.mindspore().events(0, Duration::ZERO).await.expect("looked");
    assert_eq!((events.events.len(), events.missed, events.next), (0, 0, 1));
    let (code, reason, message) = refusal(service.mindspore().plan(&Change::AddServers(1)).await);
    assert_eq!((code, reason.as_str()), (Code::FailedPrecondition, "mindspore-not-ready"));
    assert!(message.contains("`tripod mindspore state --job fl`"), "{message}");
    let (code, reason, _) = refusal(service.client.mindspore("nobody").state().await);
    assert_eq!((code, reason.as_str()), (Code::NotFound, "job-unknown"));
}

#[tokio::test]
async fn nodes_of_both_kinds_are_shown() {
    let service = Service::ready().await;
    let state = service.mindspore().state().await.expect("looked");
    let cluster = state.cluster.expect("it has begun");
    assert_eq!(
        (cluster.state.as_str(), cluster.workers, cluster.servers, cluster.present),
        ("ready", 1, 3, 4)
    );
    assert_eq!((cluster.published, state.topology), (cluster.generation, None));
    let decision =
        service.backend.state().cluster_node(service.scope, "s1").expect("the job").expect("there");
    service.decide(Decision::ClusterSilent { nodes: vec![(decision.member, decision.incarnation)] }).await;
    let nodes = service.mindspore().nodes().await.expect("looked");
    let shown: Vec<_> =
        nodes.cluster.iter().map(|node| (node.node_id.as_str(), node.rank, node.life.as_str())).collect();
    let expected = [
        ("w0", Some(0), "alive"),
        ("s0", Some(0), "alive"),
        ("s1", Some(1), "dead"),
        ("s2", Some(2), "alive"),
    ];
    assert_eq!(shown, expected);
    let dead = &nodes.cluster[2];
    assert!(dead.silent_since_ms > 0 && dead.silent_since_ms < dead.place_until_ms, "{dead:?}");
    assert_eq!((dead.told, dead.address.as_str()), (nodes.cluster_generation, "10.0.0.9:7000"));

    let register = topology::Request::Register {
        node: "0".into(),
        host_name: "gpu-0".into(),
        host_ip: String::new(),
        role: topology::Role::Worker,
        wanted_rank: None,
        dialect: topology::Dialect::V2_10,
    };
    let register = mindspore::Command::Topology { scope: service.scope, request: register };
    service.submit(register).await.expect("not refused");
    let topology = service.mindspore().state().await.expect("looked").topology.expect("it has begun");
    assert_eq!((topology.state.as_str(), topology.expected, topology.registered), ("initializing", 4, 1));
    assert_eq!(topology.release, "2.10");
    let nodes = service.mindspore().nodes().await.expect("looked").topology;
    let [worker] = &nodes[..] else { panic!("{nodes:?}") };
    assert_eq!(
        (worker.node_id.as_str(), worker.role.as_str(), worker.host.as_str()),
        ("0", "MS_WORKER", "gpu-0")
    );
}

#[tokio::test]
async fn what_is_planned_is_what_is_done_and_a_plan_changes_nothing() {
    let service = Service::ready().await;
    let before = service.generation();
    let plan = service.mindspore().plan(&Change::ToServers(2)).await.expect("planned");
    assert_eq!((plan.generation, plan.servers_before, plan.servers_after), (before, 3, 2));
    assert_eq!(plan.leave, Some(leave(&["s2"])));
    let added = service.mindspore().plan(&Change::ToServers(5)).await.expect("planned");
    assert_eq!((added.add_servers, added.free_ranks), (2, vec![3, 4]));
    let named = service.mindspore().plan(&Change::Leave(leave(&["s1"]))).await.expect("planned");
    let ranks: Vec<_> =
        named.nodes.iter().map(|node| (node.node_id.as_str(), node.rank_before, node.rank_after)).collect();
    let expected =
        [("w0", Some(0), Some(0)), ("s0", Some(0), Some(0)), ("s1", Some(1), None), ("s2", Some(2), Some(1))];
    assert_eq!(ranks, expected);
    assert_eq!(service.generation(), before);

    let begun = service.mindspore().scale(&Scale::Leave(leave(&["s1"])), Some(before)).await.expect("begun");
    assert!(begun > before);
    let nodes = service.mindspore().nodes().await.expect("looked").cluster;
    let rank = |id: &str| nodes.iter().find(|node| node.node_id == id).expect("there").rank;
    assert_eq!((rank("s1"), rank("s2")), (None, Some(1)));
}

#[tokio::test]
async fn a_change_that_was_planned_for_another_generation_is_refused() {
    let service = Service::ready().await;
    let planned = service.generation();
    // Another process of a node comes, which begins another generation.
    let moved = Request::Register {
        node: "s1".into(),
        role: Role::Server,
        ip: "10.0.0.8".into(),
        port: 1,
        offered_rank: None,
        recovering: false,
    };
    service.say(moved).await;
    service.all_answer().await;
    let (code, reason, message) =
        refusal(service.mindspore().scale(&Scale::AddServers(1), Some(planned)).await);
    assert_eq!((code, reason.as_str()), (Code::FailedPrecondition, "mindspore-plan"));
    assert!(message.contains("--plan"), "{message}");
    let current = service.generation();
    service.mindspore().scale(&Scale::AddServers(1), Some(current)).await.expect("begun");
}

#[tokio::test]
async fn a_cluster_that_changes_between_the_look_and_the_change_refuses_what_was_planned_before() {
    let service = Service::ready().await;
    let planned = service.generation();
    let (backend, scope) = (Arc::downgrade(&service.backend), service.scope);
    let moved = AtomicBool::new(false);
    service.backend.set_mishaps(move |envelope| {
        let is_planned = matches!(envelope.command, Command::Mindspore(mindspore::Command::Planned { .. }));
        if is_planned && !moved.swap(true, Ordering::Relaxed) {
            move_node(&backend.upgrade().expect("alive while it is asked"), scope);
        }
        Mishap::Success
    });
    let (code, reason, message) =
        refusal(service.mindspore().scale(&Scale::AddServers(1), Some(planned)).await);
    assert_eq!((code, reason.as_str()), (Code::FailedPrecondition, "mindspore-plan"));
    assert!(message.contains("--plan"), "{message}");
    let cluster = service.mindspore().state().await.expect("looked").cluster.expect("there");
    let seen = (cluster.state.as_str(), cluster.generation, cluster.servers);
    assert_eq!(seen, ("ready", planned + 1, 3), "it would have taken the change");
    service.mindspore().scale(&Scale::AddServers(1), Some(planned + 1)).await.expect("begun");
}

#[tokio::test]
async fn an_abort_and_a_switch_can_be_meant_for_one_generation() {
    let service = Service::ready().await;
    let (mindspore, planned) = (service.mindspore(), service.generation());
    let enable = wire::MindsporeSwitch::EnableFls;
    let (_, reason, _) = refusal(mindspore.switch(enable, Bytes::new(), Some(planned + 1)).await);
    assert_eq!(reason, "mindspore-plan");
    let begun = mindspore.scale(&Scale::AddServers(1), Some(planned)).await.expect("begun");
    let (_, reason, _) = refusal(mindspore.abort(Some(planned)).await);
    assert_eq!((reason.as_str(), service.generation()), ("mindspore-plan", begun));
    mindspore.abort(Some(begun)).await.expect("taken back");
}

#[tokio::test]
async fn below_level_11_the_node_that_answers_compares_the_generation() {
    let service = Service::ready().await;
    let pin = level::Command::Pin { level: FeatureLevel(10), by: String::new() };
    service.gateway.submit(Command::Level(pin)).await.expect("no outage").expect("not refused");
    let (mindspore, planned) = (service.mindspore(), service.generation());
    let (_, reason, _) = refusal(mindspore.scale(&Scale::AddServers(1), Some(planned + 1)).await);
    assert_eq!((reason.as_str(), service.generation()), ("mindspore-plan", planned));
    let begun = mindspore.scale(&Scale::AddServers(1), Some(planned)).await.expect("begun");
    assert_eq!((begun, service.generation()), (planned + 1, planned + 1));
}

#[tokio::test]
async fn a_change_whose_answer_is_lost_is_made_once_though_it_has_changed_the_generation() {
    let service = Service::ready().await;
    let planned = service.generation();
    let lost = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&lost);
    service.backend.set_mishaps(move |envelope| match &envelope.command {
        Command::Mindspore(_) if !seen.swap(true, Ordering::Relaxed) => Mishap::UnknownButApplied,
        _ => Mishap::Success,
    });
    let begun = service.mindspore().scale(&Scale::AddServers(1), Some(planned)).await.expect("begun once");
    assert!(lost.load(Ordering::Relaxed), "no answer was lost");
    assert_eq!((begun, service.generation()), (planned + 1, planned + 1));
    let cluster = service.mindspore().state().await.expect("looked").cluster.expect("there");
    let scaling = cluster.scaling.expect("it scales");
    assert_eq!((scaling.direction.as_str(), scaling.servers_before, cluster.servers), ("out", 3, 4));

    service.mindspore().abort(None).await.expect("taken back");
    let (_, reason, _) = refusal(service.mindspore().abort(None).await);
    assert_eq!(reason, "mindspore-nothing-to-abort");
}

/// A session of its own, whose stamps are sent again.
struct Stamped {
    channel: Channel,
    session: wire::OpenSessionResponse,
}

impl Stamped {
    async fn open(service: &Service) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{}", service.endpoint)).expect("an address");
        let channel = endpoint.connect_lazy();
        let open = wire::OpenSessionRequest { wide: true };
        let session = SessionsClient::new(channel.clone()).open(open).await.expect("opened").into_inner();
        Self { channel, session }
    }

    /// One more server, if the cluster is of this generation; the generation that it begins, or the reason word.
    async fn scale(&self, generation: u64, sequence: u64, acknowledged_below: u64) -> Result<u64, String> {
        let wire::OpenSessionResponse { session, session_high } = self.session;
        let request = wire::MindsporeScaleRequest {
            job: "fl".into(),
            change: Some(Scale::AddServers(1)),
            generation: Some(generation),
            stamp: Some(wire::Stamp { session, session_high, sequence, acknowledged_below }),
        };
        match MindsporeClient::new(self.channel.clone()).scale(request).await {
            Ok(begun) => Ok(begun.into_inner().generation),
            Err(status) => {
                let reason = status.metadata().get("tripod-reason").expect("a reason");
                Err(reason.to_str().expect("a word").to_owned())
            }
        }
    }

    async fn close(&self) {
        let wire::OpenSessionResponse { session, session_high } = self.session;
        let close = wire::CloseSessionRequest { session, session_high };
        SessionsClient::new(self.channel.clone()).close(close).await.expect("closed");
    }
}

#[tokio::test]
async fn a_change_that_is_sent_again_with_its_stamp_is_not_held_against_the_generation_that_it_has_begun() {
    let service = Service::ready().await;
    let (stamped, planned) = (Stamped::open(&service).await, service.generation());
    for _ in 0..2 {
        let begun = stamped.scale(planned, 1, 1).await.expect("begun once");
        assert_eq!((begun, service.generation()), (planned + 1, planned + 1));
    }
    assert_eq!(stamped.scale(planned, 2, 1).await.expect_err("refused"), "mindspore-plan");
}

#[tokio::test]
async fn a_change_whose_reply_is_not_remembered_any_more_is_told_that_and_not_that_its_plan_is_outdated() {
    let service = Service::ready().await;
    let (stamped, planned) = (Stamped::open(&service).await, service.generation());
    let begun = stamped.scale(planned, 1, 1).await.expect("begun");
    // The answer to the first one has come.
    assert_eq!(stamped.scale(begun, 2, 2).await.expect_err("it scales"), "mindspore-not-ready");
    assert_eq!(stamped.scale(planned, 1, 1).await.expect_err("forgotten"), "reply-forgotten");
    stamped.close().await;
    assert_eq!(stamped.scale(planned, 1, 1).await.expect_err("gone"), "session-expired");
    assert_eq!(service.generation(), begun);
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_with_its_reason() {
    let service = Service::ready().await;
    let mindspore = service.mindspore();
    for (nodes, told) in
        [(&["s0"][..], "rank 0"), (&["w0"], "is a worker"), (&["x"], "no node `x`"), (&[], "nothing would")]
    {
        let (_, reason, message) = refusal(mindspore.scale(&Scale::Leave(leave(nodes)), None).await);
        assert!(reason == "mindspore-scale" && message.contains(told), "{reason}: {message}");
        assert!(message.contains("`tripod mindspore nodes --job fl`"), "{message}");
    }
    let (code, _, message) = refusal(mindspore.plan(&Change::AddServers(u32::MAX)).await);
    assert_eq!(code, Code::ResourceExhausted, "{message}");
    let many: Vec<String> = (0..=NODES_MAX).map(|number| number.to_string()).collect();
    let many = wire::MindsporeLeave { node_ids: many };
    for outcome in [
        mindspore.plan(&Change::Leave(many.clone())).await.map(|_| ()),
        mindspore.scale(&Scale::Leave(many), None).await.map(|_| ()),
    ] {
        assert_eq!(refusal(outcome).0, Code::InvalidArgument);
    }
    let (code, _, _) =
        refusal(mindspore.switch(wire::MindsporeSwitch::Unspecified, Bytes::new(), None).await);
    assert_eq!(code, Code::InvalidArgument);
    assert_eq!(mindspore.state().await.expect("looked").cluster.expect("there").state, "ready");
}

#[tokio::test]
async fn servers_are_told_by_a_switch_and_nothing_else_is_done_meanwhile() {
    let service = Service::ready().await;
    let told = service.mindspore().switch(wire::MindsporeSwitch::NewInstance, Bytes::from("{}"), None).await;
    let number = told.expect("told");
    assert_eq!(
        service.mindspore().state().await.expect("looked").cluster.expect("there").state,
        "new-instance"
    );
    let nodes = service.mindspore().nodes().await.expect("looked").cluster;
    assert!(nodes.iter().all(|node| (node.role == "server") == (node.next == "switch")), "{nodes:?}");
    let (_, reason, _) = refusal(service.mindspore().scale(&Scale::AddServers(1), None).await);
    assert_eq!(reason, "mindspore-not-ready");
    service.all_answer().await;
    let again = service.mindspore().switch(wire::MindsporeSwitch::DisableFls, Bytes::new(), None).await;
    assert!(again.expect("told") > number);
}

#[tokio::test]
async fn who_waits_for_events_is_told_when_one_comes_and_how_many_are_gone() {
    let service = Service::ready().await;
    let mindspore = service.mindspore();
    let waiting = tokio::spawn(async move {
        loop {
            // One node does not wait for as long as a test may take.
            let found = mindspore.events(0, Duration::from_secs(2)).await.expect("looked");
            if !found.events.is_empty() {
                return found;
            }
        }
    });
    service.event("w0", 12).await;
    let found = waiting.await.expect("it ends");
    let event = wire::MindsporeEvent { number: 1, event: 12, from: "w0".into(), untold: 4 };
    assert_eq!((found.events, found.missed, found.next), (vec![event], 0, 2));
    service.all_answer().await;
    service.event("s1", 13).await;
    let found = service.mindspore().events(0, Duration::ZERO).await.expect("looked");
    assert_eq!((found.events.len(), found.missed, found.next), (1, 1, 3));
    let found = service.mindspore().events(1, Duration::ZERO).await.expect("looked");
    assert_eq!((found.events[0].event, found.missed), (13, 0));
}
