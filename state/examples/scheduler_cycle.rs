//! What one task costs a replica: submitted, given to a worker, stored, reported, dropped. Prints microseconds of one
//! thread per task. `cargo run --release -p tripod-state --example scheduler_cycle`
#![allow(clippy::disallowed_types, reason = "it measures")]

use std::time::Instant;

use bytes::Bytes;
use tripod_state::ids::{JobId, LogIndex, ServiceIncarnation, Term, TimeMs};
use tripod_state::job::Spec;
use tripod_state::ray::ids::{FunctionName, ObjectId, StoreId, WorkerId};
use tripod_state::ray::{
    Answer, Argument, Command as Ray, Decision, Origin, Previous, Registration, Request, Role, Task,
    TaskOptions,
};
use tripod_state::{ApplyContext, Command, Envelope, Scope, State, job, level};

const SCOPE: Scope = Scope { job: JobId(1), service: None };
const DRIVER: WorkerId = WorkerId(0);
const WORKERS: u64 = 8;
const TASKS: u64 = 200_000;

struct Machine {
    state: State,
    index: u64,
    /// As a node does that shows its state to readers after each batch.
    shown: Option<State>,
    batch: u64,
}

impl Machine {
    fn apply(&mut self, command: Command) -> tripod_state::Reply {
        self.index += 1;
        if self.batch > 0 && self.index.is_multiple_of(self.batch) {
            self.shown = Some(self.state.clone());
        }
        let context =
            ApplyContext { index: LogIndex(self.index), term: Term(1), now_ms: TimeMs(self.index / 100) };
        self.state.apply(&context, Envelope { stamp: None, command }).reply
    }

    fn ask(&mut self, process: WorkerId, request: Request) -> Answer {
        let origin = Origin { stamp: None, process: Some(process) };
        match self.apply(Command::Ray(Ray::Ask { scope: SCOPE, origin, request })) {
            Ok(tripod_state::Answer::Ray(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }

    fn lead(&mut self, decision: Decision) {
        self.apply(Command::Ray(Ray::Lead { scope: SCOPE, decision })).expect("decisions are not refused");
    }
}

fn started(batch: u64) -> Machine {
    let mut machine = Machine { state: State::default(), index: 0, shown: None, batch };
    let (name, spec, service) = ("w".to_owned(), Spec::of_tasks(1), ServiceIncarnation(1));
    machine.apply(Command::Job(job::Command::Create { name, spec, service })).expect("the name is free");
    let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
    machine.apply(Command::Level(raise)).expect("nobody else is there");
    let store = Request::RegisterStore { address: "10.0.0.1:1".to_owned() };
    let nobody = Origin::default();
    machine
        .apply(Command::Ray(Ray::Ask { scope: SCOPE, origin: nobody, request: store }))
        .expect("there is room");
    for number in 0..=WORKERS {
        let role = if number == 0 { Role::Driver } else { Role::Worker };
        let (host, store) = ("10.0.0.1".to_owned(), String::new());
        let wanted = Registration { host, store, role, attributed: true, extended: true, slots: 1 };
        let request = Request::RegisterWorker(wanted);
        machine
            .apply(Command::Ray(Ray::Ask { scope: SCOPE, origin: nobody, request }))
            .expect("there is room");
    }
    for worker in (1..=WORKERS).map(WorkerId) {
        let function = Request::RegisterFunction { worker, name: name_of(), results: 1 };
        machine.ask(worker, function);
        machine.ask(worker, Request::Idle { worker, previous: None, run: None });
    }
    machine
}

fn name_of() -> FunctionName {
    FunctionName(Bytes::from_static(b"module.function"))
}

fn submit(machine: &mut Machine, argument: Option<ObjectId>) -> ObjectId {
    let value = || Argument::Value { bytes: Bytes::from_static(b"0123456789abcdef"), nested: Vec::new() };
    let arguments = vec![argument.map_or_else(value, Argument::Object)];
    let task = Task { name: name_of(), arguments, results_given: 0 };
    let (options, child, hint) = (TaskOptions::default(), None, None);
    match machine.ask(DRIVER, Request::Submit { worker: DRIVER, task, options, child, hint }) {
        Answer::Submitted { results } => results[0],
        other => panic!("{other:?}"),
    }
}

/// Rounds of as many tasks as there are workers; how long a task took, and how much of it was planning.
fn measure(batch: u64, shared: bool) -> (f64, f64) {
    let mut machine = started(batch);
    let argument = shared.then(|| {
        let Answer::Object { object, .. } =
            machine.ask(DRIVER, Request::Put { worker: DRIVER, child: None, hold: false })
        else {
            panic!("a new object");
        };
        machine.ask(DRIVER, Request::AddReferences { objects: vec![object] });
        machine.ask(DRIVER, Request::Ready { object, store: StoreId(0), run: None });
        object
    });
    let begin = Instant::now();
    let mut planning = std::time::Duration::ZERO;
    for _ in 0..TASKS / WORKERS {
        let mut results = Vec::new();
        for _ in 0..WORKERS {
            if let Some(object) = argument {
                machine.ask(DRIVER, Request::AddReferences { objects: vec![object] });
            }
            results.push(submit(&mut machine, argument));
        }
        let ray = machine.state.ray(SCOPE.job).expect("it began");
        let plan_begin = Instant::now();
        let planned = ray.plan(TimeMs(machine.index), 256);
        planning += plan_begin.elapsed();
        assert_eq!(planned.len() as u64, WORKERS);
        machine.lead(Decision::Assign(planned.clone()));
        let orders = machine.state.ray(SCOPE.job).expect("it began").orders(None, 1000);
        machine.lead(Decision::Done { orders: orders.into_iter().map(|(id, _)| id).collect() });
        for (assignment, result) in planned.iter().zip(results) {
            let worker = assignment.worker;
            machine.ask(worker, Request::Ready { object: result, store: StoreId(0), run: None });
            let mut drops = vec![result];
            drops.extend(argument);
            let previous = Some(Previous { succeeded: true, error: Bytes::new() });
            machine.ask(
                worker,
                Request::Batch(vec![
                    Request::DropReferences { objects: drops },
                    Request::Idle { worker, previous, run: None },
                ]),
            );
            machine.ask(DRIVER, Request::DropReferences { objects: vec![result] });
        }
    }
    let each = |time: std::time::Duration| time.as_secs_f64() * 1e6 / TASKS as f64;
    machine.state.ray(SCOPE.job).expect("it began").check().expect("the books balance");
    (each(begin.elapsed()) - each(planning), each(planning))
}

#[allow(clippy::print_stdout, reason = "it tells what it measured")]
fn main() {
    for (what, batch, shared) in [
        ("alone", 0, false),
        ("with one shared argument", 0, true),
        ("shown to readers every 64 commands", 64, false),
        ("shown to readers every command", 1, false),
    ] {
        let (applied, planned) = measure(batch, shared);
        println!("{applied:6.2} us a task, {planned:5.2} us of planning: {what}");
    }
}
