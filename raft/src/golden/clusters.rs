//! What came with level 9: MindSpore's clusters.

use bytes::Bytes;
use tripod_state::ids::{JobId, NodeName};
use tripod_state::mindspore::cluster::{ClusterState, Echo, Incarnation, Order, Request, Scaling, Switch};
use tripod_state::mindspore::{Answer, Command as Clusters, Decision, Member, Refusal, Role, topology};
use tripod_state::{Command, Envelope, Scope};

use super::commands::Sample;
use super::state::Log;

const SCOPE: Scope = Scope { job: JobId(300), service: None };
const MEMBER: Member = Member(70_000);
const PROCESS: Incarnation = Incarnation(70_001);

fn node() -> String {
    "srv-a".to_owned()
}

/// Every kind of command, and every choice within one.
pub(crate) fn commands() -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut add = |name: &'static str, command| {
        samples.push((name, Envelope { stamp: None, command: Command::Mindspore(command) }));
    };
    for (name, request) in topology_requests() {
        add(name, Clusters::Topology { scope: SCOPE, request });
    }
    for (name, request) in cluster_requests() {
        add(name, Clusters::Cluster { scope: SCOPE, request });
    }
    for (name, decision) in decisions() {
        add(name, Clusters::Lead { scope: SCOPE, decision });
    }
    samples
}

fn register_in_topology(node: &str, role: topology::Role, host_ip: &str) -> topology::Request {
    topology::Request::Register {
        node: node.to_owned(),
        host_name: "gpu-7".to_owned(),
        host_ip: host_ip.to_owned(),
        role,
        wanted_rank: (!host_ip.is_empty()).then_some(300),
        dialect: if host_ip.is_empty() { topology::Dialect::V2_0 } else { topology::Dialect::V2_10 },
    }
}

fn topology_requests() -> Vec<(&'static str, topology::Request)> {
    use topology::{Request as R, Role as T};
    vec![
        ("topology/register worker", register_in_topology("0", T::Worker, "10.0.0.9")),
        ("topology/register server", register_in_topology("1", T::Server, "")),
        ("topology/register parameter server", register_in_topology("2", T::ParameterServer, "fd00::9")),
        ("topology/unregister", R::Unregister { node: node() }),
        ("topology/write", R::Write { name: "k".to_owned(), value: Bytes::from_static(b"v") }),
        ("topology/delete", R::Delete { name: "k".to_owned() }),
    ]
}

fn register(node: &str, role: Role, port: u32) -> Request {
    let (node, ip) = (node.to_owned(), "10.0.0.9".to_owned());
    Request::Register { node, role, ip, port, offered_rank: None, recovering: false }
}

fn cluster_requests() -> Vec<(&'static str, Request)> {
    let incarnation = Some(PROCESS);
    let offering = Request::Register {
        node: node(),
        role: Role::Server,
        ip: "fd00::9".to_owned(),
        port: 65_535,
        offered_rank: Some(3),
        recovering: true,
    };
    let body = || Bytes::from_static(b"{}");
    vec![
        ("cluster/register", register("wrk-a", Role::Worker, 40_053)),
        ("cluster/register offering", offering),
        ("cluster/finish", Request::Finish { node: node(), incarnation }),
        ("cluster/done out", Request::Done { node: node(), incarnation, scaling: Scaling::Out }),
        ("cluster/done in", Request::Done { node: node(), incarnation: None, scaling: Scaling::In }),
        ("cluster/event", Request::Event { node: node(), incarnation, event: u32::MAX }),
        ("cluster/scale-out", Request::ScaleOut { workers: 1, servers: 300 }),
        ("cluster/scale-in", Request::ScaleIn { nodes: vec![node(), "srv-b".to_owned()] }),
        ("cluster/abort", Request::Abort),
        ("cluster/switch new", Request::Switch { switch: Switch::NewInstance, body: body() }),
        ("cluster/switch enable", Request::Switch { switch: Switch::EnableFls, body: body() }),
        ("cluster/switch disable", Request::Switch { switch: Switch::DisableFls, body: body() }),
    ]
}

fn decisions() -> Vec<(&'static str, Decision)> {
    use Decision as D;
    let nodes = || vec![(MEMBER, PROCESS)];
    let echoes = orders().into_iter().map(|order| Echo { member: MEMBER, incarnation: PROCESS, order });
    vec![
        ("topology/silent", D::TopologySilent { nodes: vec![MEMBER] }),
        ("topology/heard", D::TopologyHeard { nodes: vec![MEMBER] }),
        ("topology/timed-out", D::TopologyTimedOut { generation: 300 }),
        ("cluster/silent", D::ClusterSilent { nodes: nodes() }),
        ("cluster/heard", D::ClusterHeard { nodes: nodes() }),
        ("cluster/gave-up", D::ClusterGaveUp { nodes: nodes() }),
        ("cluster/timed-out", D::ClusterTimedOut { generation: 300 }),
        ("cluster/switch-ended", D::ClusterSwitchEnded { switch: 300 }),
        ("cluster/echoed", D::Echoed { echoes: echoes.collect() }),
    ]
}

/// Every kind, and with every state of a cluster.
fn orders() -> Vec<Order> {
    use ClusterState as S;
    let generation = 300;
    let scale = |scaling, leaving| Order::Scale { generation, scaling, workers: 1, servers: 2, leaving };
    let states = [
        S::Starting,
        S::Ready,
        S::Exit,
        S::NodeTimeout,
        S::ScaleOut,
        S::ScaleIn,
        S::NewInstance,
        S::EnableFls,
        S::DisableFls,
        S::ScaleOutRollback,
    ];
    let mut orders = vec![
        scale(Scaling::Out, false),
        scale(Scaling::In, true),
        Order::ScaleDone { scaling: Scaling::Out },
        Order::Switch { switch: 300 },
        Order::Event { sequence: 300, event: 7 },
        Order::Finish,
    ];
    orders.extend(states.into_iter().map(|state| Order::Metadata { generation, state }));
    orders
}

/// Every answer.
pub(super) fn answers() -> Vec<(&'static str, Answer)> {
    vec![
        ("registered", Answer::Registered { rank: 3, nodes: 300 }),
        ("unregistered", Answer::Unregistered),
        ("deleted", Answer::Deleted { existed: true }),
        ("written", Answer::Written),
        ("joined", Answer::Joined { member: MEMBER, incarnation: PROCESS, rank: 3, generation: 300 }),
        ("accepted", Answer::Accepted { sequence: 300 }),
        ("scaling", Answer::Scaling { generation: 300 }),
        ("switching", Answer::Switching { switch: 300 }),
        ("noted", Answer::Noted),
    ]
}

/// Every refusal.
pub(super) fn refusals() -> Vec<(&'static str, Refusal)> {
    use Refusal as R;
    let node = || NodeName::from("srv-a");
    vec![
        ("node unknown", R::NodeUnknown { node: node() }),
        ("node left", R::NodeLeft { node: node() }),
        ("other role", R::OtherRole { node: node(), role: Role::Server }),
        ("full", R::Full { role: Role::Worker, places: 300 }),
        ("not initialized", R::NotInitialized),
        ("replaced", R::Replaced { node: node() }),
        ("not formed", R::NotFormed),
        ("ending", R::Ending),
        ("not ready", R::NotReady { state: ClusterState::ScaleIn, nodes: 300 }),
        ("workers fixed", R::WorkersFixed),
        ("nothing to scale", R::NothingToScale),
        ("no server", R::NoServer { node: node() }),
        ("first server", R::FirstServer { node: node() }),
        ("not abortable", R::NotAbortable),
    ]
}

/// A dynamic cluster of which one node is silent and one has left, and a cluster that scales out while a node is lost and
/// an event is told.
pub(super) fn fill(log: &mut Log, scope: Scope) {
    let topology = |log: &mut Log, request| {
        log.apply(Command::Mindspore(Clusters::Topology { scope, request }));
    };
    let cluster = |log: &mut Log, request| {
        log.apply(Command::Mindspore(Clusters::Cluster { scope, request }));
    };
    let lead = |log: &mut Log, decision| {
        log.apply(Command::Mindspore(Clusters::Lead { scope, decision }));
    };
    for node in ["0", "1", "2"] {
        topology(log, register_in_topology(node, topology::Role::Worker, "10.0.0.9"));
        cluster(log, register(node, Role::Worker, 40_053));
    }
    topology(log, topology::Request::Write { name: "k".to_owned(), value: Bytes::from_static(b"v") });
    topology(log, topology::Request::Unregister { node: "2".to_owned() });
    let silent = log.state.topology_node(scope, "1").unwrap().map(|node| node.member);
    lead(log, Decision::TopologySilent { nodes: silent.into_iter().collect() });
    answer_all(log, &lead);
    cluster(log, Request::Event { node: "0".to_owned(), incarnation: None, event: 7 });
    cluster(log, Request::ScaleOut { workers: 0, servers: 1 });
    cluster(log, register("0", Role::Worker, 40_053));
    cluster(log, register("3", Role::Server, 40_054));
    let lost = log.state.cluster_node(scope, "1").unwrap().map(|node| (node.member, node.incarnation));
    lead(log, Decision::ClusterSilent { nodes: lost.into_iter().collect() });
}

fn answer_all(log: &mut Log, lead: &impl Fn(&mut Log, Decision)) {
    let jobs = log.state.cluster_jobs();
    let told = jobs.iter().flat_map(|job| log.state.cluster_orders(*job));
    let echoes =
        told.map(|told| Echo { member: told.member, incarnation: told.incarnation, order: told.orders[0] });
    let echoes = echoes.collect();
    lead(log, Decision::Echoed { echoes });
}
