//! A saved state begins a new cluster: what stays, what goes, and who is refused.

use tripod_state::ids::{Incarnation, JobId, Sequence, SessionId, TaskId, TaskVersion};
use tripod_state::restore::Jobs;
use tripod_state::snapshot::Counts;
use tripod_state::{Answer, Command, Fault, Scope, Stamp, State, kv, session, task};

use crate::snapshots::rich;
use crate::support::{Machine, SCOPE};

fn counts(state: &State) -> Counts {
    let mut counts = Counts::default();
    state.records().for_each(|record| counts.add(&record));
    counts
}

fn entries(state: &State, job: JobId) -> Vec<tripod_state::state::Entry> {
    state.list(Scope { job, service: None }, "", None, 1_000).expect("the job is there")
}

#[test]
fn every_key_of_every_job_stays_and_its_tasks_barriers_and_sessions_go() {
    let old = rich().state;
    let new = old.clone().restored("new-1", Jobs::Ended);
    let (was, is) = (counts(&old), counts(&new));
    assert!(was.sessions > 0 && was.replies > 0 && was.tasks > 0 && was.barriers > 0 && was.members > 0);
    assert_eq!((is.keys, is.key_bytes, is.jobs), (was.keys, was.key_bytes, was.jobs));
    assert_eq!((is.sessions, is.replies, is.tasks, is.barriers, is.members), (0, 0, 0, 0, 0));
    for (before, after) in old.jobs().into_iter().zip(new.jobs()) {
        assert_eq!(entries(&old, before.id), entries(&new, after.id), "with their versions");
        assert_eq!((before.id, &before.name, before.slot), (after.id, &after.name, after.slot));
        assert_eq!(before.spec, after.spec);
        assert_ne!(before.service, after.service);
        assert_eq!((after.tasks_connected, after.barriers_open), (0, 0));
    }
    assert_eq!(new.now_ms(), old.now_ms(), "time does not run backwards");
    let restored = State::from_records(new.records()).expect("it is a state like any other");
    assert_eq!((restored == new, restored.digest()), (true, new.digest()));
}

#[test]
fn whoever_worked_in_a_job_before_is_refused() {
    let mut machine = Machine::with_tasks(2);
    machine.apply(Command::Session(session::Command::Open)).expect("there is room");
    let session = SessionId(machine.index.into());
    let service = machine.state.job(JobId(1)).expect("it is there").service;
    let believer = Scope { service: Some(service), ..SCOPE };
    let beat = |state: &State, scope| state.heartbeat(scope, TaskId(0), Incarnation(1), state.now_ms());
    assert!(matches!(beat(&machine.state, believer), task::Beat::Recorded(_)));

    machine.state = machine.state.restored("new-1", Jobs::Ended);
    // Dialect N names the service; the others are unknown as tasks.
    let refused = beat(&machine.state, believer);
    assert!(matches!(refused, task::Beat::Refused(Fault::ServiceMismatch { .. })), "{refused:?}");
    let refused = beat(&machine.state, SCOPE);
    assert!(matches!(refused, task::Beat::Refused(Fault::BeatUnregistered { .. })), "{refused:?}");
    let stamp = Stamp { session, sequence: Sequence(1), acknowledged_below: Sequence(1) };
    let write = kv::Command::Increment { scope: SCOPE, key: "n".to_owned(), by: 1, caller: None };
    let reply = machine.apply_stamped(Some(stamp), Command::Kv(write));
    assert_eq!(reply, Err(Fault::SessionExpired));
    assert!(machine.state.get(SCOPE, "n").is_err(), "and it did nothing");
    let watched = machine.state.tasks(SCOPE, &[]).expect("the job is there");
    assert!(watched.version > TaskVersion(0));
}

#[test]
fn tasks_can_begin_anew() {
    let mut machine = Machine::with_tasks(1);
    machine.state = machine.state.restored("new-1", Jobs::Ended);
    let service = machine.state.job(JobId(1)).expect("it is there").service;
    let register = task::Command::Register {
        scope: SCOPE,
        task: TaskId(0),
        incarnation: Incarnation(2),
        recoverable: false,
        protocol: task::Protocol::Xla,
    };
    machine.task(register).expect("it is alone, and its place is free");
    assert_eq!(machine.state.job(JobId(1)).map(|job| job.tasks_connected), Some(1));
    assert!(matches!(
        machine.state.heartbeat(SCOPE, TaskId(0), Incarnation(2), machine.state.now_ms()),
        task::Beat::Recorded(told) if told == service
    ));
}

#[test]
fn kept_jobs_go_on_with_their_sessions() {
    let old = rich().state;
    let new = old.clone().restored("new-1", Jobs::Kept);
    assert_eq!(new.jobs(), old.jobs());
    assert_eq!(counts(&new), Counts { members: 0, records: counts(&new).records, ..counts(&old) });

    let mut machine = Machine::with_tasks(1);
    machine.apply(Command::Session(session::Command::Open)).expect("there is room");
    let stamp = Stamp {
        session: SessionId(machine.index.into()),
        sequence: Sequence(1),
        acknowledged_below: Sequence(1),
    };
    let write = || kv::Command::Increment { scope: SCOPE, key: "n".to_owned(), by: 1, caller: None };
    let first = machine.apply_stamped(Some(stamp), Command::Kv(write()));
    assert!(matches!(first, Ok(Answer::Value { .. })), "{first:?}");
    machine.state = machine.state.restored("new-1", Jobs::Kept);
    let again = machine.apply_stamped(Some(stamp), Command::Kv(write()));
    assert_eq!(again, first, "it is not done twice");
}

#[test]
fn every_node_makes_the_same_state_and_every_cluster_another_one() {
    let old = rich().state;
    let one = old.clone().restored("new-1", Jobs::Ended);
    let same = old.clone().restored("new-1", Jobs::Ended);
    let other = old.restored("new-2", Jobs::Ended);
    assert_eq!(one.digest(), same.digest());
    assert_ne!(one.digest(), other.digest());
}
