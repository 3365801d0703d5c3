//! A snapshot that is not whole, or not in order, is no state.

use bytes::Bytes;
use tripod_state::ids::{Incarnation, JobId, NodeId, Sequence, SessionId, TaskId};
use tripod_state::limits::REPORT_BYTES_MAX;
use tripod_state::runtime::BarrierId;
use tripod_state::snapshot::Record;
use tripod_state::{Command, Stamp, State, kv, member, runtime, session, task};

use crate::support::{Machine, SCOPE, ticket};

/// A machine with something in every table.
pub(crate) fn rich() -> Machine {
    let mut machine = Machine::with_tasks(3);
    for key in ["a", "b", "c"] {
        let value = Bytes::from_static(b"v");
        let command = kv::Command::Insert { scope: SCOPE, key: key.to_owned(), value, overwrite: false };
        machine.apply(Command::Kv(command)).expect("the key is new");
    }
    machine.apply(Command::Session(session::Command::Open)).expect("there is room");
    let session = SessionId(machine.index.into());
    for sequence in 1..3 {
        let stamp = Stamp { session, sequence: Sequence(sequence), acknowledged_below: Sequence(1) };
        let command = kv::Command::Increment { scope: SCOPE, key: "n".to_owned(), by: 1, caller: None };
        machine.apply_stamped(Some(stamp), Command::Kv(command)).expect("it is a number");
    }
    for node in 1..3 {
        let addresses = member::Addresses {
            client: "c".to_owned(),
            http: "h".to_owned(),
            job_host: "j".to_owned(),
            job_port_first: 1,
            job_port_count: 2,
        };
        machine
            .apply(Command::Member(member::Command::Announce { node: NodeId(node), addresses }))
            .expect("always");
    }
    for task in [0, 0, 1] {
        let _ = ticket(machine.arrive("b", 0, task));
    }
    let tasks = vec![TaskId(0), TaskId(1), TaskId(2)];
    for task in 0..2 {
        let tasks = tasks.clone();
        let _ = ticket(machine.task(task::Command::Alive { scope: SCOPE, task: TaskId(task), tasks }));
    }
    let alone = task::Command::Alive { scope: SCOPE, task: TaskId(0), tasks: vec![TaskId(0)] };
    let _ = ticket(machine.task(alone));
    machine.connect_runtime(3);
    for (barrier, task) in [("b", 0), ("b", 1), ("c", 0), ("c", 1), ("c", 2), ("d", 0)] {
        let barrier = BarrierId(Bytes::from(barrier));
        let command = runtime::Command::Arrive { scope: SCOPE, barrier, task: TaskId(task) };
        machine.apply(Command::Runtime(command)).expect("the runtime runs");
    }
    machine.create("other", 1).expect("the name is free");
    machine
}

#[test]
fn a_snapshot_that_ends_early_or_late_is_refused() {
    let records: Vec<Record> = rich().state.records().collect();
    for end in 0..records.len() {
        let cut = State::from_records(records[..end].iter().cloned());
        assert_eq!(cut.expect_err("it is not whole").position, end as u64);
    }
    let doubled = records.iter().chain(records.last()).cloned();
    assert_eq!(State::from_records(doubled).expect_err("it has two ends").position, records.len() as u64 - 1);
}

#[test]
fn a_record_too_few_too_many_or_out_of_place_is_refused() {
    let machine = rich();
    let records: Vec<Record> = machine.state.records().collect();
    for place in 0..records.len() - 1 {
        let mut dropped = records.clone();
        dropped.remove(place);
        State::from_records(dropped.into_iter()).expect_err("a record is missing");
        let mut doubled = records.clone();
        doubled.insert(place, records[place].clone());
        State::from_records(doubled.into_iter()).expect_err("a record is there twice");
        let mut swapped = records.clone();
        swapped.swap(place, place + 1);
        State::from_records(swapped.into_iter()).expect_err("two records changed places");
    }
    assert!(State::from_records(records.into_iter()).expect("it is whole") == machine.state);
}

#[test]
fn records_survive_a_binary_codec() {
    let state = rich().state;
    let coded: Vec<Vec<u8>> = state
        .records()
        .map(|record| {
            bincode::serde::encode_to_vec(record, bincode::config::standard()).expect("it has a form")
        })
        .collect();
    let decoded = coded.iter().map(|bytes| {
        let (record, read): (Record, usize) =
            bincode::serde::decode_from_slice(bytes, bincode::config::standard())
                .expect("it was just written");
        assert_eq!(read, bytes.len());
        record
    });
    let restored = State::from_records(decoded).expect("the records are in order");
    assert!(restored == state);
    assert_eq!(restored.digest(), state.digest());
}

/// One long error text that stops a whole job is in the snapshot once, not once per task.
#[test]
fn an_error_that_many_tasks_share_is_one_record() {
    let mut machine = Machine::with_tasks(50);
    let message = "x".repeat(REPORT_BYTES_MAX);
    let report = task::Command::ReportError { scope: SCOPE, task: TaskId(0), code: 13, message };
    machine.task(report).expect("it is connected");
    assert_eq!(machine.state.job(JobId(1)).map(|job| job.tasks_in_error), Some(50));
    let size: usize = machine
        .state
        .records()
        .map(|record| {
            bincode::serde::encode_to_vec(record, bincode::config::standard()).expect("it has a form").len()
        })
        .sum();
    assert!(size < 4 * REPORT_BYTES_MAX, "{size} bytes");
    let restored = State::from_records(machine.state.records()).expect("it is whole");
    assert!(restored == machine.state);
    let silent = vec![(TaskId(1), Incarnation(1))];
    machine.task(task::Command::Expire { job: JobId(1), silent }).expect("it always works");
    assert!(restored == machine.state, "a task in error does not expire");
}

/// Nodes of two versions of the program compare digests. Were the same state hashed differently under one
/// number, a healthy node would be stopped during an upgrade: whoever changes the digest raises the number.
#[test]
fn a_state_has_the_digest_that_its_version_promises() {
    assert_eq!((State::DIGEST_VERSION, rich().state.digest()), (2, 0x00a4_9916_6896_0a36));
}
