//! Of the queue of a worker.

use super::*;
use crate::outbox::Letter;
use tripod_client::wire::RayCall;

fn request(operation: u64, attempt: u32) -> ExecuteTaskRequest {
    ExecuteTaskRequest { operationid: Some(operation), attempt, ..ExecuteTaskRequest::default() }
}

fn inbox() -> (Inbox, tokio::sync::mpsc::UnboundedReceiver<Letter>) {
    let (outbox, told) = Outbox::scripted();
    (Inbox::new(4, outbox), told)
}

fn begin(inbox: &Inbox) -> (Ticket, (u64, u32)) {
    let Some((ticket, Item::Task(task))) = inbox.next() else { panic!("there is a task") };
    (ticket, (task.operationid.unwrap(), task.attempt))
}

fn run(operationid: u64) -> RayRun {
    RayRun { operationid, attempt: 1 }
}

fn given(runs: Vec<RayRun>) -> Vec<RayCall> {
    vec![call(Call::GiveBack(RayGiveBackRequest { workerid: 4, runs }))]
}

fn idle() -> Vec<RayCall> {
    vec![call(Call::Idle(ReadyForNewTaskRequest { workerid: 4, previous_task_info: None }))]
}

#[test]
fn an_attempt_that_comes_twice_is_executed_once_and_a_later_one_again() {
    let (inbox, _told) = inbox();
    for (operation, attempt) in [(0, 1), (1, 1), (0, 1), (0, 2), (0, 1)] {
        inbox.task(request(operation, attempt));
    }
    inbox.end();
    for expected in [(0, 1), (1, 1), (0, 2)] {
        let (ticket, task) = begin(&inbox);
        assert_eq!(task, expected);
        inbox.ended(ticket);
    }
    assert!(matches!(inbox.next(), Some((_, Item::End))));
    assert!(inbox.next().is_none(), "who was told to end waits for nothing");
}

fn import(name: &str, exportid: Option<u64>) -> ImportReusableVariableRequest {
    let variable = ReusableVar { name: name.as_bytes().to_vec().into(), ..ReusableVar::default() };
    ImportReusableVariableRequest { reusable_variable: Some(variable), exportid }
}

#[test]
fn a_variable_that_an_earlier_leader_sends_late_is_left_alone() {
    let (inbox, _told) = inbox();
    for (name, exportid) in
        [("a", Some(0)), ("b", Some(2)), ("a", Some(0)), ("c", Some(2)), ("d", Some(3)), ("e", None)]
    {
        inbox.variable(import(name, exportid));
    }
    inbox.variable(ImportReusableVariableRequest::default());
    inbox.end();
    for expected in ["a", "b", "d", "e"] {
        let Some((ticket, Item::Variable(variable))) = inbox.next() else { panic!("there is a variable") };
        assert_eq!(&*variable.name, expected.as_bytes());
        inbox.ended(ticket);
    }
    assert!(matches!(inbox.next(), Some((_, Item::End))));
}

#[test]
fn nothing_begins_while_variables_are_made_and_nothing_is_given_back_for_it() {
    let (inbox, mut told) = inbox();
    inbox.task(request(0, 1));
    inbox.task(request(1, 1));
    let (ticket, _) = begin(&inbox);
    inbox.keeps_up(ticket);
    assert!(inbox.running().is_empty(), "its end is told");
    assert!(inbox.next().is_none(), "what it used is made anew");
    inbox.give_back_behind(Duration::ZERO);
    assert!(told.try_recv().is_err());
    inbox.ended(ticket);
    inbox.variable(import("a", Some(0)));
    inbox.task(request(2, 1));
    let (waiting, task) = begin(&inbox);
    assert_eq!(task, (1, 1));
    assert!(inbox.waits(waiting), "a thread is missing");
    assert_eq!(told.try_recv().unwrap().calls, given(vec![run(2)]));
    inbox.task(request(2, 2));
    let Some((import, Item::Variable(_))) = inbox.next() else { panic!("it is not given back") };
    assert!(inbox.next().is_none(), "nor is the task begun that comes after it");
    inbox.ended(import);
    assert_eq!(begin(&inbox).1, (2, 2));
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut seen = Seen::default();
    for operation in 0..3 * REMEMBERED as u64 {
        assert!(seen.note(operation, 1));
    }
    assert_eq!((seen.attempts.len(), seen.order.len()), (REMEMBERED, REMEMBERED));
}

#[test]
fn what_waits_behind_a_long_task_is_given_back_and_nothing_behind_a_short_one() {
    let (inbox, mut told) = inbox();
    for operation in 0..3 {
        inbox.task(request(operation, 1));
    }
    inbox.give_back_behind(Duration::ZERO);
    assert!(told.try_recv().is_err(), "nothing runs");
    let (ticket, _) = begin(&inbox);
    inbox.give_back_behind(Duration::from_secs(3600));
    assert!(told.try_recv().is_err(), "it has run for a moment");
    inbox.give_back_behind(Duration::ZERO);
    assert_eq!(told.try_recv().unwrap().calls, given(vec![run(1), run(2)]));
    inbox.give_back_behind(Duration::ZERO);
    inbox.ended(ticket);
    inbox.task(request(3, 1));
    inbox.give_back_behind(Duration::ZERO);
    assert!(told.try_recv().is_err(), "an idle worker gives nothing back");
}

#[test]
fn while_a_task_waits_another_one_runs_and_one_at_a_time() {
    let (inbox, mut told) = inbox();
    inbox.task(request(0, 1));
    inbox.task(request(1, 1));
    let (waiting, _) = begin(&inbox);
    assert!(inbox.next().is_none(), "one runs");
    assert!(inbox.waits(waiting), "a thread is missing");
    assert_eq!(told.try_recv().unwrap().calls, given(vec![run(1)]));
    assert_eq!(told.try_recv().unwrap().calls, idle());
    inbox.task(request(1, 2));
    let (aside, task) = begin(&inbox);
    assert_eq!(task, (1, 2));
    assert_eq!(inbox.running(), [run(0), RayRun { operationid: 1, attempt: 2 }]);
    inbox.resumes(waiting);
    inbox.ended(aside);
    assert!(inbox.next().is_none(), "the other one runs on, and executes what comes");
    inbox.ended(waiting);
    inbox.task(request(2, 1));
    assert_eq!(begin(&inbox).1, (2, 1));
}

#[test]
fn what_is_cancelled_is_given_back_or_told_and_is_stuck_when_its_time_is_over() {
    let (inbox, mut told) = inbox();
    inbox.task(request(0, 1));
    inbox.task(request(1, 1));
    let (ticket, _) = begin(&inbox);
    let end = inbox.end_of(ticket);
    inbox.cancel(run(1), Duration::ZERO);
    assert_eq!(told.try_recv().unwrap().calls, given(vec![run(1)]));
    inbox.cancel(run(7), Duration::ZERO);
    inbox.cancel(RayRun { operationid: 0, attempt: 2 }, Duration::ZERO);
    assert_eq!((*end.borrow(), inbox.stuck()), (None, None), "another attempt is meant");
    inbox.cancel(run(0), Duration::from_secs(3600));
    assert!(end.borrow().is_some());
    assert_eq!(inbox.stuck(), None);
    inbox.cancel(run(0), Duration::ZERO);
    inbox.cancel(run(0), Duration::from_secs(3600));
    assert_eq!(inbox.stuck(), Some(run(0)));
    inbox.ended(ticket);
    assert_eq!(inbox.stuck(), None);
    assert!(told.try_recv().is_err());
}

#[test]
fn a_task_that_others_may_be_able_to_begin_is_given_back_so_often_and_no_more() {
    let (inbox, mut told) = inbox();
    for attempt in 1..=RETURNED_MAX {
        inbox.task(request(0, attempt));
        let (ticket, _) = begin(&inbox);
        assert!(inbox.give_back_elsewhere(ticket));
        assert_eq!(told.try_recv().unwrap().calls, given(vec![RayRun { operationid: 0, attempt }]));
        assert_eq!(told.try_recv().unwrap().calls, idle());
    }
    inbox.task(request(0, RETURNED_MAX + 1));
    let (ticket, _) = begin(&inbox);
    assert!(!inbox.give_back_elsewhere(ticket));
    inbox.ended(ticket);
    inbox.task(request(1, 1));
    assert!(inbox.give_back_elsewhere(begin(&inbox).0), "another one");
}

#[test]
fn a_task_that_cannot_begin_is_given_back_with_all_behind_it_and_the_worker_is_idle() {
    let (inbox, mut told) = inbox();
    inbox.task(request(0, 1));
    inbox.task(request(1, 1));
    let (ticket, _) = begin(&inbox);
    assert!(inbox.give_back_all(ticket));
    assert_eq!(told.try_recv().unwrap().calls, given(vec![run(0), run(1)]));
    assert_eq!(told.try_recv().unwrap().calls, idle());
    inbox.task(ExecuteTaskRequest::default());
    let Some((ticket, Item::Task(_))) = inbox.next() else { panic!("there is a task") };
    assert!(!inbox.give_back_all(ticket), "it has no attempt that could be named");
    assert!(!inbox.waits(ticket), "nor one that others could be told beside");
}
