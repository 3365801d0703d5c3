//! Random things that happen to two clusters of few nodes. Whoever plays the leader finds out what there is to find.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tripod_state::State;
use tripod_state::ids::TimeMs;
use tripod_state::mindspore::cluster::{self, Echo, Incarnation, Scaling, Switch};
use tripod_state::mindspore::topology;
use tripod_state::mindspore::{Command, Decision, Member, Role};

use super::SCOPE;

/// The first is a worker.
const NODES: [&str; 7] = ["0", "1", "2", "3", "b", "c", "d"];

/// Something that happens.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Wait(u64),
    Register {
        node: usize,
        port: u32,
        offered_rank: Option<u32>,
        recovering: bool,
    },
    Finish {
        node: usize,
        process: Process,
    },
    Done {
        node: usize,
        scaling: Scaling,
        process: Process,
    },
    Event {
        node: usize,
        process: Process,
    },
    ScaleOut(u32),
    ScaleIn(Vec<usize>),
    Abort,
    Switch,
    SwitchEnded,
    Silent(Vec<usize>),
    Heard(Vec<usize>),
    Due,
    /// These nodes, or all, answer the first thing that they are to be told.
    Answer(Option<usize>),
    Topology(topology::Request),
    TopologySilent(Vec<usize>),
    TopologyHeard(Vec<usize>),
    TopologyTimedOut,
}

/// Which process of a node speaks.
#[derive(Debug, Clone, Copy)]
pub(super) enum Process {
    Unknown,
    Current,
    Earlier,
}

pub(super) fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..=most)
}

fn step() -> impl Strategy<Value = Step> {
    let node = || 0..NODES.len();
    let process = || select(vec![Process::Unknown, Process::Current, Process::Current, Process::Earlier]);
    let some = || vec(node(), 1..3);
    let offered = select(vec![None, None, None, Some(0), Some(1), Some(7)]);
    let register = (node(), 1_u32..3, offered, select(vec![false, false, false, true]));
    let register = register.prop_map(|(node, port, offered_rank, recovering)| Step::Register {
        node,
        port,
        offered_rank,
        recovering,
    });
    let scaling = select(vec![Scaling::Out, Scaling::In]);
    prop_oneof![
        3 => select(vec![100_u64, 5_000, 30_000]).prop_map(Step::Wait).boxed(),
        16 => register.boxed(),
        2 => (node(), process()).prop_map(|(node, process)| Step::Finish { node, process }).boxed(),
        8 => (node(), scaling, process())
            .prop_map(|(node, scaling, process)| Step::Done { node, scaling, process })
            .boxed(),
        4 => (node(), process()).prop_map(|(node, process)| Step::Event { node, process }).boxed(),
        3 => (0_u32..3).prop_map(Step::ScaleOut).boxed(),
        3 => some().prop_map(Step::ScaleIn).boxed(),
        1 => Just(Step::Abort).boxed(),
        1 => Just(Step::Switch).boxed(),
        1 => Just(Step::SwitchEnded).boxed(),
        3 => some().prop_map(Step::Silent).boxed(),
        2 => some().prop_map(Step::Heard).boxed(),
        2 => Just(Step::Due).boxed(),
        12 => prop_oneof![3 => Just(None), 2 => node().prop_map(Some)].prop_map(Step::Answer).boxed(),
        16 => topology_request().prop_map(Step::Topology).boxed(),
        2 => some().prop_map(Step::TopologySilent).boxed(),
        1 => some().prop_map(Step::TopologyHeard).boxed(),
        1 => Just(Step::TopologyTimedOut).boxed(),
    ]
}

fn topology_request() -> impl Strategy<Value = topology::Request> {
    let node = || (0..NODES.len()).prop_map(|node| NODES[node].to_owned());
    let role = select(topology::Role::ALL.to_vec());
    let wanted = select(vec![None, None, None, Some(0), Some(1)]);
    let host = select(vec!["", "", "10.0.0.1", "10.0.0.2"]);
    let register = (node(), role, wanted, host).prop_map(|(node, role, wanted_rank, host)| {
        let (host_name, host_ip) = (format!("host-{host}"), host.to_owned());
        let dialect = if host.is_empty() { topology::Dialect::V2_0 } else { topology::Dialect::V2_10 };
        topology::Request::Register { node, host_name, host_ip, role, wanted_rank, dialect }
    });
    let name = || select(vec!["k".to_owned(), "MS_WORKER0".to_owned(), "l".to_owned()]);
    let value = select(vec![Bytes::new(), Bytes::from_static(b"v"), Bytes::from_static(b"longer")]);
    prop_oneof![
        6 => register.boxed(),
        3 => node().prop_map(|node| topology::Request::Unregister { node }).boxed(),
        2 => (name(), value).prop_map(|(name, value)| topology::Request::Write { name, value }).boxed(),
        1 => name().prop_map(|name| topology::Request::Delete { name }).boxed(),
    ]
}

impl Step {
    pub(super) fn after_ms(&self) -> u64 {
        match self {
            Self::Wait(ms) => *ms,
            _ => 0,
        }
    }

    /// What is proposed for it in this state.
    pub(super) fn commands(&self, state: &State) -> Vec<Command> {
        let ask = |request| vec![Command::Cluster { scope: SCOPE, request }];
        let lead = |decision| vec![Command::Lead { scope: SCOPE, decision }];
        let process = |node: usize, process: Process| match process {
            Process::Unknown => None,
            Process::Current => Some(current(state, node).1),
            Process::Earlier => Some(Incarnation(0)),
        };
        let all = |nodes: &[usize]| nodes.iter().map(|node| current(state, *node)).collect();
        let members = |nodes: &[usize]| nodes.iter().map(|node| topology_member(state, *node)).collect();
        match self {
            Self::Wait(_) => Vec::new(),
            Self::Register { node, port, offered_rank, recovering } => ask(cluster::Request::Register {
                node: NODES[*node].to_owned(),
                role: if *node == 0 { Role::Worker } else { Role::Server },
                ip: "10.0.0.1".to_owned(),
                port: *port,
                offered_rank: *offered_rank,
                recovering: *recovering,
            }),
            Self::Finish { node, process: by } => ask(cluster::Request::Finish {
                node: NODES[*node].to_owned(),
                incarnation: process(*node, *by),
            }),
            Self::Done { node, scaling, process: by } => ask(cluster::Request::Done {
                node: NODES[*node].to_owned(),
                incarnation: process(*node, *by),
                scaling: *scaling,
            }),
            Self::Event { node, process: by } => ask(cluster::Request::Event {
                node: NODES[*node].to_owned(),
                incarnation: process(*node, *by),
                event: 7,
            }),
            Self::ScaleOut(servers) => ask(cluster::Request::ScaleOut { workers: 0, servers: *servers }),
            Self::ScaleIn(nodes) => ask(cluster::Request::ScaleIn {
                nodes: nodes.iter().map(|node| NODES[*node].to_owned()).collect(),
            }),
            Self::Abort => ask(cluster::Request::Abort),
            Self::Switch => {
                ask(cluster::Request::Switch { switch: Switch::NewInstance, body: Bytes::from_static(b"{}") })
            }
            Self::SwitchEnded => {
                let switch = state.cluster_switch(SCOPE.job).map_or(0, |(number, _, _)| number);
                lead(Decision::ClusterSwitchEnded { switch })
            }
            Self::Silent(nodes) => lead(Decision::ClusterSilent { nodes: all(nodes) }),
            Self::Heard(nodes) => lead(Decision::ClusterHeard { nodes: all(nodes) }),
            Self::Due => {
                // The leader's clock is not behind the log.
                let due = state.cluster_due(SCOPE.job, TimeMs(state.now_ms().0));
                due.into_iter().flat_map(lead).collect()
            }
            Self::Answer(node) => {
                let told = state.cluster_orders(SCOPE.job).into_iter();
                let told = told.filter(|told| node.is_none_or(|node| told.node.as_str() == NODES[node]));
                let echoes = told.map(|told| Echo {
                    member: told.member,
                    incarnation: told.incarnation,
                    order: told.orders[0],
                });
                lead(Decision::Echoed { echoes: echoes.collect() })
            }
            Self::Topology(request) => vec![Command::Topology { scope: SCOPE, request: request.clone() }],
            Self::TopologySilent(nodes) => lead(Decision::TopologySilent { nodes: members(nodes) }),
            Self::TopologyHeard(nodes) => lead(Decision::TopologyHeard { nodes: members(nodes) }),
            Self::TopologyTimedOut => {
                let generation = state.topology(SCOPE).map_or(0, |view| view.generation);
                lead(Decision::TopologyTimedOut { generation })
            }
        }
    }
}

fn current(state: &State, node: usize) -> (Member, Incarnation) {
    let node = state.cluster_node(SCOPE, NODES[node]).expect("the job is there");
    node.map_or((Member(0), Incarnation(0)), |node| (node.member, node.incarnation))
}

fn topology_member(state: &State, node: usize) -> Member {
    let node = state.topology_node(SCOPE, NODES[node]).expect("the job is there");
    node.map_or(Member(0), |node| node.member)
}
