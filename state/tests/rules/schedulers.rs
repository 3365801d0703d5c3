//! The scheduler's place in a job: levels, snapshots, bounds, depth, and what a small run costs.

use bytes::Bytes;
use tripod_state::ids::{FeatureLevel, JobName, Sequence, TimeMs};
use tripod_state::level::{self, NEWEST};
use tripod_state::ray::ids::{ClientSession, FunctionName, ObjectId, OperationId, StoreId, WorkerId};
use tripod_state::ray::{
    Answer, Argument, Assignment, Command as Ray, Decision, Order, Origin, Peer, Previous, Refusal,
    Registration, Request, Role, Run, Source, Stamp, Task, TaskCall, TaskOptions, limits, view,
};
use tripod_state::snapshot::Record;
use tripod_state::{Command, Fault, State, job};

use crate::support::{Machine, SCOPE};

impl Machine {
    fn with_scheduler() -> Self {
        let mut machine = Self::with_tasks(1);
        let raise = level::Command::Raise { to: NEWEST, heard: Vec::new() };
        machine.apply(Command::Level(raise)).expect("nobody else is there");
        machine.ask(Request::RegisterStore { address: "10.0.0.1:1".to_owned() }).expect("there is room");
        machine.register(Role::Driver).expect("there is a store");
        machine.register(Role::Worker).expect("there is a store");
        for (name, results) in [("f", 1), ("g", 0)] {
            let function = Request::RegisterFunction { worker: WORKER, name: name_of(name), results };
            machine.ask(function).expect("it lives");
        }
        machine.idle(None);
        machine
    }

    fn register(&mut self, role: Role) -> Result<Answer, Refusal> {
        let (host, store) = ("10.0.0.1".to_owned(), String::new());
        let attributed = role == Role::Driver;
        let wanted = Registration { host, store, role, attributed, extended: true, slots: 1 };
        self.ask(Request::RegisterWorker(wanted))
    }

    fn ask(&mut self, request: Request) -> Result<Answer, Refusal> {
        self.ask_as(Origin::default(), request)
    }

    fn ask_as(&mut self, origin: Origin, request: Request) -> Result<Answer, Refusal> {
        match self.apply(Command::Ray(Ray::Ask { scope: SCOPE, origin, request })) {
            Ok(tripod_state::Answer::Ray(answer)) => Ok(answer),
            Err(Fault::Ray(refusal)) => Err(refusal),
            other => panic!("{other:?}"),
        }
    }

    fn lead(&mut self, decision: Decision) -> Answer {
        match self.apply(Command::Ray(Ray::Lead { scope: SCOPE, decision })) {
            Ok(tripod_state::Answer::Ray(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }

    fn ray(&self) -> &tripod_state::ray::Ray {
        self.state.ray(SCOPE.job).expect("it began")
    }

    fn submit(&mut self, name: &str, arguments: Vec<Argument>) -> Result<Vec<ObjectId>, Refusal> {
        let task = Task { name: name_of(name), arguments, results_given: 0 };
        let (options, child, hint) = (TaskOptions::default(), None, None);
        match self.ask(Request::Submit { worker: DRIVER, task, options, child, hint })? {
            Answer::Submitted { results } => Ok(results),
            other => panic!("{other:?}"),
        }
    }

    fn put(&mut self) -> ObjectId {
        match self.ask(Request::Put { worker: DRIVER, child: None, hold: false }) {
            Ok(Answer::Object { object, .. }) => object,
            other => panic!("{other:?}"),
        }
    }

    fn idle(&mut self, succeeded: Option<bool>) {
        let previous = succeeded.map(|succeeded| Previous { succeeded, error: Bytes::from_static(b"no") });
        self.ask(Request::Idle { worker: WORKER, previous, run: None }).expect("it lives");
    }

    fn ready(&mut self, object: ObjectId) {
        self.ask(Request::Ready { object, store: StoreId(0), run: None }).expect("it is referred to");
    }

    fn drop_all(&mut self, objects: Vec<ObjectId>) {
        self.ask(Request::DropReferences { objects }).expect("they are there");
    }

    /// Plans and gives out; what was planned.
    fn assign(&mut self) -> Vec<Assignment> {
        let planned = self.ray().plan(TimeMs(1_000), 100);
        self.lead(Decision::Assign(planned.clone()));
        planned
    }

    fn obey(&mut self) {
        let orders = self.ray().orders(None, usize::MAX);
        let orders = orders.into_iter().map(|(id, _)| id).collect();
        self.lead(Decision::Done { orders });
    }

    /// A task from its submission to the end of its result.
    fn run_one(&mut self) {
        let results = self.submit("f", Vec::new()).expect("the function is known");
        assert_eq!(self.assign().len(), 1);
        self.ready(results[0]);
        self.idle(Some(true));
        self.drop_all(vec![results[0], results[0]]);
        self.obey();
    }
}

const DRIVER: WorkerId = WorkerId(0);
const WORKER: WorkerId = WorkerId(1);

fn name_of(text: &str) -> FunctionName {
    FunctionName(Bytes::from(text.to_owned()))
}

/// With something in every table.
fn rich() -> Machine {
    let mut machine = Machine::with_scheduler();
    machine.ask(Request::RegisterStore { address: "10.0.0.2:1".to_owned() }).expect("there is room");
    machine.ask(Request::ExportFunction { body: Bytes::from_static(b"f") }).expect("there is room");
    let variable = Request::ExportVariable { name: name_of("v"), body: Bytes::from_static(b"v") };
    machine.ask(variable).expect("there is room");
    let (one, two, three) = (machine.put(), machine.put(), machine.put());
    for object in [one, two, three] {
        machine.ask(Request::AddReferences { objects: vec![object, object] }).expect("it is there");
    }
    machine.ready(one);
    machine.ask(Request::Contain { object: one, contained: vec![two] }).expect("it is there");
    machine.ask(Request::Alias { alias: three, target: two, run: None }).expect("both are there");
    let origin = |sequence| {
        let sequence = Sequence(sequence);
        let stamp = Stamp { session: ClientSession(1), sequence, acknowledged_below: Sequence(1) };
        Origin { stamp: Some(stamp), process: Some(DRIVER) }
    };
    for sequence in 1..3 {
        let added = machine.ask_as(origin(sequence), Request::AddReferences { objects: vec![one] });
        assert_eq!(added, Ok(Answer::Done));
    }
    machine.ask(Request::Get { worker: DRIVER, object: three }).expect("it is there");
    machine.submit("f", vec![Argument::Object(one)]).expect("it is known");
    machine.assign();
    machine.idle(Some(false));
    machine.submit("g", vec![Argument::Object(three)]).expect("it is known");
    machine.submit("g", Vec::new()).expect("it is known");
    machine.assign();
    let gone = machine.put();
    machine.ask(Request::AddReferences { objects: vec![gone] }).expect("it is there");
    machine.ready(gone);
    machine.drop_all(vec![gone]);
    machine.ray().check().expect("the books balance");
    machine
}

#[test]
fn a_scheduler_keeps_the_level_up_and_is_named() {
    let mut machine = Machine::with_scheduler();
    let pin = |level| Command::Level(level::Command::Pin { level: FeatureLevel(level), by: String::new() });
    let refusal =
        level::Refusal::Schedulers { needs: FeatureLevel(3), count: 1, jobs: vec![JobName::from("w")] };
    assert_eq!(machine.apply(pin(2)), Err(Fault::Level(refusal)));
    assert_eq!(machine.apply(pin(3)), Ok(tripod_state::Answer::Done));
    machine.apply(Command::Job(job::Command::Delete { name: "w".to_owned() })).expect("it is there");
    assert_eq!(machine.apply(pin(2)), Ok(tripod_state::Answer::Done));
}

#[test]
fn a_scheduler_goes_through_a_snapshot_and_a_binary_codec() {
    let state = rich().state;
    let coded: Vec<Vec<u8>> = state
        .records()
        .map(|record| {
            bincode::serde::encode_to_vec(record, bincode::config::standard()).expect("it has a form")
        })
        .collect();
    let decoded = coded.iter().map(|bytes| {
        let decoded: Result<(Record, usize), _> =
            bincode::serde::decode_from_slice(bytes, bincode::config::standard());
        decoded.expect("it was just written").0
    });
    let restored = State::from_records(decoded).expect("the records are in order");
    assert!(restored == state);
    assert_eq!(restored.digest(), state.digest());
}

#[test]
fn a_scheduler_with_a_record_too_few_too_many_or_out_of_place_is_refused() {
    let machine = rich();
    let records: Vec<Record> = machine.state.records().collect();
    for place in 0..records.len() - 1 {
        let mut dropped = records.clone();
        dropped.remove(place);
        State::from_records(dropped.into_iter()).expect_err("a record is missing");
        let mut doubled = records.clone();
        doubled.insert(place, records[place].clone());
        State::from_records(doubled.into_iter()).expect_err("a record is there twice");
        let mut swapped = records.clone();
        swapped.swap(place, place + 1);
        State::from_records(swapped.into_iter()).expect_err("two records changed places");
    }
}

#[test]
fn a_job_that_ended_with_its_cluster_has_no_scheduler_and_one_that_goes_on_has() {
    let state = rich().state;
    let ended = state.clone().restored("other", tripod_state::restore::Jobs::Ended);
    assert!(ended.ray(SCOPE.job).is_none());
    let kept = state.clone().restored("other", tripod_state::restore::Jobs::Kept);
    assert_eq!(kept.ray(SCOPE.job), state.ray(SCOPE.job));
}

/// Containers within containers: no recursion, whatever the depth.
#[test]
fn a_deep_nest_of_containers_goes_at_once() {
    let mut machine = Machine::with_scheduler();
    let objects: Vec<ObjectId> = (0..100_000).map(|_| machine.put()).collect();
    for object in &objects {
        machine.ask(Request::AddReferences { objects: vec![*object] }).expect("it is there");
        machine.ready(*object);
    }
    for pair in objects.windows(2) {
        let contain = Request::Contain { object: pair[0], contained: vec![pair[1]] };
        machine.ask(contain).expect("it is there");
    }
    machine.drop_all(vec![objects[0]]);
    assert_eq!(machine.ray().totals().objects_live, 0);
    let orders = machine.ray().orders(None, usize::MAX);
    let freed = |order: &Order| matches!(order, Order::Deallocate { .. });
    assert_eq!(orders.iter().filter(|(_, order)| freed(order)).count(), objects.len());
    machine.ray().check().expect("the books balance");
}

/// A chain of pointers and its drop from either end.
#[test]
fn a_deep_chain_of_aliases_is_as_quick_as_a_short_one() {
    let mut machine = Machine::with_scheduler();
    let objects: Vec<ObjectId> = (0..100_000).map(|_| machine.put()).collect();
    machine.ask(Request::AddReferences { objects: objects.clone() }).expect("they are there");
    for pair in objects.windows(2) {
        let alias = Request::Alias { alias: pair[1], target: pair[0], run: None };
        machine.ask(alias).expect("both are there");
    }
    let last = objects[objects.len() - 1];
    machine.ask(Request::Get { worker: DRIVER, object: last }).expect("it is there");
    machine.ready(objects[0]);
    assert_eq!(machine.ray().availability(last), Some(view::Availability::Ready));
    machine.ray().check().expect("the books balance");
    machine.drop_all(objects);
    assert_eq!(machine.ray().totals().objects_live, 0);
    machine.ray().check().expect("the books balance");
}

/// The same chain, written from its far end: nobody waits, so nothing is gone through.
#[test]
fn a_chain_of_aliases_that_grows_at_its_end_is_as_quick() {
    let mut machine = Machine::with_scheduler();
    let objects: Vec<ObjectId> = (0..100_000).map(|_| machine.put()).collect();
    let last = objects[objects.len() - 1];
    machine.ask(Request::AddReferences { objects: vec![last] }).expect("it is there");
    machine.ask(Request::Get { worker: DRIVER, object: last }).expect("it is there");
    for pair in objects.windows(2).rev() {
        let alias = Request::Alias { alias: pair[1], target: pair[0], run: None };
        machine.ask(alias).expect("both are there");
    }
    machine.ready(objects[0]);
    assert_eq!(machine.ray().availability(last), Some(view::Availability::Ready));
    assert_eq!(machine.ray().totals().gets, 0);
    machine.drop_all(vec![last]);
    assert_eq!(machine.ray().totals().objects_live, 0);
    machine.ray().check().expect("the books balance");
}

/// A process that ends before its store has what it put takes with it whatever that was.
#[test]
fn what_was_put_and_never_written_is_lost_with_its_process() {
    let mut machine = Machine::with_scheduler();
    let (wanted, unwanted) = (machine.put(), machine.put());
    machine.ask(Request::AddReferences { objects: vec![wanted] }).expect("it is there");
    machine.lead(Decision::Expire { peers: vec![Peer::Worker(DRIVER)] });
    let reason = match machine.ray().availability(wanted) {
        Some(view::Availability::Failed(failure)) => Some(failure.reason),
        _ => None,
    };
    assert_eq!(reason, Some(view::Reason::PutObject));
    assert_eq!(machine.ray().availability(unwanted), Some(view::Availability::Deallocated));
    machine.ray().check().expect("the books balance");
}

/// A task that was given to a worker waits at that worker's store, and asks nobody: what is lost there must come
/// again, or the reason why it does not.
#[test]
fn what_is_lost_at_a_store_comes_to_it_again() {
    let mut machine = Machine::with_scheduler();
    machine.ask(Request::RegisterStore { address: "10.0.0.2:1".to_owned() }).expect("there is room");
    let copied = machine.put();
    let single = machine.put();
    machine.ask(Request::AddReferences { objects: vec![copied, single] }).expect("they are there");
    machine.ready(copied);
    machine.ready(single);
    machine.ask(Request::Ready { object: copied, store: StoreId(1), run: None }).expect("it is there");
    let nothing = Decision::Reconcile { store: StoreId(0), holds: Vec::new(), asked_ms: TimeMs(2_000) };
    machine.lead(nothing);
    let orders: Vec<Order> = machine.ray().orders(None, 9).into_iter().map(|(_, order)| order).collect();
    let deliver = |object, from| Order::Deliver { store: StoreId(0), from, object };
    assert_eq!(orders, [deliver(copied, Source::Store(StoreId(1))), deliver(single, Source::Coordinator)]);
    machine.ray().check().expect("the books balance");
}

/// What is over is forgotten: the newest of it is shown, and no more than that is kept.
#[test]
fn a_constant_live_set_needs_constant_memory() {
    let mut machine = Machine::with_scheduler();
    let records = |machine: &Machine| machine.state.records().count();
    let runs = limits::FINISHED_KEPT.max(limits::GONE_KEPT) + 10;
    for _ in 0..runs {
        machine.run_one();
    }
    let before = records(&machine);
    for _ in 0..500 {
        machine.run_one();
    }
    assert_eq!(records(&machine), before);
    let info = machine.ray().info();
    assert_eq!(info.graph.len(), limits::FINISHED_KEPT);
    assert_eq!(info.base_operation, (runs + 500 - limits::FINISHED_KEPT) as u64);
    assert_eq!(info.counts.len(), limits::GONE_KEPT);
    assert!(info.counts.iter().all(Option::is_none));
    assert_eq!(machine.ray().task_info().succeeded, (runs + 500) as u64);
    let late = machine.ask(Request::AddReferences { objects: vec![ObjectId(0)] });
    assert_eq!(late, Err(Refusal::ObjectDeallocated { object: ObjectId(0) }));
    assert_eq!(machine.ray().totals().lineage_bytes, 0);
    machine.ray().check().expect("the books balance");
}

/// A chain of tasks of which only the last result is needed is remembered as far as the bytes go, and what was made
/// by a forgotten one is told to be so when it is lost.
#[test]
fn lineage_beyond_its_bytes_is_forgotten_from_the_oldest_on() {
    let mut machine = Machine::with_scheduler();
    let value = Bytes::from(vec![0; limits::TASK_BYTES_MAX as usize]);
    let runs = limits::LINEAGE_BYTES_MAX / limits::TASK_BYTES_MAX + 10;
    let mut results = Vec::new();
    for _ in 0..runs {
        let argument = Argument::Value { bytes: value.clone(), nested: Vec::new() };
        let result = machine.submit("f", vec![argument]).expect("it is known")[0];
        machine.assign();
        machine.ready(result);
        machine.idle(Some(true));
        results.push(result);
    }
    assert!(machine.ray().totals().lineage_bytes <= limits::LINEAGE_BYTES_MAX);
    let before = machine.ray().task_info();
    machine.lead(Decision::Expire { peers: vec![Peer::Store(StoreId(0))] });
    let lost = |object: ObjectId| match machine.ray().availability(object) {
        Some(view::Availability::Failed(failure)) => Some(failure.reason),
        _ => None,
    };
    assert_eq!(lost(results[0]), Some(view::Reason::LineageEvicted));
    assert_eq!(lost(results[results.len() - 1]), None);
    assert_eq!(machine.ray().task_info(), before);
    machine.ray().check().expect("the books balance");
}

/// A task that runs again submits and puts what it did before, and gets the same ids.
#[test]
fn children_of_a_task_that_runs_again_keep_their_ids() {
    let mut machine = Machine::with_scheduler();
    machine.register(Role::Worker).expect("there is a store");
    let again = WorkerId(2);
    let function = Request::RegisterFunction { worker: again, name: name_of("g"), results: 0 };
    machine.ask(function).expect("it lives");
    machine.submit("g", Vec::new()).expect("it is known");
    machine.assign();
    let call = |worker, name: &str, child| {
        let task = Task { name: name_of(name), arguments: Vec::new(), results_given: 0 };
        let (options, hint) = (TaskOptions::default(), None);
        Request::Submit { worker, task, options, child: Some(TaskCall { run: None, place: child }), hint }
    };
    let first = machine.ask(call(WORKER, "f", 0)).expect("it is known");
    let Ok(Answer::Object { object, present: false }) = machine.ask(Request::Put {
        worker: WORKER,
        child: Some(TaskCall { run: None, place: 1 }),
        hold: false,
    }) else {
        panic!("a new object");
    };
    machine.ready(object);
    machine
        .ask(Request::AddReferences { objects: vec![object] })
        .expect_err("nothing referred to it any more");
    machine.lead(Decision::Expire { peers: vec![Peer::Worker(WORKER)] });
    machine.ask(Request::Idle { worker: again, previous: None, run: None }).expect("it lives");
    let planned = machine.assign();
    assert_eq!((planned[0].operation, planned[0].attempt.0, planned[0].worker), (OperationId(0), 2, again));
    let before = machine.ray().info().graph.len();
    assert_eq!(machine.ask(call(again, "f", 0)), Ok(first.clone()));
    assert_eq!(machine.ray().info().graph.len(), before);
    assert_ne!(machine.ask(call(again, "g", 0)), Ok(first), "another call is another task");
    machine.ray().check().expect("the books balance");
}

/// A getter whose delivery was lost with its source gets the object when it is made again.
#[test]
fn a_delivery_that_was_lost_is_begun_anew_when_the_object_is_there_again() {
    let mut machine = Machine::with_scheduler();
    machine.ask(Request::RegisterStore { address: "10.0.0.2:1".to_owned() }).expect("there is room");
    machine.ask(Request::RegisterStore { address: "10.0.0.3:1".to_owned() }).expect("there is room");
    let result = machine.submit("f", Vec::new()).expect("it is known")[0];
    machine.assign();
    machine.ask(Request::Ready { object: result, store: StoreId(1), run: None }).expect("it is there");
    machine.idle(Some(true));
    machine.ask(Request::Get { worker: DRIVER, object: result }).expect("it is there");
    machine.obey();
    machine.lead(Decision::Expire { peers: vec![Peer::Store(StoreId(1))] });
    assert_eq!(machine.ray().orders(None, 9), []);
    assert_eq!(machine.assign().len(), 1);
    machine.ask(Request::Ready { object: result, store: StoreId(2), run: None }).expect("it is there");
    let orders = machine.ray().orders(None, 9);
    let delivers = |order: &Order| matches!(order, Order::Deliver { store: StoreId(0), .. });
    assert_eq!(orders.iter().filter(|(_, order)| delivers(order)).count(), 1, "{orders:?}");
    let run = Run { operation: OperationId(0), attempt: tripod_state::ray::ids::Attempt(2) };
    assert_eq!(machine.ray().execution(run).map(|found| found.store_output), Some(vec![false]));
    machine.ray().check().expect("the books balance");
}

#[test]
fn a_lone_task_is_hinted_to_the_worker_that_the_planner_would_take() {
    let mut machine = Machine::with_scheduler();
    let task = |arguments| Task { name: name_of("f"), arguments, results_given: 0 };
    assert_eq!(machine.ray().hint(&task(Vec::new())), Some(WORKER));
    let missing = machine.put();
    assert_eq!(machine.ray().hint(&task(vec![Argument::Object(missing)])), None, "it has to wait");
    let other = Task { name: name_of("unknown"), ..task(Vec::new()) };
    assert_eq!(machine.ray().hint(&other), None, "nobody executes it");
    machine.submit("f", Vec::new()).unwrap();
    assert_eq!(machine.ray().hint(&task(Vec::new())), None, "another one waits");
    assert_eq!(machine.assign()[0].worker, WORKER);
    assert_eq!(machine.ray().hint(&task(Vec::new())), None, "nobody is idle");
}

/// The number is that of the walk-through of a new operator.
#[test]
fn n05_a_task_that_is_given_back_has_made_no_attempt() {
    let shown = |machine: &Machine| {
        let task = machine.ray().tasks(None, 1).remove(0);
        (task.state, task.attempts, task.history)
    };
    let mut machine = Machine::with_scheduler();
    machine.submit("f", Vec::new()).expect("the function is known");
    for _ in 0..3 {
        let given = machine.assign().into_iter();
        let runs: Vec<Run> =
            given.map(|one| Run { operation: one.operation, attempt: one.attempt }).collect();
        assert_eq!(runs.len(), 1);
        machine.ask(Request::GiveBack { worker: WORKER, runs }).expect("it lives");
    }
    assert_eq!(shown(&machine), (view::TaskState::Queued, 0, Vec::new()));
    machine.assign();
    assert_eq!(shown(&machine), (view::TaskState::Running, 1, Vec::new()));

    // The worker dies with it, and another one makes the second attempt.
    machine.lead(Decision::Expire { peers: vec![Peer::Worker(WORKER)] });
    let died = vec!["attempt 1: worker 1 at 10.0.0.1:40001 died: it was silent for too long".to_owned()];
    assert_eq!(shown(&machine), (view::TaskState::Queued, 1, died.clone()));
    let worker = WorkerId(2);
    machine.register(Role::Worker).expect("there is a store");
    machine.ask(Request::RegisterFunction { worker, name: name_of("f"), results: 1 }).expect("it lives");
    machine.ask(Request::Idle { worker, previous: None, run: None }).expect("it lives");
    machine.assign();
    let previous = Some(Previous { succeeded: true, error: Bytes::new() });
    machine.ask(Request::Idle { worker, previous, run: None }).expect("it lives");
    assert_eq!(shown(&machine), (view::TaskState::Reported, 2, died));
}
