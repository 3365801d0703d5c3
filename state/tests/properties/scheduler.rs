//! What holds for every sequence of a scheduler's commands. Names are few, so that they meet.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tripod_state::ids::{FeatureLevel, JobId, LogIndex, Sequence, Term, TimeMs};
use tripod_state::job::Spec;
use tripod_state::ray::ids::{
    Attempt, ClientSession, FunctionName, ObjectId, OperationId, OrderId, StoreId, WorkerId,
};
use tripod_state::ray::{
    Algorithm, Answer, Argument, Assignment, Command as Ray, Decision, Origin, Peer, Previous, Refusal,
    Registration, Request, Role, Run, Stamp, Task, TaskOptions,
};
use tripod_state::state::Outcome;
use tripod_state::{ApplyContext, Command, Envelope, Fault, Scope, State, job, level};

const SCOPE: Scope = Scope { job: JobId(1), service: None };

/// A state machine with its place in the log.
#[derive(Clone, Default)]
struct Replica {
    state: State,
    index: u64,
    now: u64,
}

/// One thing that happens.
#[derive(Debug, Clone)]
enum Step {
    Ask(Origin, Request),
    Lead(Decision),
    /// The leader plans and says so.
    Plan,
    /// All that was ordered so far is done.
    Obey,
    Wait(u64),
}

impl Replica {
    /// With a job, two stores, two workers that can do something, one that names itself, and two drivers.
    fn started() -> Self {
        let mut replica = Self::default();
        let spec = Spec::of_tasks(1);
        let service = tripod_state::ids::ServiceIncarnation(1);
        let create = job::Command::Create { name: "a".to_owned(), spec, service };
        replica.apply(Command::Job(create)).reply.expect("the name is free");
        let raise = level::Command::Raise { to: FeatureLevel(3), heard: Vec::new() };
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
            replica.ask(register(host, role, attributed, slots));
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
        }
    }

    fn through_a_snapshot(&self) -> Self {
        let records: Vec<_> = self.state.records().collect();
        let state = State::from_records(records.into_iter()).expect("a state's own records are well formed");
        Self { state, ..*self }
    }
}

fn register(host: u8, role: Role, attributed: bool, slots: u32) -> Request {
    let host = format!("10.0.0.{host}");
    let store = String::new();
    Request::RegisterWorker(Registration { host, store, role, attributed, extended: attributed, slots })
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..=most)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        24 => (origin(), request()).prop_map(|(origin, request)| Step::Ask(origin, request)).boxed(),
        3 => (origin(), vec(request(), 0..4))
            .prop_map(|(origin, all)| Step::Ask(origin, Request::Batch(all))).boxed(),
        4 => decision().prop_map(Step::Lead).boxed(),
        8 => Just(Step::Plan),
        2 => Just(Step::Obey),
        1 => select(vec![1_u64, 1000, 40_000]).prop_map(Step::Wait),
    ]
}

fn origin() -> impl Strategy<Value = Origin> {
    let process = select(vec![None, None, Some(WorkerId(1)), Some(WorkerId(2)), Some(WorkerId(4))]);
    process.prop_map(|process| Origin { stamp: None, process })
}

fn object() -> impl Strategy<Value = ObjectId> {
    prop_oneof![8 => 0_u64..12, 2 => 0_u64..40].prop_map(ObjectId)
}

fn worker() -> impl Strategy<Value = WorkerId> {
    prop_oneof![8 => 0_u64..5, 1 => 0_u64..9].prop_map(WorkerId)
}

fn store() -> impl Strategy<Value = StoreId> {
    prop_oneof![8 => 0_u64..2, 1 => 0_u64..5].prop_map(StoreId)
}

fn run() -> impl Strategy<Value = Run> {
    (0_u64..16, 1_u32..3)
        .prop_map(|(operation, attempt)| Run { operation: OperationId(operation), attempt: Attempt(attempt) })
}

fn argument() -> impl Strategy<Value = Argument> {
    let bytes = Bytes::from_static(b"v");
    prop_oneof![
        3 => object().prop_map(Argument::Object),
        1 => vec(object(), 0..3).prop_map(move |nested| Argument::Value { bytes: bytes.clone(), nested }),
    ]
}

fn task() -> impl Strategy<Value = Task> {
    (select(vec!["f", "f", "g", "h", "unknown"]), vec(argument(), 0..3), select(vec![0, 0, 0, 0, 0, 1]))
        .prop_map(|(name, arguments, results_given)| Task {
            name: FunctionName(Bytes::from(name)),
            arguments,
            results_given,
        })
}

fn options() -> impl Strategy<Value = TaskOptions> {
    let retries = select(vec![Some(3), Some(3), Some(0), Some(1), None]);
    (retries, any::<bool>())
        .prop_map(|(max_retries, retry_exceptions)| TaskOptions { max_retries, retry_exceptions })
}

fn request() -> impl Strategy<Value = Request> {
    let child = || select(vec![None, None, Some(0_u32), Some(1)]);
    let maybe_run = || proptest::option::weighted(0.3, run());
    prop_oneof![
        1 => (1_u8..3).prop_map(|host| Request::RegisterStore { address: format!("10.0.0.{host}:1") }).boxed(),
        1 => (1_u8..4, select(vec![Role::Worker, Role::Driver]), any::<bool>(), 0_u32..3)
            .prop_map(|(host, role, attributed, slots)| register(host, role, attributed, slots)).boxed(),
        1 => (worker(), select(vec!["f", "g"]), 0_u64..3).prop_map(|(worker, name, results)| {
            Request::RegisterFunction { worker, name: FunctionName(Bytes::from(name)), results }
        }).boxed(),
        8 => (worker(), task(), options(), child(), proptest::option::of(worker()))
            .prop_map(|(worker, task, options, child, hint)| {
                Request::Submit { worker, task, options, child, hint }
            }).boxed(),
        2 => (worker(), child()).prop_map(|(worker, child)| Request::Put { worker, child }).boxed(),
        3 => (worker(), object()).prop_map(|(worker, object)| Request::Get { worker, object }).boxed(),
        3 => (object(), object(), maybe_run())
            .prop_map(|(alias, target, run)| Request::Alias { alias, target, run }).boxed(),
        10 => (object(), store(), maybe_run())
            .prop_map(|(object, store, run)| Request::Ready { object, store, run }).boxed(),
        4 => vec(object(), 0..4).prop_map(|objects| Request::AddReferences { objects }).boxed(),
        8 => vec(object(), 1..3).prop_map(|objects| Request::DropReferences { objects }).boxed(),
        2 => (object(), vec(object(), 0..3))
            .prop_map(|(object, contained)| Request::Contain { object, contained }).boxed(),
        10 => (worker(), proptest::option::weighted(0.8, any::<bool>()), maybe_run())
            .prop_map(|(worker, previous, run)| {
                let error = Bytes::from_static(b"no");
                let previous = previous.map(|succeeded| Previous { succeeded, error });
                Request::Idle { worker, previous, run }
            }).boxed(),
        1 => (worker(), vec(run(), 0..3)).prop_map(|(worker, runs)| Request::GiveBack { worker, runs }).boxed(),
        1 => Just(Request::KillWorkers),
        1 => select(vec!["x", "y"]).prop_map(|body| Request::ExportFunction { body: Bytes::from(body) }).boxed(),
        1 => select(vec!["x", "y"]).prop_map(|body| {
            Request::ExportVariable { name: FunctionName(Bytes::from("v")), body: Bytes::from(body) }
        }).boxed(),
        1 => peer().prop_map(|peer| Request::Leave { peer }).boxed(),
    ]
}

fn peer() -> impl Strategy<Value = Peer> {
    prop_oneof![3 => worker().prop_map(Peer::Worker), 1 => store().prop_map(Peer::Store)]
}

fn decision() -> impl Strategy<Value = Decision> {
    let assignment = (0_u64..16, 1_u32..3, worker()).prop_map(|(operation, attempt, worker)| Assignment {
        operation: OperationId(operation),
        attempt: Attempt(attempt),
        worker,
    });
    let holds = || {
        vec(object(), 0..8).prop_map(|mut holds| {
            holds.sort_unstable();
            holds.dedup();
            holds
        })
    };
    prop_oneof![
        2 => vec(assignment, 0..4).prop_map(Decision::Assign).boxed(),
        2 => vec((0_u64..40).prop_map(OrderId), 0..6).prop_map(|orders| Decision::Done { orders }).boxed(),
        2 => vec(run(), 0..3).prop_map(|runs| Decision::Undelivered { runs }).boxed(),
        2 => vec(peer(), 0..3).prop_map(|peers| Decision::Expire { peers }).boxed(),
        2 => (store(), holds(), 0_u64..2000).prop_map(|(store, holds, asked)| {
            Decision::Reconcile { store, holds, asked_ms: TimeMs(asked) }
        }).boxed(),
        1 => (store(), object()).prop_map(|(store, object)| Decision::DeliveryFailed { store, object }).boxed(),
        1 => (0_u64..2000).prop_map(|before| Decision::ExpireSessions { before_ms: TimeMs(before) }).boxed(),
        1 => (0_u64..4).prop_map(|term| Decision::Rearm { term: Term(term) }).boxed(),
        1 => select(vec![Algorithm::Naive, Algorithm::LocalityAware]).prop_map(Decision::SetAlgorithm),
    ]
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

    /// A request that comes again with its stamp, at once or later, has the first one's answer and changes nothing.
    #[test]
    fn stamped_requests_take_effect_once(steps in steps(60)) {
        let mut replica = Replica::started();
        let mut sent: Vec<(Origin, Request, Outcome)> = Vec::new();
        let mut sequence = 0;
        for step in &steps {
            let Step::Ask(origin, request) = step else {
                // A session knows when it was last used, so time stands still; and it must not be closed.
                if !matches!(step, Step::Wait(_) | Step::Lead(Decision::ExpireSessions { .. })) {
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
            let unknown = matches!(first.reply, Err(Fault::Ray(Refusal::FunctionUnknown { .. })));
            if unknown {
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
