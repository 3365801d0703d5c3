//! What schedulers do from feature level 4 on, and did not before: exports that were replaced end, tasks that wait take no
//! slots, and tasks within each other have a bound.

use bytes::Bytes;
use tripod_state::ids::{FeatureLevel, LogIndex, Term, TimeMs};
use tripod_state::ray::ids::{FunctionName, ObjectId, StoreId, WorkerId};
use tripod_state::ray::{
    Answer, Assignment, Command as Ray, Decision, Origin, Previous, Ray as Scheduler, Refusal, Registration,
    Request, Role, Run, Task, TaskCall, TaskOptions, limits,
};
use tripod_state::{ApplyContext, Command, DomainId, Effect, Envelope, Fault, State, level};

use crate::support::{Machine, SCOPE};

const DRIVER: WorkerId = WorkerId(0);

/// A scheduler with a driver, and workers that can execute `f`.
struct Site {
    machine: Machine,
    /// Whether the books are looked at after each command, which takes long when there is much.
    checks: bool,
}

impl Site {
    fn at_level(level: u32, workers: u64, slots: u32) -> Self {
        let mut site = Self { machine: Machine::with_tasks(1), checks: true };
        site.level(level);
        site.ask(Request::RegisterStore { address: "10.0.0.1:1".to_owned() }).expect("there is room");
        for role in [Role::Driver].into_iter().chain((0..workers).map(|_| Role::Worker)) {
            let (host, store) = ("10.0.0.1".to_owned(), String::new());
            let wanted = Registration { host, store, role, attributed: true, extended: true, slots };
            site.ask(Request::RegisterWorker(wanted)).expect("there is a store");
        }
        for worker in (1..=workers).map(WorkerId) {
            let function = Request::RegisterFunction { worker, name: name("f"), results: 1 };
            site.ask(function).expect("it lives");
            site.asks(worker);
        }
        site
    }

    fn level(&mut self, to: u32) {
        let to = FeatureLevel(to);
        let command = if to > self.machine.state.level() {
            level::Command::Raise { to, heard: Vec::new() }
        } else {
            level::Command::Pin { level: to, by: String::new() }
        };
        self.machine.apply(Command::Level(command)).expect("nothing keeps it");
    }

    fn ask(&mut self, request: Request) -> Result<Answer, Refusal> {
        self.ask_as(None, request)
    }

    fn ask_as(&mut self, process: Option<WorkerId>, request: Request) -> Result<Answer, Refusal> {
        let origin = Origin { stamp: None, process };
        let reply = self.machine.apply(Command::Ray(Ray::Ask { scope: SCOPE, origin, request }));
        self.check();
        match reply {
            Ok(tripod_state::Answer::Ray(answer)) => Ok(answer),
            Err(Fault::Ray(refusal)) => Err(refusal),
            other => panic!("{other:?}"),
        }
    }

    fn lead(&mut self, decision: Decision) {
        self.machine
            .apply(Command::Ray(Ray::Lead { scope: SCOPE, decision }))
            .expect("what leads is not refused");
        self.check();
    }

    fn check(&self) {
        if self.checks {
            self.ray().check().expect("the books balance");
        }
    }

    fn ray(&self) -> &Scheduler {
        self.machine.state.ray(SCOPE.job).expect("it began")
    }

    /// A task of a driver, or of a task that runs.
    fn submit(&mut self, worker: WorkerId, run: Option<Run>) -> Result<ObjectId, Refusal> {
        let task = Task { name: name("f"), arguments: Vec::new(), results_given: 0 };
        let child = run.map(|run| TaskCall { run: Some(run), place: 0 });
        let submit = Request::Submit { worker, task, options: TaskOptions::default(), child, hint: None };
        match self.ask_as(Some(worker), submit)? {
            Answer::Submitted { results } => Ok(results[0]),
            other => panic!("{other:?}"),
        }
    }

    /// The worker could begin a task.
    fn asks(&mut self, worker: WorkerId) {
        self.ask(Request::Idle { worker, previous: None, run: None }).expect("it lives");
    }

    fn assign(&mut self) -> Vec<Assignment> {
        let planned = self.ray().plan(TimeMs(1_000), 100);
        self.lead(Decision::Assign(planned.clone()));
        planned
    }

    /// The result is there, and its task has ended.
    fn end(&mut self, (worker, run, result): (WorkerId, Run, ObjectId)) {
        self.ask(Request::Ready { object: result, store: StoreId(0), run: Some(run) })
            .expect("it is referred to");
        let previous = Some(Previous { succeeded: true, error: Bytes::new() });
        self.ask(Request::Idle { worker, previous, run: Some(run) }).expect("it lives");
    }

    /// What is begun, each waits for the one that it submits, until nothing is begun any more; then from the inside out.
    /// How deep that was.
    fn nest(&mut self, deep: usize) -> usize {
        let mut begun = Vec::new();
        let mut result = self.submit(DRIVER, None).expect("it is known");
        while begun.len() < deep {
            let [Assignment { operation, attempt, worker }] = self.assign()[..] else { break };
            let run = Run { operation, attempt };
            begun.push((worker, run, result));
            if begun.len() < deep {
                result = self.submit(worker, Some(run)).expect("it is known");
                self.ask(Request::Get { worker, object: result }).expect("it is there");
                self.asks(worker);
            }
        }
        let depth = begun.len();
        if depth == deep {
            begun.into_iter().rev().for_each(|begun| self.end(begun));
        }
        depth
    }

    fn export(&mut self, name: Option<&str>, body: impl Into<Bytes>) -> Result<Answer, Refusal> {
        let body = body.into();
        self.ask(match name {
            Some(variable) => Request::ExportVariable { name: self::name(variable), body },
            None => Request::ExportFunction { body },
        })
    }

    fn obey(&mut self) {
        let orders = self.ray().orders(None, usize::MAX);
        self.lead(Decision::Done { orders: orders.into_iter().map(|(id, _)| id).collect() });
    }

    fn exports(&self) -> u64 {
        self.ray().totals().exports
    }
}

fn name(text: &str) -> FunctionName {
    FunctionName(Bytes::copy_from_slice(text.as_bytes()))
}

#[test]
fn a_nest_deeper_than_all_slots_waits_for_ever_at_level_3_and_ends_at_level_4() {
    let (workers, slots, deep) = (2, 3, 50);
    let mut before = Site::at_level(3, workers, slots);
    assert_eq!(before.nest(deep), 6, "as many as there are slots are begun");
    let mut site = Site::at_level(4, workers, slots);
    assert_eq!(site.nest(deep), deep);
    let totals = site.ray().totals();
    assert_eq!((totals.running, totals.queued, totals.succeeded), (0, 0, deep as u64));
    // Nobody has more than its slots when nothing waits any more.
    for _ in 0..20 {
        site.submit(DRIVER, None).expect("it is known");
    }
    assert!(site.assign().len() <= workers as usize * slots as usize);
}

/// Many tasks that each submit one and wait for it: they are begun as far as there are slots, and no further, since what
/// they wait for goes before those that are not begun.
#[test]
fn tasks_that_wait_have_what_they_wait_for_go_before_others() {
    let (slots, tasks) = (4_u32, 100);
    let mut site = Site::at_level(4, 1, slots);
    for _ in 0..tasks {
        site.submit(DRIVER, None).expect("it is known");
    }
    let mut waiting: Vec<(WorkerId, Run, ObjectId, ObjectId)> = Vec::new();
    let mut ended = 0;
    while ended < tasks {
        let planned = site.assign();
        assert!(!planned.is_empty(), "nothing is begun, {ended} have ended");
        for Assignment { operation, attempt, worker } in planned {
            let run = Run { operation, attempt };
            let result = site.ray().execution(run).expect("it runs").results[0];
            if let Some(place) = waiting.iter().position(|(.., child)| *child == result) {
                site.end((worker, run, result));
                let (worker, run, result, _) = waiting.remove(place);
                site.end((worker, run, result));
                ended += 1;
            } else {
                let child = site.submit(worker, Some(run)).expect("it is known");
                site.ask(Request::Get { worker, object: child }).expect("it is there");
                waiting.push((worker, run, result, child));
                site.asks(worker);
            }
            let held = site.ray().worker(worker).expect("it lives").running.len();
            assert!(held <= slots as usize + 1, "{held} are begun");
        }
    }
}

/// Those whose slots are all taken have said so, and would not say it again.
#[test]
fn a_nest_that_waits_for_ever_at_level_3_goes_on_when_the_level_rises() {
    let mut site = Site::at_level(3, 1, 2);
    assert_eq!(site.nest(5), 2);
    assert_eq!(site.assign(), []);
    let raise = level::Command::Raise { to: FeatureLevel(4), heard: Vec::new() };
    let context = ApplyContext { index: LogIndex(9_999), term: Term(1), now_ms: TimeMs(1_000) };
    let envelope = Envelope { stamp: None, command: Command::Level(raise) };
    let raised = site.machine.state.apply(&context, envelope);
    let told = Effect::DomainChanged { domain: DomainId::Ray, job: SCOPE.job };
    assert_eq!(raised.effects, [told], "the planner has to look");
    assert_eq!(site.assign().len(), 1);
}

/// A task may wait for what it never asked for to be brought to it: then whatever is ready is begun.
#[test]
fn a_worker_whose_tasks_wait_for_nobody_knows_what_is_given_the_newest_task_when_nobody_goes_on() {
    let mut site = Site::at_level(4, 1, 1);
    site.submit(DRIVER, None).expect("it is known");
    let outer = site.assign()[0];
    site.submit(DRIVER, None).expect("it is known");
    let run = Run { operation: outer.operation, attempt: outer.attempt };
    site.submit(outer.worker, Some(run)).expect("it is known");
    site.asks(outer.worker);
    let operations: Vec<u64> = site.assign().iter().map(|planned| planned.operation.0).collect();
    assert_eq!(operations, [2]);
    assert_eq!(site.assign(), [], "it runs");
}

#[test]
fn tasks_within_each_other_without_end_are_refused_at_a_depth_and_not_at_level_3() {
    let deep = usize::try_from(limits::NESTED_MAX).expect("few");
    let slots = limits::SLOTS_MAX;
    let around = |site: &mut Site, deep: usize| {
        let mut worker = DRIVER;
        let mut run = None;
        site.checks = false;
        for _ in 0..deep {
            site.submit(worker, run).expect("it is not too deep");
            let Assignment { operation, attempt, worker: given } = site.assign()[0];
            (worker, run) = (given, Some(Run { operation, attempt }));
            site.asks(worker);
        }
        (worker, run)
    };
    let mut site = Site::at_level(4, 1, slots);
    let (worker, run) = around(&mut site, deep);
    let full = Refusal::Full { what: "tasks within each other".to_owned(), limit: limits::NESTED_MAX };
    assert_eq!(site.submit(worker, run), Err(full));
    site.submit(DRIVER, None).expect("beside them is not within them");
    let mut before = Site::at_level(3, 1, slots);
    let (worker, run) = around(&mut before, deep);
    before.submit(worker, run).expect("that level has no such bound");
}

#[test]
fn exports_of_few_names_do_not_add_up() {
    let rounds = 50;
    let exported = |level: u32| {
        let mut site = Site::at_level(level, 2, 1);
        for round in 0..rounds {
            for function in [b"one", b"two"] {
                site.export(None, function.to_vec()).expect("there is room");
            }
            site.export(Some("v"), vec![round]).expect("there is room");
            site.obey();
        }
        site.exports()
    };
    assert_eq!(exported(3), 3 * u64::from(rounds));
    assert_eq!(exported(4), 3);
}

/// The bytes that count are those that are kept: a variable may be exported again for ever.
#[test]
fn a_large_variable_can_be_exported_again_and_two_that_are_too_large_cannot() {
    let bytes = usize::try_from(limits::EXPORT_BYTES_MAX).expect("it is addressable") / 2 + 2;
    let large = Bytes::from(vec![7; bytes]);
    let other = large.slice(1..);
    let full = Refusal::Full { what: "bytes of exports".to_owned(), limit: limits::EXPORT_BYTES_MAX };
    let mut before = Site::at_level(3, 0, 1);
    before.export(Some("v"), large.clone()).expect("there is room");
    assert_eq!(before.export(Some("v"), other.clone()), Err(full.clone()));
    before.level(4);
    assert_eq!(before.export(Some("v"), other), Ok(Answer::Done));
    assert_eq!(before.export(Some("u"), large), Err(full));
    assert_eq!(before.exports(), 1);
}

/// What came together at level 3 goes with the commands that come, so many with each.
#[test]
fn what_was_replaced_before_the_level_rose_goes_bit_by_bit() {
    let mut site = Site::at_level(3, 0, 1);
    for round in 0..2_500_u32 {
        site.machine
            .apply(Command::Ray(Ray::Ask {
                scope: SCOPE,
                origin: Origin::default(),
                request: Request::ExportVariable {
                    name: name("v"),
                    body: Bytes::copy_from_slice(&round.to_le_bytes()),
                },
            }))
            .expect("there is room");
    }
    site.level(4);
    assert_eq!(site.exports(), 2_500);
    let mut left = Vec::new();
    for _ in 0..4 {
        site.lead(Decision::Done { orders: Vec::new() });
        left.push(site.exports());
    }
    assert_eq!(left, [1_500, 500, 1, 1]);
    assert_eq!(site.export(Some("v"), b"first".to_vec()), Ok(Answer::Done));
    assert_eq!(site.exports(), 1);
}

/// Whoever goes back finds a state of that level: what came with this one is gone from it.
#[test]
fn a_state_that_goes_back_to_level_3_is_one_of_level_3() {
    let mut site = Site::at_level(4, 2, 1);
    let mut plain = Site::at_level(4, 2, 1);
    for site in [&mut site, &mut plain] {
        site.submit(DRIVER, None).expect("it is known");
        site.assign();
    }
    site.asks(WorkerId(1));
    assert_ne!(site.machine.state.digest(), plain.machine.state.digest(), "it may have more than its slots");
    let back = State::from_records(site.machine.state.records()).expect("it is whole");
    assert!(back == site.machine.state && back.digest() == site.machine.state.digest());
    for site in [&mut site, &mut plain] {
        site.level(3);
        site.ray().check().expect("the books balance");
    }
    assert!(site.ray().info().idle == plain.ray().info().idle);
    assert_eq!(site.machine.state.digest(), plain.machine.state.digest());
}
