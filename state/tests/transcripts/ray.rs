//! A scheduler's commands and looks as lines. Ids are numbers; `w1` and `s0` are a worker and a store where both may
//! stand; `3/1` is attempt 1 of task 3. The orders that a command gives are told with it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bytes::Bytes;
use tripod_state::Scope;
use tripod_state::ids::{DurationMs, Sequence, Term, TimeMs};
use tripod_state::ray::ids::{
    Attempt, ClientSession, FunctionName, ObjectId, OperationId, OrderId, StoreId, WorkerId,
};
use tripod_state::ray::{
    Algorithm, Argument, Assignment, Command, Decision, Description, FetchFailure, Needs, Offers, Origin,
    Peer, Previous, Ray, Registration, Request, Role, Run, Stamp, Task, TaskCall, TaskOptions,
};

use crate::script::Line;
use crate::show;

/// The command of a line; `scheduler` is the one that it is about, if it is there.
pub(crate) fn command(scope: Scope, scheduler: Option<&Ray>, now: TimeMs, line: &Line<'_>) -> Command {
    match decision(scheduler, now, line) {
        Some(decision) => Command::Lead { scope, decision },
        None => Command::Ask { scope, origin: origin(line), request: request(line) },
    }
}

/// What a line that only looks is told.
pub(crate) fn look(ray: &Ray, now: TimeMs, line: &Line<'_>) -> Option<String> {
    Some(match line.word(0) {
        "ray-counts" => {
            let info = ray.info();
            let target = |target: &Option<ObjectId>| target.map_or("?".to_owned(), |id| id.to_string());
            let count = |count: &Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
            let targets: Vec<String> = info.targets.iter().map(target).collect();
            let counts: Vec<String> = info.counts.iter().map(count).collect();
            format!("from {}: mean {}; have {}", info.base_object, targets.join(" "), counts.join(" "))
        }
        "ray-queue" => {
            let info = ray.info();
            show::plain(&(("queue", info.queue), ("idle", info.idle)))
        }
        "ray-functions" => show::plain(&ray.info().functions),
        "ray-graph" => {
            let graph = ray.info().graph;
            let lines = graph.iter().map(|operation| format!("\n  {}", show::plain(operation)));
            format!("graph{}", lines.collect::<String>())
        }
        "ray-orders" => told(ray, OrderId(0), "orders"),
        "ray-info" => show::plain(&ray.task_info()),
        "ray-tasks" => {
            let tasks = ray.tasks(None, 100);
            let lines = tasks.iter().map(|task| {
                let error = String::from_utf8_lossy(&task.error);
                let (id, attempts, state) = (task.id, task.attempts, task.state);
                format!("\n  {id} {} attempts {attempts} {state:?} {error} {:?}", task.name, task.history)
            });
            format!("tasks{}", lines.collect::<String>())
        }
        "ray-object" => show::plain(&ray.availability(ObjectId(line.number(line.word(1))))),
        "ray-execution" => show::plain(&ray.execution(run(line, line.word(1)))),
        "ray-peers" => {
            let workers = ray.workers().into_iter().map(|worker| format!("\n  {}", show::plain(&worker)));
            let stores = ray.stores().into_iter().map(|store| format!("\n  {}", show::plain(&store)));
            format!("peers{}", workers.chain(stores).collect::<String>())
        }
        "ray-due" => show::plain(&ray.next_due(now)),
        "ray-needs" => show::plain(&ray.needs_of(OperationId(line.number(line.word(1))))),
        "ray-offers" => show::plain(&ray.offers(WorkerId(line.number(line.word(1))))),
        "ray-described" => show::plain(&ray.description(ObjectId(line.number(line.word(1))))),
        "ray-totals" => show::plain(&ray.totals()),
        _ => return None,
    })
}

/// The orders from one on, each on a line.
pub(crate) fn told(ray: &Ray, from: OrderId, title: &str) -> String {
    let mut said = title.to_owned();
    for (id, order) in ray.orders(from.0.checked_sub(1).map(OrderId), usize::MAX) {
        write!(said, "\n  {id}: {}", show::plain(&order)).expect("a string takes all");
    }
    said
}

fn origin(line: &Line<'_>) -> Origin {
    let stamp = line.option("session").map(|stamp| {
        let numbers: Vec<u64> = stamp.split('/').map(|part| line.number(part)).collect();
        Stamp {
            session: ClientSession(u128::from(numbers[0])),
            sequence: Sequence(numbers[1]),
            acknowledged_below: Sequence(numbers[2]),
        }
    });
    Origin { stamp, process: line.get("as").map(WorkerId) }
}

fn decision(scheduler: Option<&Ray>, now: TimeMs, line: &Line<'_>) -> Option<Decision> {
    let store = || StoreId(line.number(line.word(1)));
    Some(match line.word(0) {
        "ray-assign" => {
            let asked = line.option("plan").map(|text| vec![assignment(line, text)]);
            let planned = || scheduler.map(|ray| ray.plan(now, line.or("most", 100)));
            Decision::Assign(asked.or_else(planned).unwrap_or_default())
        }
        "ray-done" => {
            let all = scheduler.map(|ray| ray.orders(None, usize::MAX)).unwrap_or_default();
            Decision::Done { orders: all.into_iter().map(|(id, _)| id).collect() }
        }
        "ray-undelivered" => Decision::Undelivered { runs: runs(line) },
        "ray-expire" => Decision::Expire { peers: line.words_from(1).map(|word| peer(line, word)).collect() },
        "ray-reconcile" => {
            let asked_ms = TimeMs(line.or("asked", u64::MAX));
            Decision::Reconcile { store: store(), holds: objects(line), asked_ms }
        }
        "ray-undeliverable" => {
            Decision::DeliveryFailed { store: store(), object: ObjectId(line.number(line.word(2))) }
        }
        "ray-expire-sessions" => Decision::ExpireSessions { before_ms: TimeMs(line.number(line.word(1))) },
        "ray-rearm" => Decision::Rearm { term: Term(line.number(line.word(1))) },
        "ray-naive" => Decision::SetAlgorithm(Algorithm::Naive),
        "ray-overdue" => {
            let asked = line.option("runs").map(|_| runs(line));
            let overdue = || scheduler.map(|ray| ray.overdue(now));
            Decision::Overdue { runs: asked.or_else(overdue).unwrap_or_default() }
        }
        _ => return None,
    })
}

fn request(line: &Line<'_>) -> Request {
    let worker = || WorkerId(line.number(line.word(1)));
    let object = |place: usize| ObjectId(line.number(line.word(place)));
    let about = line.option("run").map(|text| run(line, text));
    let child = line.get("child").map(|place| TaskCall { run: None, place });
    match line.word(0) {
        "ray-store" => Request::RegisterStore { address: line.text(1) },
        "ray-worker" => match offers(line) {
            Some(offers) => Request::RegisterWorkerWith { registration: registration(line), offers },
            None => Request::RegisterWorker(registration(line)),
        },
        "ray-function" => {
            let results = line.or("results", 1);
            Request::RegisterFunction { worker: worker(), name: name(line.word(2)), results }
        }
        "ray-submit" => {
            let task = Task {
                name: name(line.word(2)),
                arguments: arguments(line),
                results_given: line.or("given", 0),
            };
            let (worker, options, hint) = (worker(), options(line), line.get("hint").map(WorkerId));
            match needs(line) {
                Some(needs) => Request::SubmitWith { worker, task, options, child, hint, needs },
                None => Request::Submit { worker, task, options, child, hint },
            }
        }
        "ray-cancel" => Request::Cancel {
            worker: worker(),
            object: object(2),
            grace_ms: DurationMs(line.or("grace", 1_000)),
        },
        "ray-describe" => {
            let shape = line.option("shape").unwrap_or("").split('+').filter(|text| !text.is_empty());
            let shape = shape.map(|length| line.number(length)).collect();
            let (element_type, bytes) = (line.or("type", 0), line.or("bytes", 0));
            let description = Description { shape, element_type, bytes };
            Request::Describe { object: object(1), run: about, description }
        }
        "ray-put" => Request::Put { worker: worker(), child, hold: line.flag("hold") },
        "ray-get" => Request::Get { worker: worker(), object: object(2) },
        "ray-alias" => Request::Alias { alias: object(1), target: object(2), run: about },
        "ray-ready" => {
            Request::Ready { object: object(1), store: StoreId(line.number(line.word(2))), run: about }
        }
        "ray-unfetched" => {
            let why = match line.option("absent") {
                Some(source) => FetchFailure::Absent { source: source.to_owned() },
                None if line.flag("large") => FetchFailure::Told,
                None => FetchFailure::Unfinished,
            };
            Request::FetchFailed { object: object(2), store: StoreId(line.number(line.word(1))), why }
        }
        "ray-add" => Request::AddReferences { objects: objects(line) },
        "ray-drop" => Request::DropReferences { objects: objects(line) },
        "ray-contain" => Request::Contain { object: object(1), contained: objects(line) },
        "ray-idle" => Request::Idle { worker: worker(), previous: previous(line), run: about },
        "ray-give-back" => Request::GiveBack { worker: worker(), runs: runs(line) },
        "ray-kill" => Request::KillWorkers,
        "ray-export" => Request::ExportFunction { body: Bytes::from(line.text(1)) },
        "ray-variable" => {
            Request::ExportVariable { name: name(line.word(1)), body: Bytes::from(line.text(2)) }
        }
        "ray-leave" => Request::Leave { peer: peer(line, line.word(1)) },
        _ => line.unknown(),
    }
}

/// `cpus=1500 memory=4096 things=gpu:1000,tpu:500`, in thousandths and bytes.
fn things(line: &Line<'_>) -> Option<(Option<u64>, u64, BTreeMap<String, u64>)> {
    let said = ["cpus", "memory", "things"].iter().any(|name| line.option(name).is_some());
    said.then(|| {
        let list = line.option("things").unwrap_or("").split(',').filter(|text| !text.is_empty());
        let named = list.map(|text| {
            let (name, amount) = text.split_once(':').expect("a thing is NAME:THOUSANDTHS");
            (name.to_owned(), line.number(amount))
        });
        (line.get("cpus"), line.or("memory", 0), named.collect())
    })
}

fn offers(line: &Line<'_>) -> Option<Offers> {
    let (cpus, memory_bytes, named_milli) = things(line)?;
    let cpus_milli = cpus.unwrap_or(Offers::default().cpus_milli);
    Some(Offers { cpus_milli, memory_bytes, named_milli })
}

fn needs(line: &Line<'_>) -> Option<Needs> {
    let priority = line.get("priority");
    let things = things(line);
    if priority.is_none() && things.is_none() {
        return None;
    }
    let (cpus, memory_bytes, named_milli) = things.unwrap_or_default();
    let priority = priority.unwrap_or_default();
    Some(Needs { priority, cpus_milli: cpus.unwrap_or_default(), memory_bytes, named_milli })
}

fn registration(line: &Line<'_>) -> Registration {
    let role = if line.flag("driver") { Role::Driver } else { Role::Worker };
    Registration {
        host: line.text(1),
        store: line.option("store").unwrap_or("").to_owned(),
        role,
        attributed: line.flag("attributed"),
        extended: line.flag("extended"),
        slots: line.or("slots", 1),
    }
}

fn options(line: &Line<'_>) -> TaskOptions {
    let max_retries = match line.option("retries") {
        Some("any") => None,
        Some(number) => Some(line.number(number)),
        None => TaskOptions::default().max_retries,
    };
    TaskOptions { max_retries, retry_exceptions: line.flag("exceptions") }
}

/// `args=3,v,v4+5`: object 3, a value, and a value with the ids 4 and 5 in it.
fn arguments(line: &Line<'_>) -> Vec<Argument> {
    let list = line.option("args").unwrap_or("");
    let one = |text: &str| match text.strip_prefix('v') {
        Some(nested) => {
            let nested = nested.split('+').filter(|id| !id.is_empty());
            let nested = nested.map(|id| ObjectId(line.number(id))).collect();
            Argument::Value { bytes: Bytes::from_static(b"v"), nested }
        }
        None => Argument::Object(ObjectId(line.number(text))),
    };
    list.split(',').filter(|text| !text.is_empty()).map(one).collect()
}

fn previous(line: &Line<'_>) -> Option<Previous> {
    let error = Bytes::from(line.option("error").unwrap_or("").to_owned());
    let failed = line.option("error").is_some();
    (failed || line.flag("done")).then_some(Previous { succeeded: !failed, error })
}

fn name(text: &str) -> FunctionName {
    FunctionName(Bytes::from(text.to_owned()))
}

fn objects(line: &Line<'_>) -> Vec<ObjectId> {
    let list = line.option("of").unwrap_or("");
    list.split(',').filter(|id| !id.is_empty()).map(|id| ObjectId(line.number(id))).collect()
}

fn runs(line: &Line<'_>) -> Vec<Run> {
    let list = line.option("runs").unwrap_or("");
    list.split(',').filter(|text| !text.is_empty()).map(|text| run(line, text)).collect()
}

fn run(line: &Line<'_>, text: &str) -> Run {
    let (operation, attempt) = text.split_once('/').unwrap_or((text, "1"));
    Run { operation: OperationId(line.number(operation)), attempt: Attempt(line.number(attempt)) }
}

/// What a leader planned earlier: `OPERATION/ATTEMPT/WORKER`.
fn assignment(line: &Line<'_>, text: &str) -> Assignment {
    let (about, worker) = text.rsplit_once('/').expect("a plan is OPERATION/ATTEMPT/WORKER");
    let Run { operation, attempt } = run(line, about);
    Assignment { operation, attempt, worker: WorkerId(line.number(worker)) }
}

fn peer(line: &Line<'_>, text: &str) -> Peer {
    match text.strip_prefix('w') {
        Some(id) => Peer::Worker(WorkerId(line.number(id))),
        None => Peer::Store(StoreId(line.number(text.trim_start_matches('s')))),
    }
}
