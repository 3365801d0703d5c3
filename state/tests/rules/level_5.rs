//! What sessions are from feature level 5 on: somebody's, with bounds for each.

use std::net::IpAddr;

use tripod_state::ids::{FeatureLevel, NodeId, Sequence, SessionId, TimeMs};
use tripod_state::limits::{
    ADDRESS_SESSION_BYTES_MAX, ADDRESS_SESSIONS_MAX, CLIENT_SESSIONS_MAX, KEY_BYTES_MAX, SESSION_WINDOW,
};
use tripod_state::session::{Command as Session, Owner};
use tripod_state::{Command, Fault, Reply, Stamp, State, kv, level};

use crate::support::{Machine, SCOPE};

fn machine() -> Machine {
    let mut machine = Machine::with_tasks(1);
    let raise = level::Command::Raise { to: FeatureLevel(5), heard: Vec::new() };
    machine.apply(Command::Level(raise)).expect("no member is against it");
    machine
}

fn client(host: u32) -> Owner {
    Owner::Client(Some(IpAddr::from((0x0a00_0000 + host).to_be_bytes())))
}

fn open(machine: &mut Machine, id: u128, owner: Owner) -> Reply {
    machine.apply(Command::Session(Session::OpenFor { id: SessionId(id), owner }))
}

fn stamp(session: u128, sequence: u64, acknowledged_below: u64) -> Option<Stamp> {
    let acknowledged_below = Sequence(acknowledged_below);
    Some(Stamp { session: SessionId(session), sequence: Sequence(sequence), acknowledged_below })
}

fn put(value: &str) -> Command {
    let value = value.to_owned().into();
    Command::Kv(kv::Command::Insert { scope: SCOPE, key: "k".into(), value, overwrite: true })
}

fn again(state: &State) -> State {
    let records: Vec<_> = state.records().collect();
    State::from_records(records.into_iter()).expect("its own records")
}

#[test]
fn f8_one_address_does_not_take_all_sessions_and_clients_do_not_take_those_of_nodes() {
    let mut machine = machine();
    let mut opened = 0_u128;
    for host in 0..=u32::try_from(CLIENT_SESSIONS_MAX / ADDRESS_SESSIONS_MAX).expect("few") {
        for _ in 0..ADDRESS_SESSIONS_MAX {
            if u64::try_from(opened) == Ok(CLIENT_SESSIONS_MAX) {
                break;
            }
            opened += 1;
            open(&mut machine, opened, client(host)).expect("there is room");
        }
        let refused = open(&mut machine, u128::MAX >> 1, client(host));
        assert!(matches!(refused, Err(Fault::LimitExceeded { .. })), "{refused:?}");
    }
    let refused = open(&mut machine, u128::MAX >> 1, client(99));
    assert!(matches!(refused, Err(Fault::LimitExceeded { .. })), "{refused:?}");
    let own = SessionId::of_node(1).0;
    open(&mut machine, own, Owner::Node(NodeId(1))).expect("a node has room of its own");
    machine.apply_stamped(stamp(own, 1, 1), put("1")).expect("it writes");
    let idle = Session::ExpireOwned { clients_before_ms: TimeMs(u64::MAX), nodes_before_ms: TimeMs(0) };
    machine.apply(Command::Session(idle)).expect("the leader's");
    open(&mut machine, 1, client(0)).expect("there is room again");
    machine.apply_stamped(stamp(own, 2, 2), put("2")).expect("a node's stays");
}

#[test]
fn f2_whoever_uses_another_command_s_number_first_does_not_have_its_owner_answered_for_it() {
    let mut machine = machine();
    open(&mut machine, 9, client(1)).expect("there is room");
    machine.apply_stamped(stamp(9, 1, 1), put("mine")).expect("executed");
    let mut machine = Machine { state: again(&machine.state), ..machine };
    let refused = machine.apply_stamped(stamp(9, 1, 1), put("yours"));
    assert_eq!(refused, Err(Fault::StampReused));
    machine.apply_stamped(stamp(9, 1, 1), put("mine")).expect("answered as before");
    assert_eq!(machine.state.get(SCOPE, "k").expect("written").value, "mine");
}

#[test]
fn one_address_does_not_fill_the_memory_of_replies() {
    let mut machine = machine();
    let insert = || {
        let (key, value) = ("x".repeat(KEY_BYTES_MAX), "v".into());
        Command::Kv(kv::Command::Insert { scope: SCOPE, key, value, overwrite: false })
    };
    machine.apply(insert()).expect("the key is free");
    // The refusal names the key.
    let refused = |machine: &mut Machine, session, sequence, acknowledged| {
        machine.apply_stamped(stamp(session, sequence, acknowledged), insert())
    };
    let full = |reply: &Reply| matches!(reply, Err(Fault::LimitExceeded { .. }));
    let (mut session, mut sequence) = (0, SESSION_WINDOW);
    let mut sent = 0;
    loop {
        if sequence == SESSION_WINDOW {
            session += 1;
            sequence = 0;
            open(&mut machine, session, client(1)).expect("there is room");
        }
        sequence += 1;
        sent += 1;
        if full(&refused(&mut machine, session, sequence, 1)) {
            break;
        }
        assert!(sent < ADDRESS_SESSION_BYTES_MAX / 128, "each is counted");
    }
    // The count is the same behind a snapshot, and others have room.
    let mut machine = Machine { state: again(&machine.state), ..machine };
    assert!(full(&refused(&mut machine, session, sequence, 1)));
    open(&mut machine, 1 << 100, client(2)).expect("there is room");
    assert!(!full(&refused(&mut machine, 1 << 100, 1, 1)));
    // Whoever says that it has its replies has room again.
    assert!(!full(&refused(&mut machine, session, sequence, sequence)));
}
