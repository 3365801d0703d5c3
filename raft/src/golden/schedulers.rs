//! What came with level 3: the scheduler of tasks and objects.

use bytes::Bytes;
use tripod_state::ids::{FeatureLevel, JobId, NodeId, Sequence, Term, TimeMs};
use tripod_state::ray::ids::{
    Attempt, ClientSession, FunctionName, ObjectId, OperationId, OrderId, StoreId, WorkerId,
};
use tripod_state::ray::{
    Algorithm, Answer, Argument, Assignment, Command as Ray, Decision, FetchFailure, Origin, Peer, Previous,
    Refusal, Registration, Request, Role, Run, Stamp, Task, TaskCall, TaskOptions,
};
use tripod_state::{Command, Envelope, Scope, level};

use super::commands::Sample;

const SCOPE: Scope = Scope { job: JobId(300), service: None };
const RUN: Run = Run { operation: OperationId(400), attempt: Attempt(2) };
const CHILD: TaskCall = TaskCall { run: Some(RUN), place: 3 };
const STAMP: Stamp = Stamp {
    session: ClientSession(u128::MAX - 1),
    sequence: Sequence(300),
    acknowledged_below: Sequence(299),
};
const WORKER: WorkerId = WorkerId(5);
const STORE: StoreId = StoreId(6);
const OBJECT: ObjectId = ObjectId(70_000);

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn name() -> FunctionName {
    FunctionName(bytes("maths.add"))
}

/// Every kind of command, and every choice within one.
pub(crate) fn commands() -> Vec<Sample> {
    let origin = Origin { stamp: Some(STAMP), process: Some(WORKER) };
    let mut samples = Vec::new();
    let mut add = |name: &'static str, command| {
        samples.push((name, Envelope { stamp: None, command: Command::Ray(command) }));
    };
    for (name, request) in requests() {
        add(name, Ray::Ask { scope: SCOPE, origin, request });
    }
    let put = Request::Put { worker: WORKER, child: None, hold: false };
    add("ray/put unstamped", Ray::Ask { scope: SCOPE, origin: Origin::default(), request: put });
    for (name, decision) in decisions() {
        add(name, Ray::Lead { scope: SCOPE, decision });
    }
    samples
}

fn requests() -> Vec<(&'static str, Request)> {
    let (worker, store, object, run) = (WORKER, STORE, OBJECT, Some(RUN));
    let absent = FetchFailure::Absent { source: "10.0.0.6:7750".into() };
    let mut requests = of_peers();
    requests.extend(of_tasks());
    requests.extend([
        ("ray/put", Request::Put { worker, child: Some(CHILD), hold: true }),
        ("ray/get", Request::Get { worker, object }),
        ("ray/alias", Request::Alias { alias: ObjectId(71), target: object, run }),
        ("ray/ready", Request::Ready { object, store, run }),
        ("ray/fetch-failed", Request::FetchFailed { object, store, why: FetchFailure::Unfinished }),
        ("ray/fetch-failed absent", Request::FetchFailed { object, store, why: absent }),
        ("ray/fetch-failed too-large", Request::FetchFailed { object, store, why: FetchFailure::Told }),
        ("ray/add-references", Request::AddReferences { objects: vec![object, object] }),
        ("ray/drop-references", Request::DropReferences { objects: vec![object] }),
        ("ray/contain", Request::Contain { object, contained: vec![ObjectId(1), ObjectId(300)] }),
        ("ray/export-function", Request::ExportFunction { body: bytes("pickled") }),
        ("ray/export-variable", Request::ExportVariable { name: name(), body: bytes("pickled") }),
        ("ray/batch", Request::Batch(vec![Request::KillWorkers, Request::Get { worker, object }])),
    ]);
    requests
}

fn of_peers() -> Vec<(&'static str, Request)> {
    let wanted = Registration {
        host: "10.0.0.5".into(),
        store: "10.0.0.5:7750".into(),
        role: Role::Worker,
        attributed: true,
        extended: false,
        slots: 128,
    };
    let driver = Registration { role: Role::Driver, store: String::new(), ..wanted.clone() };
    vec![
        ("ray/register-store", Request::RegisterStore { address: "10.0.0.5:7750".into() }),
        ("ray/register-worker", Request::RegisterWorker(wanted)),
        ("ray/register-worker driver", Request::RegisterWorker(driver)),
        ("ray/register-function", Request::RegisterFunction { worker: WORKER, name: name(), results: 2 }),
        ("ray/kill-workers", Request::KillWorkers),
        ("ray/leave", Request::Leave { peer: Peer::Worker(WORKER) }),
        ("ray/leave store", Request::Leave { peer: Peer::Store(STORE) }),
    ]
}

fn of_tasks() -> Vec<(&'static str, Request)> {
    let worker = WORKER;
    let nested = vec![ObjectId(1), ObjectId(1)];
    let arguments = vec![Argument::Object(OBJECT), Argument::Value { bytes: bytes("value"), nested }];
    let task = Task { name: name(), arguments, results_given: 0 };
    let options = TaskOptions { max_retries: Some(300), retry_exceptions: true };
    let endless = TaskOptions { max_retries: None, retry_exceptions: false };
    let child = Some(CHILD);
    let whole = Request::Submit { worker, task: task.clone(), options, child, hint: Some(WorkerId(9)) };
    let bare = Request::Submit { worker, task, options: endless, child: None, hint: None };
    let previous = Some(Previous { succeeded: false, error: bytes("no") });
    vec![
        ("ray/submit", whole),
        ("ray/submit bare", bare),
        ("ray/idle", Request::Idle { worker, previous, run: Some(RUN) }),
        ("ray/idle first", Request::Idle { worker, previous: None, run: None }),
        ("ray/give-back", Request::GiveBack { worker, runs: vec![RUN] }),
    ]
}

fn decisions() -> Vec<(&'static str, Decision)> {
    let (store, object) = (STORE, OBJECT);
    let assignment = Assignment { operation: RUN.operation, attempt: RUN.attempt, worker: WORKER };
    let asked_ms = TimeMs(1_700_000_000_000);
    vec![
        ("ray/assign", Decision::Assign(vec![assignment])),
        ("ray/done", Decision::Done { orders: vec![OrderId(1), OrderId(300)] }),
        ("ray/undelivered", Decision::Undelivered { runs: vec![RUN] }),
        ("ray/expire", Decision::Expire { peers: vec![Peer::Worker(WORKER), Peer::Store(store)] }),
        ("ray/reconcile", Decision::Reconcile { store, holds: vec![object], asked_ms }),
        ("ray/delivery-failed", Decision::DeliveryFailed { store, object }),
        ("ray/expire-sessions", Decision::ExpireSessions { before_ms: asked_ms }),
        ("ray/rearm", Decision::Rearm { term: Term(300) }),
        ("ray/set-algorithm", Decision::SetAlgorithm(Algorithm::Naive)),
        ("ray/set-algorithm locality-aware", Decision::SetAlgorithm(Algorithm::LocalityAware)),
        ("ray/unreported", Decision::Unreported { runs: vec![RUN] }),
    ]
}

/// Every answer.
pub(super) fn answers() -> Vec<(&'static str, Answer)> {
    let worker = Answer::Worker {
        worker: WORKER,
        store: STORE,
        address: "10.0.0.5:40005".into(),
        store_address: "10.0.0.5:7750".into(),
    };
    let batch = vec![Ok(Answer::Done), Err(Refusal::SessionExpired)];
    vec![
        ("done", Answer::Done),
        ("store", Answer::Store(STORE)),
        ("worker", worker),
        ("submitted", Answer::Submitted { results: vec![OBJECT] }),
        ("object", Answer::Object { object: OBJECT, present: true }),
        ("killed", Answer::Killed(true)),
        ("assigned", Answer::Assigned { taken: 300 }),
        ("batch", Answer::Batch(batch)),
        ("replayed", Answer::Replayed(Box::new(Answer::Store(STORE)))),
    ]
}

/// Every refusal. The match has no wildcard: a new one does not compile without a name, and is a thing of a later
/// level.
pub(super) fn refusals() -> Vec<(&'static str, Refusal)> {
    let named = |refusal| {
        let name = match &refusal {
            Refusal::FunctionUnknown { .. } => "function unknown",
            Refusal::WorkerUnknown { .. } => "worker unknown",
            Refusal::WorkerExpired { .. } => "worker expired",
            Refusal::StoreUnknown { .. } => "store unknown",
            Refusal::StoreExpired { .. } => "store expired",
            Refusal::NoStore { .. } => "no store",
            Refusal::ObjectUnknown { .. } => "object unknown",
            Refusal::ObjectDeallocated { .. } => "object deallocated",
            Refusal::ArgumentUnknown { .. } => "argument unknown",
            Refusal::ArgumentDeallocated { .. } => "argument deallocated",
            Refusal::Invalid { .. } => "invalid",
            Refusal::NotOwned { .. } => "not owned",
            Refusal::TooFewReferences { .. } => "too few references",
            Refusal::AliasedAlready { .. } => "aliased already",
            Refusal::AliasOfItself { .. } => "alias of itself",
            Refusal::AliasCycle { .. } => "alias cycle",
            Refusal::AliasOfValue { .. } => "alias of value",
            Refusal::ReadyAlias { .. } => "ready alias",
            Refusal::ContainedAlready { .. } => "contained already",
            Refusal::IsDriver { .. } => "is driver",
            Refusal::OtherAttempt { .. } => "other attempt",
            Refusal::SessionExpired => "session expired",
            Refusal::AnswerForgotten => "answer forgotten",
            Refusal::SessionWindow { .. } => "session window",
            Refusal::Full { .. } => "full",
        };
        (name, refusal)
    };
    of_ids().into_iter().chain(of_aliases()).chain(of_bounds()).map(named).collect()
}

fn of_ids() -> Vec<Refusal> {
    let (worker, store, object, place) = (WORKER, STORE, OBJECT, 2);
    vec![
        Refusal::FunctionUnknown { name: name() },
        Refusal::WorkerUnknown { worker },
        Refusal::WorkerExpired { worker },
        Refusal::StoreUnknown { store },
        Refusal::StoreExpired { store },
        Refusal::NoStore { host: "10.0.0.5".into(), address: "10.0.0.5:7750".into() },
        Refusal::ObjectUnknown { object },
        Refusal::ObjectDeallocated { object },
        Refusal::ArgumentUnknown { place, object },
        Refusal::ArgumentDeallocated { place, object },
        Refusal::NotOwned { process: worker, object },
        Refusal::TooFewReferences { object, held: 1, dropped: 300 },
        Refusal::IsDriver { worker },
        Refusal::OtherAttempt { operation: RUN.operation },
    ]
}

fn of_aliases() -> Vec<Refusal> {
    let (alias, target, object) = (ObjectId(71), OBJECT, OBJECT);
    vec![
        Refusal::AliasedAlready { alias, target },
        Refusal::AliasOfItself { alias },
        Refusal::AliasCycle { alias, target },
        Refusal::AliasOfValue { alias },
        Refusal::ReadyAlias { object, target },
        Refusal::ContainedAlready { object },
    ]
}

fn of_bounds() -> Vec<Refusal> {
    vec![
        Refusal::Invalid { field: "slots".into(), reason: "must be at least 1".into() },
        Refusal::SessionExpired,
        Refusal::AnswerForgotten,
        Refusal::SessionWindow { limit: 1_024 },
        Refusal::Full { what: "workers".into(), limit: 300 },
    ]
}

/// Raises the level of a log with these members.
pub(super) fn raise(to: u32, members: u64) -> Command {
    let heard = (1..=members).map(NodeId).collect();
    Command::Level(level::Command::Raise { to: FeatureLevel(to), heard })
}
