use std::time::Duration;

use tripod_state::Scope;
use tripod_state::ids::{BarrierCounter, BarrierName, CallId, ClientId};

use super::call::SUBJECT_BYTES_MAX;
use super::entry::{LAST_MAX, OPEN_MAX};
use super::*;

const JOB: JobId = JobId(1);

fn at(name: &str, task: i32) -> Ticket {
    let (barrier, task) = (BarrierName::from(name), TaskId(task));
    Ticket::Barrier { job: JOB, barrier, counter: BarrierCounter(0), task, call: CallId(1) }
}

fn key(asked: &str) -> Ticket {
    Ticket::Key { scope: Scope { job: JOB, service: None }, asked: asked.to_owned() }
}

fn subjects(calls: &[ShownCall]) -> Vec<&str> {
    calls.iter().map(|call| call.subject.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_call_is_shown_while_it_waits_and_then_with_its_outcome() {
    let calls = Arc::<OpenCalls>::default();
    let waits = calls.enter(&at("sync_7", 2), None).expect("room");
    let gets = calls.enter(&key("a/b"), Some(TaskId(2))).expect("room");
    tokio::time::advance(Duration::from_secs(3)).await;
    let shown = calls.of(JOB).tasks[&TaskId(2)].clone();
    assert_eq!((subjects(&shown.open), shown.last.len()), (vec!["sync_7", "a/b"], 0));
    assert_eq!((shown.open[1].kind, shown.open[1].since), (CallKind::Key, Duration::from_secs(3)));
    waits.answered(true);
    drop(gets);
    tokio::time::advance(Duration::from_secs(1)).await;
    let shown = calls.of(JOB).tasks[&TaskId(2)].clone();
    assert_eq!((shown.open.len(), subjects(&shown.last)), (0, vec!["a/b", "sync_7"]));
    let second = Duration::from_secs(1);
    assert_eq!(shown.last[0].ended, Some((CallOutcome::HungUp, second)));
    assert_eq!(shown.last[1].ended, Some((CallOutcome::Passed, second)));
}

#[test]
fn a_poll_is_no_call_that_waits_and_a_call_of_nobody_is_counted() {
    let calls = Arc::<OpenCalls>::default();
    assert!(calls.enter(&Ticket::Poll { job: JOB, task: TaskId(0), call: CallId(1) }, None).is_none());
    let one = calls.enter(&key("k"), None).expect("counted");
    assert_eq!((calls.of(JOB).of_nobody, calls.of(JOB).tasks.len()), (1, 0));
    drop(one);
    assert_eq!(calls.of(JOB), JobCalls::default());
}

#[test]
fn one_task_fills_its_own_room_only_and_long_names_are_cut() {
    let calls = Arc::<OpenCalls>::default();
    let many: Vec<_> = (0..OPEN_MAX + 3).filter_map(|_| calls.enter(&at("x", 0), None)).collect();
    assert_eq!((calls.of(JOB).tasks[&TaskId(0)].open.len(), calls.of(JOB).not_entered), (OPEN_MAX, 3));
    let other = calls.enter(&at("y", 1), None).expect("another task's room");
    drop(many);
    let shown = calls.of(JOB);
    assert_eq!(shown.not_entered, 0, "none of them waits any more");
    assert_eq!((shown.tasks[&TaskId(0)].last.len(), shown.tasks[&TaskId(1)].open.len()), (LAST_MAX, 1));
    let long = "ä".repeat(SUBJECT_BYTES_MAX);
    let cut = calls.enter(&key(&long), Some(TaskId(1))).expect("room");
    let kept = calls.of(JOB).tasks[&TaskId(1)].open[1].subject.clone();
    assert!(kept.len() <= SUBJECT_BYTES_MAX && kept.ends_with("äää") && kept.starts_with("..."), "{kept}");
    drop((other, cut));
}

#[test]
fn beyond_the_room_of_a_node_nobody_is_pushed_out_and_a_deleted_job_makes_room() {
    let calls = Arc::<OpenCalls>::default();
    let of_other = Ticket::Tasks {
        scope: Scope { job: JobId(2), service: None },
        seen: tripod_state::ids::TaskVersion(1),
    };
    let all = i32::try_from(TASKS_MAX).expect("few");
    let held: Vec<_> = (0..all).filter_map(|task| calls.enter(&at("b", task), None)).collect();
    assert_eq!(held.len(), TASKS_MAX);
    let other = calls.enter(&of_other, Some(TaskId(0)));
    let only_counted = JobCalls { not_entered: 1, ..JobCalls::default() };
    assert_eq!((calls.of(JobId(2)), calls.of(JOB).not_entered), (only_counted.clone(), 0));
    assert_eq!(calls.of(JOB).tasks.len(), TASKS_MAX);
    calls.replaced();
    assert_eq!(calls.of(JobId(2)), only_counted, "it waits on");
    drop(other);
    assert_eq!(calls.of(JobId(2)), JobCalls::default());
    calls.effects(&[Effect::JobDeleted { job: JOB }]);
    let other = calls.enter(&of_other, Some(TaskId(0)));
    assert_eq!((calls.of(JobId(2)).tasks.len(), calls.of(JobId(2)).not_entered), (1, 0));
    drop(other);
    drop(held);
    assert_eq!(calls.of(JOB), JobCalls::default());
}

#[test]
fn a_command_by_which_tasks_meet_has_a_ticket_also_as_a_retry() {
    let (scope, counter) = (Scope { job: JOB, service: None }, BarrierCounter(3));
    let arrive = barrier::Command::Arrive {
        scope,
        barrier: "sync_7".to_owned(),
        counter,
        timeout_ms: 1,
        tasks: Vec::new(),
        task: TaskId(2),
    };
    let retried = Command::Retried(Box::new(Command::Barrier(arrive)));
    let calls = Arc::<OpenCalls>::default();
    calls.enter(&meeting(&retried).expect("a barrier"), None).expect("room").answered(true);
    let shown = calls.of(JOB).tasks[&TaskId(2)].clone();
    assert_eq!((shown.open.len(), subjects(&shown.last)), (0, vec!["sync_7"]));
    assert_eq!(meeting(&Command::Task(task::Command::Reset { scope, task: TaskId(2) })), None);
}

#[test]
fn the_last_one_at_a_shutdown_and_in_the_older_runtime_is_remembered() {
    let (scope, task) = (Scope { job: JOB, service: None }, TaskId(2));
    let barrier = runtime::BarrierId(bytes::Bytes::from_static(b"sync_7"));
    let commands = [
        Command::Task(task::Command::Shutdown { scope, task }),
        Command::Runtime(runtime::Command::Arrive { scope, barrier, task }),
        Command::Runtime(runtime::Command::Shutdown { scope, task: TaskId(0) }),
        Command::Runtime(runtime::Command::Connect { scope, task, client: ClientId(4) }),
    ];
    let calls = Arc::<OpenCalls>::default();
    for command in &commands {
        let ticket = meeting(command).expect("tasks meet by it");
        assert!(is_meeting(&ticket), "{command:?}");
        calls.enter(&ticket, Some(TaskId(2))).expect("room").answered(true);
    }
    let last = calls.of(JOB).tasks[&TaskId(2)].last.clone();
    let told: Vec<_> = last.iter().map(|call| (call.kind, call.subject.as_str())).collect();
    let expected = [
        (CallKind::Registration, ""),
        (CallKind::Shutdown, ""),
        (CallKind::Barrier, "sync_7"),
        (CallKind::Shutdown, ""),
    ];
    assert_eq!(told, expected, "the newest first");
    let topology = bytes::Bytes::new();
    let devices = Command::Runtime(runtime::Command::Enumerate { scope, task, topology });
    assert_eq!(meeting(&devices), None, "it always waits");
}

#[test]
fn of_a_state_that_was_replaced_only_who_waits_is_known() {
    let calls = Arc::<OpenCalls>::default();
    let waits = calls.enter(&at("b", 0), None).expect("room");
    calls.enter(&at("b", 1), None).expect("room").answered(true);
    calls.replaced();
    assert_eq!(calls.of(JOB).tasks.keys().copied().collect::<Vec<_>>(), [TaskId(0)]);
    drop(waits);
    calls.replaced();
    assert_eq!(calls.of(JOB), JobCalls::default());
}
