//! What holds for every sequence of a scheduler's commands. Names are few, so that they meet.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use tripod_state::ids::{FeatureLevel, JobId, LogIndex, Sequence, Term, TimeMs};
use tripod_state::job::Spec;
use tripod_state::ray::ids::{ClientSession, FunctionName, ObjectId, OperationId, StoreId, WorkerId};
use tripod_state::ray::view::{Availability, Kind, TaskState, WorkerLife};
use tripod_state::ray::{
    Answer, Assignment, Command as Ray, Decision, Origin, Peer, Previous, Refusal, Request, Role, Run, Stamp,
    Task, TaskOptions,
};
use tripod_state::state::Outcome;
use tripod_state::{ApplyContext, Command, Envelope, Fault, Scope, State, job, level};

use crate::scheduler_steps::{Step, needs, register, steps, with_offers};

const SCOPE: Scope = Scope { job: JobId(1), service: None };

/// A state machine with its place in the log.
#[derive(Clone, Default)]
struct Replica {
    state: State,
    index: u64,
    now: u64,
}

impl Replica {
    /// With a job, two stores, two workers that can do something, one that names itself, and two drivers.
    fn started() -> Self {
        let mut replica = Self::default();
        let spec = Spec::of_tasks(1);
        let service = tripod_state::ids::ServiceIncarnation(1);
        let create = job::Command::Create { name: "a".to_owned(), spec, service };
        replica.apply(Command::Job(create)).reply.expect("the name is free");
        let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
        replica.apply(Command::Level(raise)).reply.expect("nobody else is there");
        for address in ["10.0.0.1:1", "10.0.0.2:1"] {
            replica.ask(Request::RegisterStore { address: address.to_owned() });
        }
        for (host, role, attributed, slots) in [
            (1, Role::Worker, false, 1),
            (2, Role::Worker, true, 1),
            (2, Role::Worker, true, 2),
            (1, Role::Driver, false, 1),
            (2, Role::Driver, true, 1),
        ] {
            let one = register(host, role, attributed, slots);
            replica.ask(if slots > 1 { with_offers(one, 1) } else { one });
        }
        for worker in 0..3 {
            let worker = WorkerId(worker);
            for (name, results) in [("f", 1), ("g", 2), ("h", 0)] {
                let name = FunctionName(Bytes::from(name));
                replica.ask(Request::RegisterFunction { worker, name, results });
            }
            replica.ask(Request::Idle { worker, previous: None, run: None });
        }
        replica
    }

    fn apply(&mut self, command: Command) -> Outcome {
        self.index += 1;
        let context = ApplyContext { index: LogIndex(self.index), term: Term(1), now_ms: TimeMs(self.now) };
        self.state.apply(&context, Envelope { stamp: None, command })
    }

    fn ask(&mut self, request: Request) -> Outcome {
        self.ask_as(Origin::default(), request)
    }

    fn ask_as(&mut self, origin: Origin, request: Request) -> Outcome {
        self.apply(Command::Ray(Ray::Ask { scope: SCOPE, origin, request }))
    }

    fn lead(&mut self, decision: Decision) -> Outcome {
        self.apply(Command::Ray(Ray::Lead { scope: SCOPE, decision }))
    }

    fn ray(&self) -> &tripod_state::ray::Ray {
        self.state.ray(SCOPE.job).expect("it began")
    }

    fn step(&mut self, step: &Step) -> Option<Outcome> {
        match step {
            Step::Ask(origin, request) => Some(self.ask_as(*origin, request.clone())),
            Step::Lead(decision) => Some(self.lead(decision.clone())),
            Step::Plan => {
                let planned = self.ray().plan(TimeMs(self.now), 8);
                let count = planned.len() as u64;
                let outcome = self.lead(Decision::Assign(planned));
                let taken = outcome.reply.clone();
                assert_eq!(taken, Ok(tripod_state::Answer::Ray(Answer::Assigned { taken: count })));
                Some(outcome)
            }
            Step::Obey => {
                let orders = self.ray().orders(None, usize::MAX);
                let orders = orders.into_iter().map(|(id, _)| id).collect();
                Some(self.lead(Decision::Done { orders }))
            }
            Step::Wait(time) => {
                self.now += time;
                None
            }
            Step::Level(to) => {
                let to = FeatureLevel(*to);
                let command = if to > self.state.level() {
                    level::Command::Raise { to, heard: Vec::new() }
                } else {
                    level::Command::Pin { level: to, by: String::new() }
                };
                Some(self.apply(Command::Level(command)))
            }
        }
    }

    /// A store and a worker that do what they are told, until nothing is left to be told.
    fn finish(&mut self) {
        self.now += 100_000;
        self.ask(Request::RegisterStore { address: "10.0.0.9:1".to_owned() });
        let stores = self.ray().stores();
        let store = stores.iter().rev().find(|store| store.alive).expect("it just came").id;
        let one = register(9, Role::Worker, true, 2);
        // Below level 10 no task needs anything.
        let one = if self.state.level() < level::NEWEST { one } else { with_offers(one, 9) };
        let registered = self.ask(one).reply;
        let Ok(tripod_state::Answer::Ray(Answer::Worker { worker, .. })) = registered else {
            panic!("{registered:?}");
        };
        for (name, results) in [("f", 1), ("g", 2), ("h", 0)] {
            let name = FunctionName(Bytes::from(name));
            self.ask(Request::RegisterFunction { worker, name, results });
        }
        for _ in 0..500 {
            self.now += 100_000;
            self.ask(Request::Idle { worker, previous: None, run: None });
            self.step(&Step::Plan);
            let mut moved = false;
            for worker in self.ray().workers() {
                for run in worker.running {
                    moved = true;
                    self.execute(worker.id, worker.store, run);
                }
            }
            // What was said to be done, or was never written, comes at last.
            for object in self.pending() {
                let made = self.ask(Request::Ready { object, store, run: None }).reply;
                moved |= made.is_ok();
            }
            if !moved {
                return;
            }
        }
        panic!("it never ends: {:?}", self.ray());
    }

    fn execute(&mut self, worker: WorkerId, store: StoreId, run: Run) {
        let found = self.ray().execution(run).expect("it runs");
        for (object, wanted) in found.results.into_iter().zip(found.store_output) {
            if wanted {
                self.ask(Request::Ready { object, store, run: Some(run) });
            }
        }
        let previous = Some(Previous { succeeded: true, error: Bytes::new() });
        let reported = self.ask(Request::Idle { worker, previous, run: Some(run) });
        assert!(reported.reply.is_ok(), "{reported:?}");
    }

    /// Objects that nobody is at work on and that are not there.
    fn pending(&self) -> Vec<ObjectId> {
        let ray = self.ray();
        let busy: Vec<ObjectId> = ray
            .info()
            .graph
            .into_iter()
            .filter(|operation| {
                let tasks = ray.tasks(None, usize::MAX);
                let state = tasks.iter().find(|task| task.id == operation.id).map(|task| task.state);
                matches!(state, Some(TaskState::Waiting | TaskState::Queued | TaskState::Running))
            })
            .flat_map(|operation| match operation.kind {
                Kind::Task { results, .. } => results,
                _ => Vec::new(),
            })
            .collect();
        let all = (0..ray.info().counts.len() as u64).map(ObjectId);
        let pending = all.filter(|object| ray.availability(*object) == Some(Availability::Pending));
        pending.filter(|object| !busy.contains(object)).collect()
    }

    fn through_a_snapshot(&self) -> Self {
        let records: Vec<_> = self.state.records().collect();
        let state = State::from_records(records.into_iter()).expect("a state's own records are well formed");
        Self { state, ..*self }
    }
}

/// An id that means an older one, if it means another. A task that waits for an id which means what the task is to
/// make waits for ever, and that is its client's doing.
fn without_circles(step: &Step) -> Step {
    let turned = |request: &Request| match request {
        Request::Alias { alias, target, run } => {
            Request::Alias { alias: *alias.max(target), target: *alias.min(target), run: *run }
        }
        other => other.clone(),
    };
    match step {
        Step::Ask(origin, Request::Batch(all)) => {
            Step::Ask(*origin, Request::Batch(all.iter().map(turned).collect()))
        }
        Step::Ask(origin, request) => Step::Ask(*origin, turned(request)),
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    // More with `PROPTEST_CASES`.

    /// Whatever is asked and decided, the books balance, and a refusal leaves no trace.
    #[test]
    fn the_books_of_a_scheduler_balance_after_every_command(steps in steps(150)) {
        let mut replica = Replica::started();
        for step in &steps {
            let before = replica.ray().clone();
            let outcome = replica.step(step);
            let checked = replica.ray().check();
            prop_assert!(checked.is_ok(), "{:?} after {:?}", checked, step);
            prop_assert_eq!(replica.state.bytes(), replica.state.recounted_bytes(), "{:?}", step);
            if let Some(Outcome { reply: Err(_), effects }) = outcome {
                prop_assert!(effects.is_empty());
                prop_assert!(*replica.ray() == before, "{:?}", step);
            }
        }
    }

    /// Replay of a prefix, a snapshot, and the rest: the same as replay of all.
    #[test]
    fn a_snapshot_can_stand_for_any_prefix_of_a_scheduler(steps in steps(80), cut in 0_usize..80) {
        let mut whole = Replica::started();
        let mut resumed = Replica::started();
        for (number, step) in steps.iter().enumerate() {
            if number == cut {
                resumed = resumed.through_a_snapshot();
            }
            prop_assert_eq!(whole.step(step), resumed.step(step));
        }
        prop_assert_eq!(whole.state.digest(), resumed.state.digest());
        prop_assert!(whole.state == resumed.state);
        let again = whole.through_a_snapshot();
        prop_assert!(again.state == whole.state);
        prop_assert_eq!(again.state.digest(), whole.state.digest());
    }

    /// Whatever happened, in the end each object is there, or known to be lost for a reason, or not needed; and each
    /// task is over. What attributed processes owned goes with them.
    #[test]
    fn in_the_end_every_object_is_decided(steps in steps(100)) {
        let mut replica = Replica::started();
        for step in &steps {
            replica.step(&without_circles(step));
        }
        replica.finish();
        let ray = replica.ray();
        prop_assert_eq!(ray.check(), Ok(()));
        for object in (0..ray.info().counts.len() as u64).map(ObjectId) {
            let found = ray.availability(object);
            prop_assert!(found != Some(Availability::Pending), "{:?} is pending in {:?}", object, ray);
        }
        for task in ray.tasks(None, usize::MAX) {
            let over = matches!(task.state, TaskState::Done | TaskState::Failed | TaskState::Cancelled);
            prop_assert!(over, "{:?} in {:?}", task, ray);
        }
        prop_assert_eq!(ray.totals().gets, 0);
        let workers = ray.workers();
        for worker in workers.iter().filter(|worker| !matches!(worker.life, WorkerLife::Dead(_))) {
            replica.lead(Decision::Expire { peers: vec![Peer::Worker(worker.id)] });
        }
        prop_assert_eq!(replica.ray().check(), Ok(()));
    }

    /// Each task goes to a worker that has what it needs, and before all that wait, have a lower priority, and could have
    /// gone there.
    #[test]
    fn a_plan_obeys_needs_and_priorities(wanted in proptest::collection::vec((needs(), 0_u8..2), 1..30)) {
        let mut replica = Replica::started();
        for gpus in 0..3 {
            let registered = replica.ask(with_offers(register(1, Role::Worker, true, 1), gpus)).reply;
            let Ok(tripod_state::Answer::Ray(Answer::Worker { worker, .. })) = registered else {
                panic!("{registered:?}");
            };
            let name = FunctionName(Bytes::from("f"));
            replica.ask(Request::RegisterFunction { worker, name, results: 1 });
            replica.ask(Request::Idle { worker, previous: None, run: None });
        }
        for (needs, function) in wanted {
            let name = FunctionName(Bytes::from(if function == 0 { "f" } else { "g" }));
            let task = Task { name, arguments: Vec::new(), results_given: 0 };
            let (worker, options) = (WorkerId(3), TaskOptions::default());
            let submit = Request::SubmitWith { worker, task, options, child: None, hint: None, needs };
            prop_assert!(replica.ask(submit).reply.is_ok());
        }
        let ray = replica.ray();
        let planned = ray.plan(TimeMs(replica.now), usize::MAX);
        let needs_something =
            |task: &OperationId| ray.needs_of(*task).is_some_and(|needs| !needs.is_default());
        prop_assert!(!planned.is_empty() || ray.info().queue.iter().all(needs_something));
        let left: Vec<_> = ray.info().queue.into_iter()
            .filter(|task| planned.iter().all(|assignment| assignment.operation != *task))
            .collect();
        let functions = ray.info().functions;
        let names: BTreeMap<_, _> = ray.tasks(None, usize::MAX).into_iter().map(|task| (task.id, task.name)).collect();
        let fits = |task: OperationId, worker: WorkerId| {
            let (needs, offers) = (ray.needs_of(task).expect("it waits"), ray.offers(worker));
            let knows = functions.iter().any(|(name, _, workers)| {
                *name == names[&task] && workers.contains(&worker)
            });
            knows
                && needs.cpus_milli <= offers.cpus_milli
                && needs.memory_bytes <= offers.memory_bytes
                && needs.named_milli.iter().all(|(name, amount)| {
                    offers.named_milli.get(name).is_some_and(|has| has >= amount)
                })
        };
        for Assignment { operation, worker, .. } in &planned {
            prop_assert!(fits(*operation, *worker));
            let priority = ray.needs_of(*operation).expect("it waits").priority;
            for waits in left.iter().filter(|waits| fits(**waits, *worker)) {
                prop_assert!(ray.needs_of(*waits).expect("it waits").priority <= priority);
            }
        }
    }

    /// A request that comes again with its stamp, at once or later, has the first one's answer and changes nothing.
    #[test]
    fn stamped_requests_take_effect_once(steps in steps(60)) {
        let mut replica = Replica::started();
        let mut sent: Vec<(Origin, Request, Outcome)> = Vec::new();
        let mut sequence = 0;
        for step in &steps {
            let Step::Ask(origin, request) = step else {
                // A session knows when it was last used, so time stands still; and it must not be closed. At another
                // level a request may be one that comes too early.
                let session = matches!(step, Step::Wait(_) | Step::Lead(Decision::ExpireSessions { .. }));
                if !session && !matches!(step, Step::Level(_)) {
                    replica.step(step);
                }
                continue;
            };
            sequence += 1;
            let stamp = Stamp {
                session: ClientSession(7),
                sequence: Sequence(sequence),
                acknowledged_below: Sequence(1),
            };
            let origin = Origin { stamp: Some(stamp), ..*origin };
            let first = replica.ask_as(origin, request.clone());
            let asked_again = matches!(
                first.reply,
                Err(Fault::Ray(Refusal::FunctionUnknown { .. } | Refusal::NoStore { .. }))
            );
            if asked_again {
                sequence -= 1;
                continue;
            }
            sent.push((origin, request.clone(), first));
            let (origin, request, first) = sent[sent.len() / 2].clone();
            let before = replica.state.clone();
            let again = replica.ask_as(origin, request);
            let expected = match first.reply {
                Ok(tripod_state::Answer::Ray(answer)) => {
                    Ok(tripod_state::Answer::Ray(Answer::Replayed(Box::new(answer))))
                }
                refused => refused,
            };
            prop_assert_eq!(again.reply, expected);
            prop_assert!(again.effects.is_empty());
            prop_assert!(replica.state == before);
        }
    }
}

/// The properties above are worth something only if the commands reach the interesting places.
#[test]
fn the_generated_commands_reach_most_of_the_scheduler() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut seen = std::collections::BTreeSet::new();
    let mut see = |text: String| {
        let name = text.split([' ', '{']).next().unwrap_or("").to_owned();
        seen.insert(name);
    };
    for _ in 0..2_000 {
        let mut replica = Replica::started();
        for step in &steps(150).new_tree(&mut runner).expect("nothing is filtered").current() {
            match replica.step(step).map(|outcome| outcome.reply) {
                Some(Err(Fault::Ray(refusal))) => see(format!("{refusal:?}")),
                Some(Ok(tripod_state::Answer::Ray(answer))) => see(format!("{answer:?}")),
                _ => {}
            }
        }
        for (_, order) in replica.ray().orders(None, usize::MAX) {
            see(format!("{order:?}"));
        }
        for task in replica.ray().tasks(None, usize::MAX) {
            see(format!("{:?}", task.state));
        }
        for object in (0..replica.ray().info().counts.len() as u64).map(ObjectId) {
            match replica.ray().availability(object) {
                Some(Availability::Failed(failure)) => {
                    see(format!("{:?}", failure.reason).replace('(', " "));
                }
                found => see(format!("{found:?}")),
            }
        }
    }
    for wanted in WANTED {
        assert!(seen.contains(wanted), "{wanted} was never seen, only {seen:?}");
    }
}

/// Answers, refusals, orders, and what became of tasks and objects.
const WANTED: [&str; 46] = [
    "Submitted",
    "Object",
    "Killed(true)",
    "Killed(false)",
    "FunctionUnknown",
    "WorkerUnknown",
    "WorkerExpired",
    "StoreUnknown",
    "StoreExpired",
    "NoStore",
    "ObjectUnknown",
    "ObjectDeallocated",
    "ArgumentUnknown",
    "ArgumentDeallocated",
    "Invalid",
    "NotOwned",
    "TooFewReferences",
    "AliasedAlready",
    "AliasOfItself",
    "AliasCycle",
    "AliasOfValue",
    "ReadyAlias",
    "ContainedAlready",
    "IsDriver",
    "OtherAttempt",
    "Execute",
    "Import",
    "Die",
    "Deliver",
    "NotifyAlias",
    "Deallocate",
    "Cancel",
    "Waiting",
    "Queued",
    "Running",
    "Reported",
    "Done",
    "Failed",
    "Cancelled",
    "PutObject",
    "RetriesExhausted",
    "DependencyFailed",
    "ReconstructionDisabled",
    "Some(Ready)",
    "Some(Pending)",
    "Some(Deallocated)",
];
