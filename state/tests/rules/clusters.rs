//! MindSpore's clusters: what keeps the level up, bounds, memory, snapshots that are damaged, and the largest of them.

use bytes::Bytes;
use tripod_state::ids::{FeatureLevel, JobName, Sequence, SessionId};
use tripod_state::mindspore::cluster::{Echo, Incarnation, Order, Request, Switch};
use tripod_state::mindspore::limits::{
    EVENTS_KEPT_MAX, METADATA_BYTES_MAX, METADATA_ENTRIES_MAX, METADATA_VALUE_BYTES_MAX, NODES_MAX,
    WITH_LEAVING_MAX,
};
use tripod_state::mindspore::{Answer, Command as Clusters, Decision, Member, Refusal, Role, topology};
use tripod_state::need::Purpose;
use tripod_state::session::{self, Owner};
use tripod_state::snapshot::Record;
use tripod_state::{Command, Envelope, Fault, Reply, Stamp, State, job, level};

use crate::support::{Machine, SCOPE};

impl Machine {
    /// With job 1, which has so many workers, at the level of the clusters.
    fn with_workers(tasks: u32) -> Self {
        let mut machine = Self::default();
        machine.create("w", tasks).expect("the name is free");
        let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
        machine.apply(Command::Level(raise)).expect("nobody has an id");
        machine
    }

    fn cluster(&mut self, request: Request) -> Reply {
        self.apply(cluster(request))
    }

    fn topology(&mut self, request: topology::Request) -> Reply {
        self.apply(topology(request))
    }

    /// With two workers that know of each other.
    fn formed() -> Self {
        let mut machine = Self::with_workers(2);
        for node in 0..2 {
            machine.cluster(register(node, Role::Worker)).expect("there is a place");
        }
        machine.answer_all();
        machine
    }

    fn generation(&self) -> u64 {
        self.state.cluster(SCOPE).expect("the job is there").generation
    }

    /// All nodes answer all that they are to be told.
    fn answer_all(&mut self) {
        loop {
            let told = self.state.cluster_orders(SCOPE.job);
            if told.is_empty() {
                return;
            }
            let echo = |order: &Order, member, incarnation| Echo { member, incarnation, order: *order };
            let echoes =
                told.iter().map(|told| echo(&told.orders[0], told.member, told.incarnation)).collect();
            self.apply(lead(Decision::Echoed { echoes })).expect("decisions are not refused");
        }
    }
}

fn cluster(request: Request) -> Command {
    Command::Mindspore(Clusters::Cluster { scope: SCOPE, request })
}

fn planned(generation: u64, request: Request) -> Command {
    Command::Mindspore(Clusters::Planned { scope: SCOPE, generation, request })
}

fn scale_out() -> Request {
    Request::ScaleOut { workers: 0, servers: 1 }
}

fn topology(request: topology::Request) -> Command {
    Command::Mindspore(Clusters::Topology { scope: SCOPE, request })
}

fn lead(decision: Decision) -> Command {
    Command::Mindspore(Clusters::Lead { scope: SCOPE, decision })
}

fn register(node: u64, role: Role) -> Request {
    let (node, ip) = (format!("node-{node}"), "10.0.0.1".to_owned());
    Request::Register { node, role, ip, port: 1, offered_rank: None, recovering: false }
}

fn register_in_topology(node: u64) -> topology::Request {
    topology::Request::Register {
        node: format!("node-{node}"),
        host_name: "h".to_owned(),
        host_ip: format!("10.0.{}.{}", node / 256, node % 256),
        role: topology::Role::Worker,
        wanted_rank: None,
        dialect: topology::Dialect::V2_10,
    }
}

fn event(node: u64) -> Request {
    Request::Event { node: format!("node-{node}"), incarnation: None, event: 1 }
}

fn write(name: &str, length: usize) -> topology::Request {
    topology::Request::Write { name: name.to_owned(), value: Bytes::from(vec![1; length]) }
}

#[test]
fn what_was_planned_for_one_generation_is_refused_in_the_next_and_changes_nothing() {
    let mut machine = Machine::formed();
    let generation = machine.generation();
    // Another process of a node comes, and all are told: the cluster is as ready as before.
    let (node, ip) = ("node-1".to_owned(), "10.0.0.2".to_owned());
    let moved =
        Request::Register { node, role: Role::Worker, ip, port: 1, offered_rank: None, recovering: false };
    machine.cluster(moved).expect("it belongs to the cluster");
    machine.answer_all();
    let current = machine.generation();
    assert_eq!(current, generation + 1);
    let before = machine.state.clone();
    for request in [
        scale_out(),
        Request::ScaleIn { nodes: vec!["node-1".to_owned()] },
        Request::Abort,
        Request::Switch { switch: Switch::NewInstance, body: Bytes::from_static(b"{}") },
    ] {
        let refusal = Refusal::Outdated { planned: generation, current };
        assert_eq!(machine.apply(planned(generation, request)), Err(Fault::Mindspore(refusal)));
        assert!(machine.state == before, "something has changed");
    }
    let scaled = machine.apply(planned(current, scale_out()));
    assert!(matches!(scaled, Ok(tripod_state::Answer::Mindspore(Answer::Scaling { .. }))), "{scaled:?}");
}

#[test]
fn what_was_planned_and_comes_again_with_its_stamp_is_answered_as_before() {
    let mut machine = Machine::formed();
    let session = SessionId::of_client(9);
    let open = session::Command::OpenFor { id: session, owner: Owner::Client(None) };
    machine.apply(Command::Session(open)).expect("there is room");
    let generation = machine.generation();
    let stamp =
        |sequence| Some(Stamp { session, sequence: Sequence(sequence), acknowledged_below: Sequence(1) });
    let first = machine.apply_stamped(stamp(1), planned(generation, scale_out()));
    let begun = Answer::Scaling { generation: generation + 1 };
    assert_eq!(first, Ok(tripod_state::Answer::Mindspore(begun)));
    let other = machine.apply_stamped(stamp(2), planned(generation, Request::Abort));
    let refusal = Refusal::Outdated { planned: generation, current: generation + 1 };
    assert_eq!(other, Err(Fault::Mindspore(refusal)));
    machine.cluster(Request::Abort).expect("it can be taken back");
    let before = machine.generation();
    assert_eq!(machine.apply_stamped(stamp(1), planned(generation, scale_out())), first);
    assert_eq!(machine.apply_stamped(stamp(2), planned(generation, Request::Abort)), other);
    // As a node has sent it that did not know yet that the level was raised.
    assert_eq!(machine.apply_stamped(stamp(1), cluster(scale_out())), first);
    assert_eq!(machine.generation(), before);
    // A build below that level could not read what is remembered of it.
    let pin = level::Command::Pin { level: FeatureLevel(10), by: String::new() };
    machine.apply(Command::Level(pin)).expect("nothing needs more");
    assert!(machine.state.records().all(|record| !format!("{record:?}").contains("Outdated")));
    // What was refused and is forgotten is not done after all: it was meant for another generation.
    assert_eq!(machine.apply_stamped(stamp(2), cluster(Request::Abort)), Err(Fault::ReplyForgotten));
    assert_eq!(machine.apply_stamped(stamp(1), cluster(scale_out())), first);
    assert_eq!(machine.generation(), before);
}

#[test]
fn below_level_11_nothing_that_is_planned_comes_into_the_log() {
    let mut machine = Machine::formed();
    let (needs, level) = (FeatureLevel(11), FeatureLevel(10));
    let pin = level::Command::Pin { level, by: String::new() };
    machine.apply(Command::Level(pin)).expect("nothing needs more");
    let command = "cluster/planned".to_owned();
    let refusal = level::Refusal::TooLow { command, needs, level };
    let refused = machine.apply(planned(machine.generation(), scale_out()));
    assert_eq!(refused, Err(Fault::Level(refusal)));
    machine.cluster(scale_out()).expect("that is older");
}

#[test]
fn a_cluster_keeps_the_level_up_and_is_named() {
    let pin = |level| Command::Level(level::Command::Pin { level: FeatureLevel(level), by: String::new() });
    for begin in [cluster(register(1, Role::Worker)), topology(register_in_topology(1))] {
        let mut machine = Machine::with_workers(1);
        machine.apply(begin).expect("there is a place");
        let jobs = vec![JobName::from("w")];
        let refusal = level::Refusal::Clusters { needs: FeatureLevel(9), count: 1, jobs };
        assert_eq!(machine.apply(pin(8)), Err(Fault::Level(refusal)));
        machine.apply(Command::Job(job::Command::Delete { name: "w".to_owned() })).expect("it is there");
        machine.apply(pin(8)).expect("nothing needs more");
    }
}

#[test]
fn lists_of_nodes_are_no_longer_than_clusters_can_be() {
    let most = usize::try_from(WITH_LEAVING_MAX).expect("it is small");
    let too_long = |command: Command| command.check_lists(&|_| 1).is_err();
    let process = (Member(1), Incarnation(1));
    let echo = Echo { member: Member(1), incarnation: Incarnation(1), order: Order::Finish };
    let silent = |count: usize| lead(Decision::ClusterSilent { nodes: vec![process; count] });
    let echoed = |count: usize| lead(Decision::Echoed { echoes: vec![echo; count] });
    assert!(!too_long(silent(most)) && too_long(silent(most + 1)));
    assert!(!too_long(echoed(most)) && too_long(echoed(most + 1)));
    let most = usize::try_from(NODES_MAX).expect("it is small");
    let marked = |count: usize| lead(Decision::TopologyHeard { nodes: vec![Member(1); count] });
    let leaving = |count: usize| cluster(Request::ScaleIn { nodes: vec![String::new(); count] });
    assert!(!too_long(marked(most)) && too_long(marked(most + 1)));
    assert!(!too_long(leaving(most)) && too_long(leaving(most + 1)));
    let planned = |count: usize| planned(1, Request::ScaleIn { nodes: vec![String::new(); count] });
    assert!(!too_long(planned(most)) && too_long(planned(most + 1)));
}

#[test]
fn events_that_a_node_does_not_have_are_bounded_and_not_dropped() {
    let mut machine = Machine::with_workers(2);
    for node in 0..2 {
        machine.cluster(register(node, Role::Worker)).expect("there is a place");
    }
    machine.answer_all();
    for _ in 0..EVENTS_KEPT_MAX {
        machine.cluster(event(0)).expect("there is room");
    }
    let full = machine.cluster(event(0));
    assert!(matches!(full, Err(Fault::LimitExceeded { limit: EVENTS_KEPT_MAX, .. })), "{full:?}");
    machine.answer_all();
    machine.cluster(event(1)).expect("there is room again");
    assert_eq!(machine.state.cluster(SCOPE).map(|view| view.events), Ok(1));
}

#[test]
fn metadata_entries_are_bounded() {
    let mut machine = Machine::with_workers(1);
    for number in 0..METADATA_ENTRIES_MAX {
        machine.topology(write(&number.to_string(), 1)).expect("there is room");
    }
    let full = machine.topology(write("one more", 1));
    assert!(matches!(full, Err(Fault::LimitExceeded { limit: METADATA_ENTRIES_MAX, .. })), "{full:?}");
    machine.topology(write("0", 2)).expect("it is there already");
    machine.topology(write("1", 0)).expect("it goes");
    machine.topology(write("one more", 1)).expect("there is room again");
}

#[test]
fn bytes_of_metadata_are_bounded() {
    let mut machine = Machine::with_workers(1);
    let large = Bytes::from(vec![1; METADATA_VALUE_BYTES_MAX]);
    let mut write = |name: &str, bytes: usize| {
        let (name, value) = (name.to_owned(), large.slice(..bytes));
        machine.topology(topology::Request::Write { name, value })
    };
    let values = usize::try_from(METADATA_BYTES_MAX).expect("it fits memory") / METADATA_VALUE_BYTES_MAX;
    for number in 1..values {
        write(&number.to_string(), METADATA_VALUE_BYTES_MAX).expect("there is room");
    }
    // The names count, too.
    let last = write("last", METADATA_VALUE_BYTES_MAX);
    assert!(matches!(last, Err(Fault::LimitExceeded { limit: METADATA_BYTES_MAX, .. })), "{last:?}");
    write("last", METADATA_VALUE_BYTES_MAX / 2).expect("there is room");
    write("last", METADATA_VALUE_BYTES_MAX / 2 + 1).expect("what it says instead is counted alone");
    assert!(write("another", METADATA_VALUE_BYTES_MAX / 2).is_err());
}

#[test]
fn what_begins_in_a_cluster_needs_memory_first_and_what_ends_it_never() {
    let mut machine = Machine::with_workers(1);
    machine.topology(write("k", 10)).expect("there is room");
    let purpose = |command| machine.state.need(&Envelope { stamp: None, command }, 100).purpose;
    assert_eq!(purpose(cluster(register(1, Role::Worker))), Purpose::GoOn);
    assert_eq!(purpose(topology(register_in_topology(1))), Purpose::GoOn);
    assert_eq!(purpose(cluster(event(1))), Purpose::GoOn);
    assert_eq!(purpose(cluster(scale_out())), Purpose::Begin);
    assert_eq!(purpose(planned(1, scale_out())), Purpose::Begin);
    assert_eq!(purpose(planned(1, Request::Abort)), Purpose::Nothing);
    assert_eq!(purpose(topology(write("k", 11))), Purpose::Begin);
    assert_eq!(purpose(topology(write("k", 10))), Purpose::Nothing);
    assert_eq!(purpose(topology(write("l", 0))), Purpose::Nothing);
    assert_eq!(
        purpose(cluster(Request::Finish { node: "n".to_owned(), incarnation: None })),
        Purpose::Nothing
    );
    assert_eq!(purpose(lead(Decision::Echoed { echoes: Vec::new() })), Purpose::Nothing);
}

/// With clusters of both kinds, of which each has two nodes and something between them.
fn rich() -> State {
    let mut machine = Machine::with_workers(2);
    for node in 0..2 {
        machine.cluster(register(node, Role::Worker)).expect("there is a place");
        machine.topology(register_in_topology(node)).expect("there is a place");
    }
    machine.cluster(event(0)).expect("all are there");
    machine.topology(write("k", 1)).expect("there is room");
    machine.state
}

#[test]
fn damaged_records_of_clusters_are_refused() {
    let records: Vec<Record> = rich().records().collect();
    assert_eq!(State::from_records(records.iter().cloned()).expect("they are whole"), rich());
    for place in 0..records.len() {
        let missing = records.iter().enumerate().filter(|(at, _)| *at != place);
        assert!(State::from_records(missing.map(|(_, record)| record.clone())).is_err(), "{place}");
        let twice = records
            .iter()
            .enumerate()
            .flat_map(|(at, record)| std::iter::repeat_n(record.clone(), if at == place { 2 } else { 1 }));
        assert!(State::from_records(twice).is_err(), "{place}");
    }
}

/// Their number decides how long a command may take: it must not grow with the square of it.
#[test]
fn the_largest_clusters_come_about_scale_and_end() {
    let most = u32::try_from(NODES_MAX).expect("it is small");
    let mut machine = Machine::with_workers(most - 1);
    for node in 0..NODES_MAX - 1 {
        machine.topology(register_in_topology(node)).expect("there is a place");
        machine.cluster(register(node, Role::Worker)).expect("there is a place");
    }
    let hosts = machine.state.topology_hosts(SCOPE, "MS_WORKER").expect("the job is there");
    assert_eq!(hosts.map(|hosts| hosts.len()), Some(most as usize - 1));
    machine.answer_all();
    let scaled = machine.cluster(scale_out());
    assert!(matches!(scaled, Ok(tripod_state::Answer::Mindspore(Answer::Scaling { .. }))), "{scaled:?}");
    machine.answer_all();
    for node in 0..NODES_MAX - 1 {
        machine.cluster(register(node, Role::Worker)).expect("it belongs to the cluster");
    }
    machine.cluster(register(NODES_MAX, Role::Server)).expect("there is a place");
    for node in 0..=NODES_MAX {
        machine.cluster(Request::Finish { node: format!("node-{node}"), incarnation: None }).ok();
    }
    machine.answer_all();
    assert!(machine.state.cluster_members(SCOPE.job).is_empty(), "all have been told");
    assert_eq!(machine.state.bytes(), machine.state.recounted_bytes());
}
