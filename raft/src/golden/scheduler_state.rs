//! A scheduler with something of every kind in it.

use bytes::Bytes;
use tripod_state::ids::{DurationMs, JobId, Sequence, Term, TimeMs};
use tripod_state::ray::ids::{ClientSession, FunctionName, ObjectId, OrderId, StoreId, WorkerId};
use tripod_state::ray::{
    Answer, Argument, Assignment, Command as Ray, Decision, Description, Needs, Offers, Order, Origin, Peer,
    Previous, Registration, Request, Role, Run, Stamp, Task, TaskCall, TaskOptions,
};
use tripod_state::{Command, Scope};

use super::state::Log;

/// The job that has a scheduler.
const JOB: JobId = JobId(1);
const SCOPE: Scope = Scope { job: JOB, service: None };

/// Processes, in the order of their registration.
const DRIVER: WorkerId = WorkerId(0);
const WORKER: WorkerId = WorkerId(1);
const OTHER: WorkerId = WorkerId(2);
const DEAD: WorkerId = WorkerId(3);
const DEAD_DRIVER: WorkerId = WorkerId(4);

/// Tasks that a worker may have at a time.
const SLOTS: u32 = 4;

/// What is asked of the scheduler of a log.
struct Talk<'a>(&'a mut Log);

impl Talk<'_> {
    fn ask(&mut self, request: Request) -> Option<Answer> {
        self.ask_as(Origin::default(), request)
    }

    fn ask_as(&mut self, origin: Origin, request: Request) -> Option<Answer> {
        match self.0.reply_to(Command::Ray(Ray::Ask { scope: SCOPE, origin, request })) {
            Ok(tripod_state::Answer::Ray(answer)) => Some(answer),
            Err(_) => None,
            other => panic!("{other:?}"),
        }
    }

    fn lead(&mut self, decision: Decision) {
        self.0.apply(Command::Ray(Ray::Lead { scope: SCOPE, decision }));
    }

    /// Places of the driver's session from 1 on.
    fn driver(&mut self, sequence: u64, request: Request) {
        let (sequence, acknowledged_below) = (Sequence(sequence), Sequence(1));
        let stamp = Stamp { session: ClientSession(1 << 100), sequence, acknowledged_below };
        self.ask_as(Origin { stamp: Some(stamp), process: Some(DRIVER) }, request);
    }

    fn put(&mut self, worker: WorkerId) -> ObjectId {
        match self.ask(Request::Put { worker, child: None, hold: false }) {
            Some(Answer::Object { object, .. }) => object,
            other => panic!("{other:?}"),
        }
    }

    fn ready(&mut self, object: ObjectId, store: u64) {
        self.ask(Request::Ready { object, store: StoreId(store), run: None });
    }

    fn submit(&mut self, function: &'static str, arguments: Vec<Argument>) -> Vec<ObjectId> {
        self.submit_with(function, arguments, TaskOptions { max_retries: None, retry_exceptions: false })
    }

    fn submit_with(
        &mut self,
        function: &'static str,
        arguments: Vec<Argument>,
        options: TaskOptions,
    ) -> Vec<ObjectId> {
        let task = Task { name: name(function), arguments, results_given: 0 };
        match self.ask(Request::Submit { worker: DRIVER, task, options, child: None, hint: None }) {
            Some(Answer::Submitted { results }) => results,
            other => panic!("{other:?}"),
        }
    }

    /// Gives out what can be given out; what that was.
    fn assign(&mut self) -> Vec<Assignment> {
        let ray = self.0.state.ray(JOB).expect("it began");
        let planned = ray.plan(TimeMs(1_000 * self.0.index), 100);
        self.lead(Decision::Assign(planned.clone()));
        planned
    }

    /// The only task that can be given out, which puts something; `results` come to be in a store.
    fn run_one(&mut self, results: &[ObjectId], store: u64, succeeded: bool) {
        let [Assignment { operation, attempt, worker }] = self.assign()[..] else { panic!("one task") };
        let run = Run { operation, attempt };
        self.ask(Request::Put { worker, child: Some(TaskCall { run: Some(run), place: 0 }), hold: true });
        for object in results {
            self.ready(*object, store);
        }
        self.idle(worker, Some((run, succeeded)));
    }

    fn idle(&mut self, worker: WorkerId, ended: Option<(Run, bool)>) {
        let previous = ended.map(|(_, succeeded)| Previous { succeeded, error: Bytes::from_static(b"no") });
        self.ask(Request::Idle { worker, previous, run: ended.map(|(run, _)| run) });
    }
}

fn name(text: &'static str) -> FunctionName {
    FunctionName(Bytes::from_static(text.as_bytes()))
}

/// Goes on behind a log at level 3.
pub(super) fn add_to(log: &mut Log) {
    let mut talk = Talk(log);
    peers(&mut talk);
    objects(&mut talk);
    tasks(&mut talk);
    ends(&mut talk);
    log.state.ray(JOB).expect("it began").check().expect("the books balance");
}

/// Goes on at level 4: a worker whose slots are all taken is given what it waits for, and a variable is exported again.
pub(super) fn go_on(log: &mut Log) {
    let mut talk = Talk(log);
    for _ in 0..6 {
        let needed = talk.submit("f", Vec::new())[0];
        talk.ask(Request::Get { worker: WORKER, object: needed });
        talk.idle(WORKER, None);
        talk.assign();
    }
    talk.idle(WORKER, None);
    let ray = talk.0.state.ray(JOB).expect("it began");
    let imports = ray.orders(None, usize::MAX).into_iter();
    let imports = imports.filter(|(_, order)| matches!(order, Order::Import { .. })).map(|(id, _)| id);
    let orders = imports.collect();
    talk.lead(Decision::Done { orders });
    for body in [b"w", b"x"] {
        talk.ask(Request::ExportVariable { name: name("v"), body: Bytes::from_static(body) });
    }
    log.state.ray(JOB).expect("it began").check().expect("the books balance");
}

/// Goes on at level 10: a worker that says what it has is given a task that needs that and is to end it, another task
/// waits, a third was cancelled, and an object is described.
pub(super) fn need_something(log: &mut Log) {
    let mut talk = Talk(log);
    let registration = Registration {
        host: "10.0.0.1".to_owned(),
        store: String::new(),
        role: Role::Worker,
        attributed: true,
        extended: true,
        slots: SLOTS,
    };
    let gpus = |milli| [("gpu".to_owned(), milli)].into();
    let offers = Offers { cpus_milli: 8_000, memory_bytes: 1 << 30, named_milli: gpus(1_000) };
    let registered = talk.ask(Request::RegisterWorkerWith { registration, offers });
    let Some(Answer::Worker { worker: able, .. }) = registered else { panic!("{registered:?}") };
    talk.ask(Request::RegisterFunction { worker: able, name: name("f"), results: 1 });
    let mut submit = |priority, milli| {
        let task = Task { name: name("f"), arguments: Vec::new(), results_given: 0 };
        let needs = Needs { priority, cpus_milli: 4_000, memory_bytes: 9, named_milli: gpus(milli) };
        let (worker, options) = (DRIVER, TaskOptions::default());
        match talk.ask(Request::SubmitWith { worker, task, options, child: None, hint: None, needs }) {
            Some(Answer::Submitted { results }) => results[0],
            other => panic!("{other:?}"),
        }
    };
    let [runs, waits, cancelled] = [submit(7, 1_000), submit(-1, 2_000), submit(0, 2_000)];
    talk.idle(able, None);
    talk.assign();
    for object in [runs, cancelled] {
        let told = talk.ask(Request::Cancel { worker: DRIVER, object, grace_ms: DurationMs(70_000) });
        assert_eq!(told, Some(Answer::Cancelled { over: false }));
    }
    let ray = talk.0.state.ray(JOB).expect("it began");
    let run = ray.worker(able).expect("it lives").running[0];
    let description = Description { shape: vec![2, 3], element_type: 11, bytes: 48 };
    let told = talk.ask(Request::Describe { object: runs, run: Some(run), description });
    assert_eq!(told, Some(Answer::Done));
    talk.ask(Request::AddReferences { objects: vec![waits] });
    log.state.ray(JOB).expect("it began").check().expect("the books balance");
}

fn peers(talk: &mut Talk<'_>) {
    for host in 1..=3 {
        talk.ask(Request::RegisterStore { address: format!("10.0.0.{host}:7750") });
    }
    let workers = [(1, Role::Worker), (2, Role::Worker), (3, Role::Worker)];
    for (host, role) in [(1, Role::Driver)].into_iter().chain(workers).chain([(1, Role::Driver)]) {
        let (host, store, attributed) = (format!("10.0.0.{host}"), String::new(), role == Role::Driver);
        let wanted = Registration { host, store, role, attributed, extended: true, slots: SLOTS };
        talk.ask(Request::RegisterWorker(wanted));
    }
    for worker in [WORKER, OTHER, DEAD] {
        for (function, results) in [("f", 1), ("g", 0), ("h", 2), ("again", 0)] {
            talk.ask(Request::RegisterFunction { worker, name: name(function), results });
        }
    }
    talk.ask(Request::ExportFunction { body: Bytes::from_static(b"f") });
    talk.ask(Request::ExportVariable { name: name("v"), body: Bytes::from_static(b"v") });
    talk.lead(Decision::Rearm { term: Term(3) });
}

fn objects(talk: &mut Talk<'_>) {
    let [one, two, three, four] = [(); 4].map(|()| talk.put(DRIVER));
    let lost = talk.put(DEAD);
    for object in [one, two, three, four, lost] {
        talk.ask(Request::AddReferences { objects: vec![object, object] });
    }
    talk.ready(one, 0);
    talk.ready(lost, 2);
    talk.ask(Request::Contain { object: one, contained: vec![two] });
    talk.ask(Request::Alias { alias: three, target: two, run: None });
    talk.ask(Request::Alias { alias: four, target: one, run: None });
    talk.driver(1, Request::AddReferences { objects: vec![one] });
    talk.driver(2, Request::AddReferences { objects: vec![ObjectId(9_999)] });
    // One that waits, one whose name is to be told, one that is under way under two names, and one that will be lost.
    for (worker, object) in [(DRIVER, three), (DRIVER, four), (OTHER, four), (OTHER, lost)] {
        talk.ask(Request::Get { worker, object });
    }
    let gone = talk.put(DRIVER);
    talk.ask(Request::AddReferences { objects: vec![gone] });
    talk.ready(gone, 0);
    talk.ask(Request::DropReferences { objects: vec![gone] });
}

fn tasks(talk: &mut Talk<'_>) {
    talk.idle(WORKER, None);
    // A chain of which only the end is needed, at a store that will die while another one fetches it.
    let begin = talk.submit("f", Vec::new());
    talk.run_one(&begin, 2, true);
    let end = talk.submit("f", vec![Argument::Object(begin[0])]);
    talk.run_one(&end, 2, true);
    talk.ask(Request::DropReferences { objects: vec![begin[0], begin[0]] });
    talk.ask(Request::Get { worker: OTHER, object: end[0] });
    // One that ends well, one that fails, one whose results are to come, and one that is tried again.
    let done = talk.submit("f", Vec::new());
    talk.run_one(&done, 0, true);
    for (function, succeeded) in [("g", false), ("h", true)] {
        talk.submit(function, Vec::new());
        talk.run_one(&[], 0, succeeded);
    }
    talk.submit_with("again", vec![], TaskOptions { max_retries: Some(3), retry_exceptions: true });
    talk.run_one(&[], 0, false);
    // As many as all of them may have, which are not told of yet, and one that waits.
    talk.idle(OTHER, None);
    talk.idle(DEAD, None);
    let nested = vec![ObjectId(0)];
    let value = Argument::Value { bytes: Bytes::from_static(b"value"), nested };
    for _ in 0..8 {
        talk.submit("f", vec![value.clone()]);
    }
    talk.assign();
    talk.submit("f", vec![Argument::Object(ObjectId(1))]);
    // One that nobody needs when its driver has died.
    let task = Task { name: name("f"), arguments: Vec::new(), results_given: 0 };
    let (worker, options) = (DEAD_DRIVER, TaskOptions::default());
    let submit = Request::Submit { worker, task, options, child: None, hint: None };
    let submitted = talk.ask_as(Origin { stamp: None, process: Some(worker) }, submit);
    assert!(matches!(submitted, Some(Answer::Submitted { .. })), "{submitted:?}");
}

/// A machine dies, a driver does, a worker cannot be reached, and what was tried again fails again.
fn ends(talk: &mut Talk<'_>) {
    talk.lead(Decision::Done { orders: vec![OrderId(4)] });
    talk.lead(Decision::Expire { peers: vec![Peer::Store(StoreId(2)), Peer::Worker(DEAD_DRIVER)] });
    let ray = talk.0.state.ray(JOB).expect("it began");
    let tasks = ray.tasks(None, usize::MAX);
    let again = tasks.iter().find(|task| task.name == name("again")).expect("it is remembered").id;
    let workers = ray.workers();
    let given = |id: WorkerId| workers[usize::try_from(id.0).expect("few")].running.clone();
    let run = given(WORKER).into_iter().find(|run| run.operation == again).expect("it is the earliest");
    talk.lead(Decision::Undelivered { runs: given(OTHER) });
    talk.idle(WORKER, Some((run, false)));
}

#[test]
fn the_scheduler_in_the_snapshot_has_a_record_of_every_kind() {
    let log = super::state::level_3();
    let records: Vec<String> = log.state.records().map(|record| format!("{record:?}")).collect();
    for kind in [
        "Store(",
        "Worker(",
        "Idle(",
        "Function(",
        "Export(",
        "Operation(",
        "Object(",
        "Reference(",
        "Gone(",
        "Notice(",
        "Wanted(",
        "Order(",
        "Failed(",
        "Session ",
        "Reply ",
    ] {
        let wanted = format!("Record(SchedulerPart({kind}");
        assert!(records.iter().any(|record| record.starts_with(&wanted)), "no {kind}: {records:#?}");
    }
    let parts: Vec<String> = records.into_iter().filter(|record| record.contains("SchedulerPart(")).collect();
    for word in [
        "kind: Task(",
        "kind: Put(",
        "kind: Get ",
        "stage: Queued",
        "stage: Running",
        "stage: Reported",
        "stage: Done",
        "stage: Failed",
        "stage: Cancelled",
        "target: Unknown",
        "target: Canonical",
        "target: To(",
        "producer: Task(",
        "producer: Put",
        "source: Store(",
        "source: Coordinator",
        "held: true",
        "failure: Some",
        "contained: Some",
        "freed_ms: Some",
        "run: Some",
        "death: Some",
        "suspect_until: Some",
        "not_before: Some",
        "Child {",
        "Execute {",
        "Import {",
        "Deliver {",
        "Deallocate {",
        "NotifyAlias {",
        "Err(",
        "counted: true",
        "Value {",
    ] {
        assert!(parts.iter().any(|part| part.contains(word)), "no {word}: {parts:#?}");
    }
}

#[test]
fn the_scheduler_of_level_4_has_what_that_level_brought() {
    let log = super::state::level_4();
    let ray = log.state.ray(JOB).expect("it began");
    let held = ray.worker(WORKER).expect("it lives").running.len();
    assert!(held > SLOTS as usize, "{held}");
    let records: Vec<String> = log.state.records().map(|record| format!("{record:?}")).collect();
    let beside = format!("Record(SchedulerPart(Beside(WorkerId({}), {}", WORKER.0, held + 1);
    assert!(records.iter().any(|record| record.starts_with(&beside)), "no {beside}: {records:#?}");
    let of_variable = |body: &str| format!(r#"Some(FunctionName(b"v")), b"{body}")))"#);
    let exported = |body: &str| records.iter().any(|record| record.ends_with(&of_variable(body)));
    // As it was, as workers are still to be told it, and as it is.
    assert_eq!(["v", "w", "x"].map(exported), [false, true, true], "{records:#?}");
}
