//! What the state takes of memory, and what commands need of it.

use bytes::Bytes;
use tripod_state::ids::{BarrierCounter, JobId, Sequence, ServiceIncarnation, SessionId, TaskId};
use tripod_state::job::{Listener, Spec};
use tripod_state::need::{Need, Purpose};
use tripod_state::{Command, Envelope, Stamp, barrier, job, kv, session, task};

use crate::support::{Machine, SCOPE};

const MIB: u64 = 1 << 20;

fn insert(key: &str, length: usize) -> Command {
    let value = Bytes::from(vec![7; length]);
    Command::Kv(kv::Command::Insert { scope: SCOPE, key: key.to_owned(), value, overwrite: true })
}

fn bytes(machine: &Machine) -> u64 {
    machine.state.bytes_of(JobId(1)).expect("the job is there")
}

/// What each of these adds.
fn adds(machine: &mut Machine, work: impl FnOnce(&mut Machine)) -> u64 {
    let before = bytes(machine);
    work(machine);
    bytes(machine) - before
}

#[test]
fn barriers_their_members_devices_texts_and_listeners_count_as_values_do() {
    let mut machine = Machine::with_tasks(1_000);
    let names = adds(&mut machine, |machine| {
        for number in 0..256 {
            machine.arrive(&format!("{number:04096}"), 0, 0).expect("it waits");
        }
    });
    assert!(names >= MIB, "256 names of 4 KiB take {names} bytes");
    let members = adds(&mut machine, |machine| {
        for number in 0..256 {
            let tasks = (0..1_000).map(TaskId).collect();
            let (barrier, counter) = (format!("list {number}"), BarrierCounter(0));
            let arrive = barrier::Command::Arrive {
                scope: SCOPE,
                barrier,
                counter,
                timeout_ms: 1,
                tasks,
                task: TaskId(0),
            };
            machine.apply(Command::Barrier(arrive)).expect("it waits");
        }
    });
    assert!(members >= 256 * 4_000, "256 lists of 1,000 tasks take {members} bytes");
    let devices = adds(&mut machine, |machine| {
        let devices = vec![Bytes::from(vec![7; 1 << 20])];
        let exchange = task::Command::ExchangeDevices { scope: SCOPE, task: TaskId(0), devices };
        machine.task(exchange).expect("it waits");
    });
    assert!(devices >= MIB, "{devices}");
    let text = adds(&mut machine, |machine| {
        let message = "m".repeat(60_000);
        let report = task::Command::ReportError { scope: SCOPE, task: TaskId(1), code: 13, message };
        machine.task(report).expect("it is connected");
    });
    // Each of the barriers tells those who wait why it failed, with the beginning of the text.
    assert!(text >= 60_000 + 256 * 4_096, "a text that barriers cite takes {text} bytes");
    let listeners = (0..1_000).map(|task| Listener { task: TaskId(task), address: format!("{task:0500}") });
    let spec = Spec { listeners: listeners.collect(), ..Spec::of_tasks(1_000) };
    let (name, service) = ("listened".to_owned(), ServiceIncarnation(3));
    machine.apply(Command::Job(job::Command::Create { name, spec, service })).expect("it is legal");
    let largest = machine.state.largest_jobs(9);
    assert_eq!(largest.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["w", "listened"]);
    assert!(largest[1].1 >= 500_000, "{largest:?}");
    assert_eq!(machine.state.bytes(), machine.state.recounted_bytes());
}

#[test]
fn what_goes_gives_back_what_it_took() {
    let mut machine = Machine::with_tasks(2);
    let empty = bytes(&machine);
    for number in 0..100 {
        machine.apply(insert(&format!("d/{number}"), 10_000)).expect("there is room");
    }
    assert!(bytes(&machine) >= empty + MIB - 100_000, "{}", bytes(&machine));
    machine
        .apply(Command::Kv(kv::Command::Delete { scope: SCOPE, key: "d".to_owned() }))
        .expect("it is there");
    assert_eq!(bytes(&machine), empty);
    let around = machine.state.bytes() - empty;
    machine.arrive("a barrier", 0, 0).expect("it waits");
    machine.apply(Command::Job(job::Command::Delete { name: "w".to_owned() })).expect("it is there");
    assert!(machine.state.bytes() < around, "{} of {around}", machine.state.bytes());
}

#[test]
fn what_begins_needs_memory_first_what_goes_on_last_and_what_ends_never() {
    let mut machine = Machine::with_tasks(2);
    machine.arrive("known", 0, 0).expect("it waits");
    machine.apply(insert("key", 100)).expect("there is room");
    let need = |command: Command| machine.state.need(&Envelope { stamp: None, command }, 1_000);
    let arrive = |barrier: &str| {
        let (barrier, counter, task) = (barrier.to_owned(), BarrierCounter(0), TaskId(1));
        let tasks = Vec::new();
        Command::Barrier(barrier::Command::Arrive {
            scope: SCOPE,
            barrier,
            counter,
            timeout_ms: 1,
            tasks,
            task,
        })
    };
    let delete = Command::Kv(kv::Command::Delete { scope: SCOPE, key: "key".to_owned() });
    let leave = Command::Task(task::Command::Shutdown { scope: SCOPE, task: TaskId(0) });
    for (command, purpose) in [
        (insert("another", 1), Purpose::Begin),
        (insert("key", 101), Purpose::Begin),
        (insert("//key", 100), Purpose::Nothing),
        (Command::Retried(Box::new(insert("another", 1))), Purpose::Begin),
        (delete, Purpose::Nothing),
        (arrive("unknown"), Purpose::Begin),
        (arrive("known"), Purpose::GoOn),
        (leave, Purpose::Nothing),
        (Command::Session(session::Command::Open), Purpose::Nothing),
    ] {
        let Need { purpose: found, bytes, .. } = need(command.clone());
        assert_eq!(found, purpose, "{command:?}");
        assert_eq!(bytes == 0, purpose == Purpose::Nothing, "{command:?}");
    }
    let message = "m".repeat(60_000);
    let report = task::Command::ReportError { scope: SCOPE, task: TaskId(1), code: 13, message };
    assert!(need(Command::Task(report)).bytes >= 1_000 + 4_096, "the barrier that is open will cite it");
}

#[test]
fn what_was_executed_needs_nothing_when_it_comes_again() {
    let mut machine = Machine::with_tasks(1);
    machine.apply(Command::Session(session::Command::Open)).expect("there is room");
    let session = SessionId(u128::from(machine.index));
    let stamp = Some(Stamp { session, sequence: Sequence(1), acknowledged_below: Sequence(1) });
    let envelope = Envelope { stamp, command: insert("key", 100) };
    assert_eq!(machine.state.need(&envelope, 100).purpose, Purpose::Begin);
    machine.apply_stamped(stamp, envelope.command.clone()).expect("there is room");
    assert_eq!(machine.state.need(&envelope, 100).purpose, Purpose::Nothing);
}
