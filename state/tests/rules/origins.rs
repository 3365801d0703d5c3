//! Where processes come from: kept with the life of which it is said, and read back as it was.

use tripod_state::ids::{ClientId, FeatureLevel, Incarnation, JobId, Sequence, SessionId, TaskId};
use tripod_state::session::Owner;
use tripod_state::task::Origin;
use tripod_state::{Answer, Command, Fault, Stamp, State, level, runtime, session, task};

use crate::support::{Machine, SCOPE};

const JOB: JobId = JobId(1);
const PROTOCOL: task::Protocol = task::Protocol::Xla;

/// With job 1 of two tasks, at the newest level. The job is made first, so that it is number 1.
fn at_newest_level() -> Machine {
    let mut machine = Machine::default();
    machine.create("w", 2).expect("the name is free");
    let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
    machine.apply(Command::Level(raise)).expect("it is raised");
    machine
}

fn register(task: i32, incarnation: u64) -> task::Command {
    let (task, incarnation) = (TaskId(task), Incarnation(incarnation));
    task::Command::Register { scope: SCOPE, task, incarnation, recoverable: true, protocol: PROTOCOL }
}

fn of(host: &str) -> Origin {
    Origin { host: host.into(), client: "grpc-c++/1.66".into(), ..Origin::default() }
}

fn note(task: i32, incarnation: u64, origin: Origin) -> task::Command {
    let (task, incarnation, origin) = (TaskId(task), Incarnation(incarnation), Box::new(origin));
    task::Command::NoteOrigin { scope: SCOPE, task, incarnation, origin }
}

#[test]
fn a_registration_says_where_it_comes_from_and_who_started_it_says_the_rest() {
    let mut machine = at_newest_level();
    machine.task(register(0, 7).with_origin(of("10.0.0.7"))).expect("it waits");
    let origin = |machine: &Machine, life| machine.state.origin(JOB, TaskId(0), Incarnation(life)).cloned();
    assert_eq!(origin(&machine, 7), Some(of("10.0.0.7")));
    assert_eq!(machine.state.host(JOB, TaskId(0), Incarnation(7)), "10.0.0.7");
    let started = Origin { host: "a3-7".into(), pid: 4711, ..Origin::default() };
    machine.task(note(0, 7, started)).expect("it is the same life");
    machine.task(register(1, 8)).expect("all are there");
    let both = Origin { pid: 4711, ..of("a3-7") };
    assert_eq!(origin(&machine, 7), Some(both), "also when the task is connected");
    assert_eq!(machine.state.host(JOB, TaskId(0), Incarnation(7)), "a3-7");
    assert_eq!(
        machine.state.process(JOB, TaskId(0), Incarnation(7)).map(|process| process.host),
        Some("a3-7")
    );
    let other = Origin { host: "b".into(), ..Origin::default() };
    machine.task(note(0, 9, other)).expect("nobody is meant");
    assert_eq!(origin(&machine, 9), None);
    let refused = machine.task(note(0, 7, Origin { pid: 1, ..Origin::default() }));
    assert!(matches!(refused, Err(Fault::LimitExceeded { .. })), "{refused:?}");
}

#[test]
fn a_registration_that_is_refused_says_nothing() {
    let mut machine = at_newest_level();
    let refused = machine.task(register(7, 7).with_origin(of("a3-7")));
    assert!(matches!(refused, Err(Fault::TaskUnknown { .. })), "{refused:?}");
    machine.task(register(0, 7)).expect("it waits");
    machine.task(register(1, 8)).expect("all are there");
    let refused = machine.task(task::Command::RegisterFrom {
        scope: SCOPE,
        task: TaskId(1),
        incarnation: Incarnation(9),
        recoverable: false,
        protocol: PROTOCOL,
        origin: Box::new(of("a3-7")),
    });
    assert!(matches!(refused, Err(Fault::Restarted { .. })), "{refused:?}");
    assert_eq!(machine.state.origin(JOB, TaskId(1), Incarnation(9)), None);
}

#[test]
fn a_task_of_the_older_runtime_has_the_origin_of_its_last_client() {
    let mut machine = at_newest_level();
    let connect = |client, host| {
        let connect = runtime::Command::Connect { scope: SCOPE, task: TaskId(0), client: ClientId(client) };
        Command::Runtime(connect.with_origin(Origin { host, ..Origin::default() }))
    };
    machine.apply(connect(1, "a3-7".into())).expect("it waits");
    machine.apply(connect(2, "a3-8".into())).expect("it waits");
    assert_eq!(machine.state.host(JOB, TaskId(0), runtime::INCARNATION), "a3-8");
}

#[test]
fn a_snapshot_has_origins_and_a_lower_level_forgets_them() {
    let mut machine = at_newest_level();
    machine.task(register(0, 7).with_origin(of("a3-7"))).expect("it waits");
    machine.task(register(1, 8).with_origin(Origin { pid: 3, ..of("") })).expect("all are there");
    let restored = State::from_records(machine.state.records()).expect("it is a state");
    assert_eq!((restored == machine.state, restored.digest()), (true, machine.state.digest()));
    assert_eq!(restored.origin(JOB, TaskId(1), Incarnation(8)).map(|origin| origin.pid), Some(3));
    let mut plain = at_newest_level();
    plain.task(register(0, 7)).expect("it waits");
    plain.task(register(1, 8)).expect("all are there");
    assert_ne!(plain.state.digest(), machine.state.digest(), "replicas that differ in it are found");
    let pin = level::Command::Pin { level: FeatureLevel(10), by: String::new() };
    machine.apply(Command::Level(pin)).expect("it is pinned");
    assert_eq!(machine.state.origin(JOB, TaskId(0), Incarnation(7)), None);
    let refused = machine.task(register(0, 7).with_origin(of("a3-7")));
    assert!(matches!(refused, Err(Fault::Level(level::Refusal::TooLow { .. }))), "{refused:?}");
}

#[test]
fn an_attempt_that_says_where_it_comes_from_is_the_one_that_did_not() {
    let mut machine = at_newest_level();
    let session = SessionId::of_client(1 << 70);
    let owner = Owner::Client(None);
    machine.apply(Command::Session(session::Command::OpenFor { id: session, owner })).expect("there is room");
    let stamp = Stamp { session, sequence: Sequence(1), acknowledged_below: Sequence(1) };
    let first = machine.apply_stamped(Some(stamp), Command::Task(register(0, 7)));
    assert!(matches!(first, Ok(Answer::Waiting(_))), "{first:?}");
    let told = Command::Task(register(0, 7).with_origin(of("a3-7")));
    assert_eq!(machine.apply_stamped(Some(stamp), told), first, "its reply was lost");
    let another = machine.apply_stamped(Some(stamp), Command::Task(register(0, 8).with_origin(of("a3-7"))));
    assert_eq!(another, Err(Fault::StampReused));
}
