//! A waiter may look long after its wait has ended: on a busy node, or on another one.

use tripod_state::ids::{BarrierCounter, BarrierName, Incarnation, TaskId};
use tripod_state::limits::ALIVE_ANSWERS_KEPT;
use tripod_state::{Answer, BarrierFault, Fault, Reply, Ticket, task};

use crate::support::{Machine, SCOPE, ticket};

fn passed(counter: i64) -> Option<Reply> {
    Some(Ok(Answer::BarrierPassed { counter: BarrierCounter(counter) }))
}

fn failed(counter: i64, fault: BarrierFault) -> Option<Reply> {
    let (barrier, counter) = (BarrierName::from("b"), BarrierCounter(counter));
    Some(Err(Fault::Barrier { barrier, counter, fault }))
}

#[test]
fn a_slow_waiter_of_a_finished_instance_gets_its_own_result() {
    let mut machine = Machine::with_tasks(2);
    let slow = ticket(machine.arrive("b", 0, 0));
    machine.arrive("b", 0, 1).expect("all have come");
    let next = ticket(machine.arrive("b", 1, 1));
    assert_eq!(machine.state.resolve(&slow), passed(0));
    assert_eq!(machine.state.resolve(&next), None);
    machine.cancel("b", 1, 1).expect("it is open");
    assert_eq!(machine.state.resolve(&slow), passed(0));
    assert_eq!(machine.state.resolve(&next), failed(1, BarrierFault::Cancelled { by: TaskId(1) }));
}

#[test]
fn a_wrong_call_after_the_end_spoils_repeats_but_not_those_who_waited() {
    let mut machine = Machine::with_tasks(2);
    let slow = ticket(machine.arrive("b", 0, 0));
    machine.arrive("b", 0, 1).expect("all have come");
    machine.arrive("b", 5, 1).expect_err("nobody counts to five");
    assert_eq!(machine.state.resolve(&slow), passed(0));
    let spoiled = BarrierFault::CounterMismatch { called: BarrierCounter(5) };
    assert_eq!(Some(machine.arrive("b", 0, 0)), failed(0, spoiled));
}

#[test]
fn an_instance_two_back_is_forgotten() {
    let mut machine = Machine::with_tasks(2);
    let slow = ticket(machine.arrive("b", 0, 0));
    for counter in 0..2 {
        machine.cancel("b", counter, 1).expect("it is open");
        let _ = ticket(machine.arrive("b", counter + 1, 1));
    }
    let replaced = Fault::ArrivalReplaced { barrier: BarrierName::from("b"), counter: BarrierCounter(0) };
    assert_eq!(machine.state.resolve(&slow), Some(Err(replaced)));
}

#[test]
fn a_replaced_call_stays_replaced_after_the_instance_passed() {
    let mut machine = Machine::with_tasks(2);
    let replaced = ticket(machine.arrive("b", 0, 0));
    let newest = ticket(machine.arrive("b", 0, 0));
    machine.arrive("b", 0, 1).expect("all have come");
    let fault = Fault::ArrivalReplaced { barrier: BarrierName::from("b"), counter: BarrierCounter(0) };
    assert_eq!(machine.state.resolve(&replaced), Some(Err(fault)));
    assert_eq!(machine.state.resolve(&newest), passed(0));
}

#[test]
fn a_registration_is_told_of_its_own_barrier_whatever_came_later() {
    let mut machine = Machine::default();
    machine.create("w", 2).expect("the name is free");
    let register = |task| task::Command::Register {
        scope: SCOPE,
        task: TaskId(task),
        incarnation: Incarnation(1),
        recoverable: false,
        protocol: task::Protocol::Xla,
    };
    let slow = ticket(machine.task(register(0)));
    machine.task(register(1)).expect("all have come");
    machine.task(task::Command::Reset { scope: SCOPE, task: TaskId(0) }).expect("it is connected");
    assert!(matches!(machine.state.resolve(&slow), Some(Ok(Answer::Registered { .. }))));
}

#[test]
fn the_newest_answers_about_the_living_are_kept() {
    let mut machine = Machine::with_tasks(1);
    let ask = |machine: &mut Machine| {
        let command = task::Command::Alive { scope: SCOPE, task: TaskId(0), tasks: vec![TaskId(0)] };
        ticket(machine.task(command))
    };
    let tickets: Vec<Ticket> = (0..=ALIVE_ANSWERS_KEPT).map(|_| ask(&mut machine)).collect();
    let (forgotten, kept) = tickets.split_first().expect("there are some");
    assert_eq!(machine.state.resolve(forgotten), Some(Err(Fault::ReplyForgotten)));
    for ticket in kept {
        let alive = vec![(TaskId(0), Incarnation(1))];
        assert_eq!(machine.state.resolve(ticket), Some(Ok(Answer::Alive(alive))));
    }
}
