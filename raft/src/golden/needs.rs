//! What came with level 10 to schedulers: what tasks need and workers have, cancelled tasks, described objects.

use std::collections::BTreeMap;

use bytes::Bytes;
use tripod_state::ids::{DurationMs, JobId};
use tripod_state::ray::ids::{Attempt, FunctionName, ObjectId, OperationId, WorkerId};
use tripod_state::ray::{
    Answer, Argument, Command as Ray, Decision, Description, Needs, Offers, Origin, Registration, Request,
    Role, Run, Task, TaskCall, TaskOptions,
};
use tripod_state::{Command, Envelope, Scope};

use super::commands::Sample;

const SCOPE: Scope = Scope { job: JobId(300), service: None };
const RUN: Run = Run { operation: OperationId(400), attempt: Attempt(2) };
const WORKER: WorkerId = WorkerId(5);
const OBJECT: ObjectId = ObjectId(70_000);

fn named() -> BTreeMap<String, u64> {
    [("gpu", 1_000), ("licence", 70_000)].map(|(name, amount)| (name.to_owned(), amount)).into()
}

/// Every kind of command, and every choice within one.
pub(crate) fn commands() -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut add = |name: &'static str, command| {
        samples.push((name, Envelope { stamp: None, command: Command::Ray(command) }));
    };
    for (name, request) in requests() {
        add(name, Ray::Ask { scope: SCOPE, origin: Origin::default(), request });
    }
    add("ray/overdue", Ray::Lead { scope: SCOPE, decision: Decision::Overdue { runs: vec![RUN] } });
    samples
}

fn requests() -> Vec<(&'static str, Request)> {
    let (worker, object) = (WORKER, OBJECT);
    let task = Task {
        name: FunctionName(Bytes::from_static(b"maths.add")),
        arguments: vec![Argument::Object(OBJECT)],
        results_given: 0,
    };
    let needs = Needs { priority: -300, cpus_milli: 1_500, memory_bytes: 1 << 40, named_milli: named() };
    let (options, child) = (TaskOptions::default(), Some(TaskCall { run: Some(RUN), place: 3 }));
    let registration = Registration {
        host: "10.0.0.5".into(),
        store: "10.0.0.5:7750".into(),
        role: Role::Worker,
        attributed: true,
        extended: true,
        slots: 300,
    };
    let offers = Offers { cpus_milli: 70_000, memory_bytes: 1 << 40, named_milli: named() };
    let description = Description { shape: vec![300, 70_000], element_type: 11, bytes: 1 << 40 };
    let hint = Some(WorkerId(9));
    vec![
        ("ray/submit-with", Request::SubmitWith { worker, task, options, child, hint, needs }),
        ("ray/register-worker-with", Request::RegisterWorkerWith { registration, offers }),
        ("ray/cancel", Request::Cancel { worker, object, grace_ms: DurationMs(70_000) }),
        ("ray/describe", Request::Describe { object, run: Some(RUN), description: description.clone() }),
        ("ray/describe put", Request::Describe { object, run: None, description }),
    ]
}

/// Every answer.
pub(super) fn answers() -> Vec<(&'static str, Answer)> {
    vec![("cancelled", Answer::Cancelled { over: false }), ("over", Answer::Cancelled { over: true })]
}
