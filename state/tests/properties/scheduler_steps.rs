//! A scheduler's commands at random, over few names, so that they meet.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tripod_state::ids::{DurationMs, Term, TimeMs};
use tripod_state::ray::ids::{Attempt, FunctionName, ObjectId, OperationId, OrderId, StoreId, WorkerId};
use tripod_state::ray::limits::GRACE_MS_MAX;
use tripod_state::ray::{
    Algorithm, Argument, Assignment, Decision, Description, FetchFailure, Needs, Offers, Origin, Peer,
    Previous, Registration, Request, Role, Run, Task, TaskCall, TaskOptions,
};

/// One thing that happens.
#[allow(clippy::large_enum_variant, reason = "a test has few of them")]
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Ask(Origin, Request),
    Lead(Decision),
    /// The leader plans and says so.
    Plan,
    /// All that was ordered so far is done.
    Obey,
    Wait(u64),
    /// Up or down, or where it is.
    Level(u32),
}

pub(crate) fn register(host: u8, role: Role, attributed: bool, slots: u32) -> Request {
    let host = format!("10.0.0.{host}");
    let store = String::new();
    Request::RegisterWorker(Registration { host, store, role, attributed, extended: attributed, slots })
}

pub(crate) fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..=most)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        60 => (origin(), request()).prop_map(|(origin, request)| Step::Ask(origin, request)).boxed(),
        3 => (origin(), vec(request(), 0..4))
            .prop_map(|(origin, all)| Step::Ask(origin, Request::Batch(all))).boxed(),
        8 => decision().prop_map(Step::Lead).boxed(),
        16 => Just(Step::Plan),
        2 => Just(Step::Obey),
        1 => select(vec![1_u64, 1000, 40_000]).prop_map(Step::Wait),
        1 => select(vec![3_u32, 4]).prop_map(Step::Level),
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
    (
        select(vec!["f", "f", "f", "g", "g", "h", "unknown"]),
        vec(argument(), 0..3),
        select(vec![0, 0, 0, 0, 0, 1]),
    )
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

fn why() -> impl Strategy<Value = FetchFailure> {
    let absent = |host: u8| FetchFailure::Absent { source: format!("10.0.0.{host}:1") };
    prop_oneof![
        1 => Just(FetchFailure::Unfinished),
        1 => Just(FetchFailure::Told),
        3 => (1_u8..4).prop_map(absent),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    let child = || {
        let call = |place| Some(TaskCall { run: None, place });
        select(vec![None, None, call(0), call(1)])
    };
    let maybe_run = || proptest::option::weighted(0.3, run());
    prop_oneof![
        1 => (1_u8..3).prop_map(|host| Request::RegisterStore { address: format!("10.0.0.{host}:1") }).boxed(),
        1 => (1_u8..4, select(vec![Role::Worker, Role::Driver]), any::<bool>(), 0_u32..3)
            .prop_map(|(host, role, attributed, slots)| register(host, role, attributed, slots)).boxed(),
        1 => (worker(), select(vec!["f", "g"]), 0_u64..3).prop_map(|(worker, name, results)| {
            Request::RegisterFunction { worker, name: FunctionName(Bytes::from(name)), results }
        }).boxed(),
        16 => (worker(), task(), options(), child(), proptest::option::of(worker()))
            .prop_map(|(worker, task, options, child, hint)| {
                Request::Submit { worker, task, options, child, hint }
            }).boxed(),
        8 => (worker(), child())
            .prop_map(|(worker, child)| Request::Put { worker, child, hold: child.is_some() })
            .boxed(),
        6 => (worker(), object()).prop_map(|(worker, object)| Request::Get { worker, object }).boxed(),
        13 => (object(), object(), maybe_run())
            .prop_map(|(alias, target, run)| Request::Alias { alias, target, run }).boxed(),
        16 => (object(), store(), maybe_run())
            .prop_map(|(object, store, run)| Request::Ready { object, store, run }).boxed(),
        2 => (object(), store(), why()).prop_map(|(object, store, why)| {
            Request::FetchFailed { object, store, why }
        }).boxed(),
        14 => vec(object(), 0..4).prop_map(|objects| Request::AddReferences { objects }).boxed(),
        6 => vec(object(), 1..3).prop_map(|objects| Request::DropReferences { objects }).boxed(),
        6 => (object(), vec(object(), 0..3))
            .prop_map(|(object, contained)| Request::Contain { object, contained }).boxed(),
        16 => (worker(), proptest::option::weighted(0.8, any::<bool>()), maybe_run())
            .prop_map(|(worker, previous, run)| {
                let error = Bytes::from_static(b"no");
                let previous = previous.map(|succeeded| Previous { succeeded, error });
                Request::Idle { worker, previous, run }
            }).boxed(),
        1 => (worker(), vec(run(), 0..3)).prop_map(|(worker, runs)| Request::GiveBack { worker, runs }).boxed(),
        1 => Just(Request::KillWorkers),
        2 => select(vec!["x", "y"]).prop_map(|body| Request::ExportFunction { body: Bytes::from(body) }).boxed(),
        2 => (select(vec!["u", "v"]), select(vec!["x", "y"])).prop_map(|(name, body)| {
            Request::ExportVariable { name: FunctionName(Bytes::from(name)), body: Bytes::from(body) }
        }).boxed(),
        1 => peer().prop_map(|peer| Request::Leave { peer }).boxed(),
        9 => later_request().boxed(),
    ]
}

/// What came with level 10.
fn later_request() -> impl Strategy<Value = Request> {
    let maybe_run = || proptest::option::weighted(0.7, run());
    prop_oneof![
        6 => (worker(), task(), options(), needs(), proptest::option::of(worker()))
            .prop_map(|(worker, task, options, needs, hint)| {
                Request::SubmitWith { worker, task, options, child: None, hint, needs }
            }).boxed(),
        1 => (1_u8..3, 0_u64..3).prop_map(|(host, gpus)| with_offers(register(host, Role::Worker, true, 2), gpus))
            .boxed(),
        4 => (worker(), object(), select(vec![0, 1_000, GRACE_MS_MAX + 1]))
            .prop_map(|(worker, object, grace)| {
                Request::Cancel { worker, object, grace_ms: DurationMs(grace) }
            }).boxed(),
        4 => (object(), maybe_run(), vec(0_u64..4, 0..3)).prop_map(|(object, run, shape)| {
            let description = Description { shape, element_type: 10, bytes: 8 };
            Request::Describe { object, run, description }
        }).boxed(),
    ]
}

/// A worker that says that it has so many GPUs.
pub(crate) fn with_offers(register: Request, gpus: u64) -> Request {
    let Request::RegisterWorker(registration) = register else { return register };
    let named_milli = BTreeMap::from([("gpu".to_owned(), gpus * 1_000)]);
    let offers = Offers { cpus_milli: 4_000, memory_bytes: 1 << 30, named_milli };
    Request::RegisterWorkerWith { registration, offers }
}

pub(crate) fn needs() -> impl Strategy<Value = Needs> {
    let gpus = select(vec![None, None, Some(1_000), Some(2_000)]);
    (select(vec![0, 0, -1, 7]), select(vec![0, 0, 1_000, 4_000]), select(vec![0, 4_096]), gpus).prop_map(
        |(priority, cpus_milli, memory_bytes, gpus)| {
            let named_milli = gpus.map(|milli| ("gpu".to_owned(), milli)).into_iter().collect();
            Needs { priority, cpus_milli, memory_bytes, named_milli }
        },
    )
}

fn peer() -> impl Strategy<Value = Peer> {
    prop_oneof![6 => worker().prop_map(Peer::Worker), 1 => store().prop_map(Peer::Store)]
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
        1 => vec(peer(), 0..2).prop_map(|peers| Decision::Expire { peers }).boxed(),
        2 => (store(), holds(), 0_u64..2000).prop_map(|(store, holds, asked)| {
            Decision::Reconcile { store, holds, asked_ms: TimeMs(asked) }
        }).boxed(),
        1 => (store(), object()).prop_map(|(store, object)| Decision::DeliveryFailed { store, object }).boxed(),
        1 => (0_u64..2000).prop_map(|before| Decision::ExpireSessions { before_ms: TimeMs(before) }).boxed(),
        1 => (0_u64..4).prop_map(|term| Decision::Rearm { term: Term(term) }).boxed(),
        1 => select(vec![Algorithm::Naive, Algorithm::LocalityAware]).prop_map(Decision::SetAlgorithm),
        2 => vec(run(), 0..3).prop_map(|runs| Decision::Overdue { runs }).boxed(),
    ]
}
