//! Ids of nodes, and the one change of the members that is under way.

use tripod_state::ids::{CertificateName, ChangeId, FeatureLevel, NodeId};
use tripod_state::level::{self, Command as Level};
use tripod_state::member::{Addresses, Change, Ending, Listed, Open, Refusal, Suffrage};
use tripod_state::{Answer, Command, Effect, Fault, Reply, State, member, restore};

use crate::support::Machine;

fn listed(nodes: &[(u64, bool)]) -> Vec<Listed> {
    let one = |(node, voter): &(u64, bool)| Listed {
        node: NodeId(*node),
        peer: format!("h:{node}"),
        voter: *voter,
    };
    nodes.iter().map(one).collect()
}

/// Three voters, of a cluster that was founded with them.
fn founded() -> Machine {
    let mut machine = Machine::default();
    machine.state.follow_members(&listed(&[(1, true), (2, true), (3, true)]));
    machine
}

impl Machine {
    fn member(&mut self, command: member::Command) -> Reply {
        self.apply(Command::Member(command))
    }

    fn begin(&mut self, change: Change) -> Result<Open, Fault> {
        match self.member(member::Command::Begin { change, by: "root@ops".to_owned() })? {
            Answer::Change(open) => Ok(*open),
            other => panic!("{other:?}"),
        }
    }

    fn join(&mut self, peer: &str, token: u64) -> Result<u64, Fault> {
        match self.member(member::Command::Join { peer: peer.to_owned(), token })? {
            Answer::Node(node) => Ok(node.0),
            other => panic!("{other:?}"),
        }
    }

    fn end(&mut self, change: ChangeId) -> Reply {
        self.member(member::Command::End { change, ending: Ending::Done })
    }

    fn announce(&mut self, node: u64) -> Reply {
        let addresses = Addresses {
            client: format!("c:{node}"),
            http: String::new(),
            job_host: String::new(),
            job_port_first: 1,
            job_port_count: 1,
        };
        self.member(member::Command::Announce { node: NodeId(node), addresses })
    }

    fn announced(&self) -> Vec<u64> {
        self.state.members().into_iter().map(|(node, _)| node.0).collect()
    }
}

fn add(peer: &str) -> Change {
    Change::Add { peer: peer.to_owned() }
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, Fault>) -> Refusal {
    match outcome {
        Err(Fault::Member(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn ids_follow_those_that_were_given_by_hand_and_never_come_back() {
    let mut machine = founded();
    let open = machine.begin(add("n:1")).expect("free");
    assert_eq!((open.node, open.id), (NodeId(4), ChangeId(machine.index)));
    machine.state.follow_members(&listed(&[(1, true), (2, true), (3, true), (4, false)]));
    machine.end(open.id).expect("open");
    // Removed by a membership entry: in the same step its id is spent.
    machine.state.follow_members(&listed(&[(1, true), (2, true), (3, true)]));
    assert!(machine.state.registry().is_removed(NodeId(4)));
    let again = machine.begin(add("n:1")).expect("the address is free again");
    assert_eq!(again.node, NodeId(5));
}

#[test]
fn an_id_of_a_node_that_was_never_added_is_spent_too() {
    let mut machine = founded();
    let open = machine.begin(add("n:1")).expect("free");
    machine.member(member::Command::Cancel { change: open.id }).expect("open");
    assert!(machine.state.registry().open().expect("the leader has yet to end it").cancelled);
    let ending = Ending::Cancelled;
    machine.member(member::Command::End { change: open.id, ending }).expect("open");
    assert!(machine.state.registry().is_removed(NodeId(4)));
    assert_eq!(machine.begin(add("n:1")).expect("free").node, NodeId(5));
}

#[test]
fn one_change_at_a_time_and_the_same_one_again_goes_on() {
    let mut machine = founded();
    let open = machine.begin(Change::Remove { node: NodeId(3) }).expect("known");
    assert_eq!(machine.begin(Change::Remove { node: NodeId(3) }), Ok(open.clone()));
    let other = refused(machine.begin(Change::Demote { node: NodeId(2) }));
    assert_eq!(other, Refusal::InProgress { open: Box::new(open.clone()) });
    assert_eq!(refused(machine.end(ChangeId(77))), Refusal::NotOpen { change: ChangeId(77) });
    machine.end(open.id).expect("open");
    assert_eq!(machine.state.registry().last().expect("ended").open, open);
    machine.begin(Change::Demote { node: NodeId(2) }).expect("nothing is under way");
}

#[test]
fn unknown_and_removed_nodes_and_taken_addresses_are_refused() {
    let mut machine = founded();
    assert_eq!(
        refused(machine.begin(Change::Promote { node: NodeId(9) })),
        Refusal::NodeUnknown { node: NodeId(9) }
    );
    let taken = Refusal::AddressTaken { node: NodeId(2), peer: "h:2".to_owned() };
    assert_eq!(refused(machine.begin(add("h:2"))), taken);
    assert_eq!(refused(machine.begin(Change::Move { node: NodeId(1), peer: "h:2".to_owned() })), taken);
    assert_eq!(refused(machine.begin(Change::Replace { old: NodeId(1), peer: "h:2".to_owned() })), taken);
    assert_eq!(refused(machine.join("h:2", 7)), taken);
    machine.state.follow_members(&listed(&[(1, true), (2, true)]));
    assert_eq!(
        refused(machine.begin(Change::Promote { node: NodeId(3) })),
        Refusal::NodeRemoved { node: NodeId(3) }
    );
    assert_eq!(machine.state.registry().next(), NodeId(4), "a refusal gives no id");
}

#[test]
fn a_node_that_asks_again_gets_the_same_id_until_it_took_part() {
    let mut machine = founded();
    assert_eq!(machine.join("n:1", 7), Ok(4));
    assert_eq!(machine.join("n:1", 7), Ok(4), "its first answer was lost");
    let other = Refusal::AddressTaken { node: NodeId(4), peer: "n:1".to_owned() };
    assert_eq!(refused(machine.join("n:1", 8)), other, "another process at the same address");
    let open = machine.state.registry().open().expect("it is being added").id;
    machine.state.follow_members(&listed(&[(1, true), (2, true), (3, true)]));
    let with_it = [
        listed(&[(1, true), (2, true), (3, true)]),
        vec![Listed { node: NodeId(4), peer: "n:1".to_owned(), voter: false }],
    ];
    machine.state.follow_members(&with_it.concat());
    machine.end(open).expect("open");
    assert_eq!(machine.join("n:1", 7), Ok(4));
    machine.announce(4).expect("a member");
    assert_eq!(refused(machine.join("n:1", 7)), Refusal::HadData { node: NodeId(4) });
}

#[test]
fn the_arrival_of_a_node_is_told_apart_from_what_operators_want() {
    let mut machine = founded();
    machine.join("n:1", 7).expect("free");
    let arrival = machine.state.registry().open().expect("it arrives").clone();
    assert!(arrival.is_arrival());
    machine.end(arrival.id).expect("open");
    assert!(!machine.begin(add("n:2")).expect("free").is_arrival());
}

#[test]
fn a_reserved_id_is_for_the_first_that_asks_from_its_address() {
    let mut machine = founded();
    let open = machine.begin(Change::Replace { old: NodeId(2), peer: "n:1".to_owned() }).expect("free");
    assert_eq!(open.node, NodeId(4));
    assert!(!open.is_arrival());
    assert_eq!(machine.join("n:1", 7), Ok(4), "also while the change is under way");
    assert_eq!(refused(machine.join("n:2", 8)), Refusal::InProgress { open: Box::new(open) });
    assert_eq!(machine.state.registry().node(NodeId(4)).expect("known").suffrage, Suffrage::Expected);
}

#[test]
fn a_removed_node_is_no_address_any_more_and_cannot_announce_itself_again() {
    let mut machine = founded();
    for node in 1..=3 {
        machine.announce(node).expect("a member");
    }
    let told = machine.state.follow_members(&listed(&[(1, true), (2, true)]));
    assert_eq!(told, [Effect::MemberChanged]);
    assert_eq!(machine.announced(), [1, 2]);
    assert_eq!(refused(machine.announce(3)), Refusal::NodeRemoved { node: NodeId(3) });
    assert!(machine.state.follow_members(&listed(&[(1, true), (2, true)])).is_empty(), "it is known");
}

fn raise(machine: &mut Machine) {
    let heard = machine.state.registry().nodes().map(|(node, _)| node).collect();
    machine.apply(Command::Level(Level::Raise { to: level::NEWEST, heard })).expect("all support it");
}

fn bind(node: u64, name: &str) -> Command {
    Command::Member(member::Command::Bind { node: NodeId(node), name: name.into() })
}

#[test]
fn s22_the_first_name_of_a_nodes_certificate_stays_and_is_no_other_nodes() {
    let mut machine = founded();
    let early = machine.apply(bind(1, "n1"));
    assert!(matches!(early, Err(Fault::Level(level::Refusal::TooLow { .. }))), "{early:?}");
    raise(&mut machine);
    let digest = machine.state.digest();
    assert_eq!(machine.apply(bind(1, "n1")), Ok(Answer::Done));
    assert_ne!(machine.state.digest(), digest);
    let before = machine.state.clone();
    assert_eq!(machine.apply(bind(1, "n1")), Ok(Answer::Done), "repeated without harm");
    let bound = Refusal::NameBound { node: NodeId(1), bound: "n1".into() };
    assert_eq!(refused(machine.apply(bind(1, "n2"))), bound);
    assert_eq!(
        refused(machine.apply(bind(2, "n1"))),
        Refusal::NameTaken { node: NodeId(1), name: "n1".into() }
    );
    assert_eq!(refused(machine.apply(bind(9, "n9"))), Refusal::NodeUnknown { node: NodeId(9) });
    let long = "n".repeat(64);
    for name in ["", "N1", "..", "n/1", long.as_str()] {
        assert_eq!(refused(machine.apply(bind(2, name))), Refusal::NameInvalid { node: NodeId(2) }, "{name}");
    }
    assert_eq!(machine.state, before, "a refusal changes nothing");
    let read = State::from_records(machine.state.records()).expect("its own records");
    assert_eq!((&read, read.digest()), (&machine.state, machine.state.digest()));
    assert_eq!(machine.state.bytes(), machine.state.recounted_bytes());
    assert_eq!(read.certificate_name(NodeId(1)), Some(&CertificateName::from("n1")));
}

#[test]
fn s22_who_takes_the_place_of_a_node_may_have_its_certificate_and_has_another_id() {
    let mut machine = founded();
    raise(&mut machine);
    machine.apply(bind(2, "n2")).expect("nobody has it");
    let open = machine.begin(Change::Replace { old: NodeId(2), peer: "n:1".to_owned() }).expect("free");
    let taken = Refusal::NameTaken { node: NodeId(2), name: "n2".into() };
    assert_eq!(refused(machine.apply(bind(3, "n2"))), taken.clone(), "another one stays another one");
    assert_eq!(machine.apply(bind(4, "n2")), Ok(Answer::Done));
    let mut members = listed(&[(1, true), (3, true)]);
    members.push(Listed { node: NodeId(4), peer: "n:1".to_owned(), voter: true });
    machine.state.follow_members(&members);
    machine.end(open.id).expect("open");
    assert_eq!(
        (machine.state.certificate_name(NodeId(2)), machine.state.certificate_names().count()),
        (None, 1)
    );
    assert_eq!(refused(machine.apply(bind(2, "n2"))), Refusal::NodeRemoved { node: NodeId(2) });
    let taken = Refusal::NameTaken { node: NodeId(4), name: "n2".into() };
    assert_eq!(refused(machine.apply(bind(3, "n2"))), taken);
}

#[test]
fn a_name_is_free_when_the_change_has_ended_without_the_node_that_had_it() {
    let mut machine = founded();
    raise(&mut machine);
    machine.apply(bind(2, "n2")).expect("nobody has it");
    let open = machine.begin(Change::Replace { old: NodeId(2), peer: "n:1".to_owned() }).expect("free");
    machine.apply(bind(4, "n2")).expect("it is to take the place of node 2");
    machine.member(member::Command::Cancel { change: open.id }).expect("open");
    let ending = Ending::Cancelled;
    machine.member(member::Command::End { change: open.id, ending }).expect("open");
    assert_eq!(machine.state.certificate_name(NodeId(4)), None, "its id is spent");
    assert_eq!(machine.state.certificate_name(NodeId(2)), Some(&CertificateName::from("n2")));
    assert_eq!(machine.state.bytes(), machine.state.recounted_bytes());
}

#[test]
fn below_its_level_and_in_another_cluster_no_name_is_known() {
    let mut machine = founded();
    raise(&mut machine);
    machine.apply(bind(1, "n1")).expect("nobody has it");
    let other = machine.state.clone().restored("other", restore::Jobs::Kept);
    assert_eq!(other.certificate_names().count(), 0);
    let pin = Level::Pin { level: FeatureLevel(10), by: "ops".to_owned() };
    machine.apply(Command::Level(pin)).expect("nothing stands in the way");
    assert_eq!(machine.state.certificate_name(NodeId(1)), None);
    machine.state.fits(FeatureLevel(10)).expect("a build of that level reads it");
    let read = State::from_records(machine.state.records()).expect("its own records");
    assert_eq!(read, machine.state);
}

/// A snapshot of a program without a registry, and the log from the beginning, lead to the same state.
#[test]
fn a_registry_can_be_made_up_from_the_members_alone() {
    let mut replayed = founded();
    for node in 1..=3 {
        replayed.announce(node).expect("a member");
    }
    let mut before = Machine::default();
    for node in 1..=3 {
        before.announce(node).expect("nobody is known to be removed");
    }
    let mut loaded = State::from_records(before.state.records()).expect("whole");
    assert_ne!(loaded, replayed.state);
    loaded.follow_members(&listed(&[(1, true), (2, true), (3, true)]));
    assert_eq!(loaded, replayed.state);
}

#[test]
fn the_registry_is_part_of_a_snapshot_and_of_the_digest() {
    let mut machine = founded();
    let empty = Machine::default().state.digest();
    assert_ne!(machine.state.digest(), empty);
    machine.begin(add("n:1")).expect("free");
    let loaded = State::from_records(machine.state.records()).expect("whole");
    assert_eq!(loaded, machine.state);
    assert_eq!(loaded.digest(), machine.state.digest());
}

#[test]
fn a_drained_node_is_none_that_clients_are_sent_to_and_its_mark_goes_with_it() {
    let mut machine = founded();
    for node in 1..=3 {
        machine.announce(node).expect("a member");
    }
    let raise = Level::Raise { to: level::NEWEST, heard: (1..=3).map(NodeId).collect() };
    machine.apply(Command::Level(raise)).expect("all support it");
    let digest = machine.state.digest();
    let drain = |node, drained| member::Command::Drain { node: NodeId(node), drained };
    let serving = |machine: &Machine| -> Vec<u64> {
        machine.state.serving_members().into_iter().map(|(node, _)| node.0).collect()
    };
    assert_eq!(machine.member(drain(2, true)), Ok(Answer::Done));
    assert_eq!(machine.member(drain(2, true)), Ok(Answer::Done), "repeated without harm");
    assert!(machine.state.is_drained(NodeId(2)) && !machine.state.is_drained(NodeId(1)));
    assert_eq!((machine.announced(), serving(&machine)), (vec![1, 2, 3], vec![1, 3]));
    assert_ne!(machine.state.digest(), digest);
    let read = State::from_records(machine.state.records()).expect("its own records");
    assert_eq!(read, machine.state);

    assert_eq!(machine.member(drain(2, false)), Ok(Answer::Done));
    assert_eq!(serving(&machine), [1, 2, 3]);
    assert!(!machine.state.is_drained(NodeId(2)), "nobody is drained, as before");
    for node in 1..=3 {
        machine.member(drain(node, true)).expect("a member");
    }
    assert_eq!(serving(&machine), [1, 2, 3], "somebody must serve");
    machine.state.follow_members(&listed(&[(1, true), (2, true)]));
    assert!(!machine.state.is_drained(NodeId(3)));
    assert_eq!(refused(machine.member(drain(3, true))), Refusal::NodeRemoved { node: NodeId(3) });
    assert_eq!(refused(machine.member(drain(9, true))), Refusal::NodeUnknown { node: NodeId(9) });
}
