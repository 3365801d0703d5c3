//! The functions that simulated workers execute. Each gives the same result in every attempt.

use std::time::Duration;

use tripod_proto::ray::AddContainedObjectIDsRequest;
use tripod_proto::tripod::v1::RayRun;
use tripod_proto::tripod::v1::ray_call::Call;

use super::calls::{Calls, Child, Gone, call, decrement, increment, number, object};
use super::shelf::Refused;
use super::value::Value;
use super::worker::Worker;

/// The names and numbers of results of those that every worker has. Others are exported by drivers.
pub(super) const FUNCTIONS: [(&str, u64); 9] = [
    ("make", 1),
    ("sum", 1),
    ("pair", 2),
    ("tree", 1),
    ("wrap", 1),
    ("fail", 1),
    (SLOW, 1),
    ("nest", 1),
    (CHUNK, 1),
];
/// Makes a chunk for Mars.
pub(super) const CHUNK: &str = "tripod.mars.chunk";
/// Takes longer than others: what is behind it is given back.
pub(super) const SLOW: &str = "slow";
/// How the names of those begin that drivers export, again and again: each time it is another version.
const EXPORTED: &str = "shown.";
/// How long a task may wait before its worker begins another one.
const WAIT_SHORT: Duration = Duration::from_millis(5);

/// After so long a task asks once more for what could not come to the store.
const ASK_AGAIN: Duration = Duration::from_millis(300);

/// A result.
#[derive(Debug, Clone)]
pub(super) enum Output {
    Value(Value),
    /// What another object is. The task gives its reference to it away.
    Object(u64),
}

/// A task that runs.
pub(super) struct Running<'a> {
    worker: &'a Worker<'a>,
    calls: &'a mut Calls,
    run: RayRun,
    children: u32,
}

impl<'a> Running<'a> {
    pub(super) fn new(worker: &'a Worker<'a>, calls: &'a mut Calls, run: RayRun) -> Self {
        Self { worker, calls, run, children: 0 }
    }

    fn child(&mut self) -> Option<Child> {
        self.children += 1;
        Some(Child { run: self.run, place: self.children - 1 })
    }

    /// The results: one for all if it failed.
    pub(super) async fn call(&mut self, name: &str, arguments: &[Value]) -> Result<Vec<Output>, Gone> {
        let mut sum = 0_u64;
        for argument in arguments {
            match argument {
                Value::Number(number) => sum = sum.wrapping_add(*number),
                Value::Holding(_) => {}
                Value::Chunk { number, fails: false } => sum = sum.wrapping_add(*number),
                Value::Chunk { fails: true, .. } => {
                    let text = "the chunk fails".to_owned();
                    return Ok(vec![Output::Value(Value::Error { lost: false, text })]);
                }
                Value::Error { .. } => return Ok(vec![Output::Value(argument.clone())]),
            }
        }
        let value = |number| Output::Value(Value::Number(number));
        Ok(match name {
            "make" | "sum" | SLOW | CHUNK => vec![value(sum)],
            "pair" => vec![value(sum), value(sum.wrapping_add(1))],
            "tree" => vec![Output::Object(self.tree(sum).await?)],
            "wrap" => vec![self.wrap(sum).await?],
            "nest" => vec![Output::Value(self.nest(sum).await?)],
            _ if is_exported(name) => vec![Output::Value(arguments[0].clone())],
            _ => vec![Output::Value(Value::Error { lost: false, text: format!("{name} fails") })],
        })
    }

    /// The sum of the number and zero, by tasks of its own.
    async fn tree(&mut self, sum: u64) -> Result<u64, Gone> {
        let mut parts = Vec::new();
        for part in [sum, 0] {
            let child = self.child();
            parts.extend(self.calls.submit("make", vec![number(part)], child).await?);
        }
        let child = self.child();
        let both = parts.iter().copied().map(object).collect();
        let total = self.calls.submit("sum", both, child).await?;
        self.calls.batch(vec![decrement(parts)], &[]).await?;
        total.first().copied().ok_or(Gone)
    }

    /// The number, as a task of its own gives it, for which this one waits.
    async fn nest(&mut self, sum: u64) -> Result<Value, Gone> {
        let child = self.child();
        // Of nothing there is nothing left to nest: it would go on for ever, and take all slots of all workers.
        let inner = if sum > 0 && sum.is_multiple_of(8) { "nest" } else { SLOW };
        let made = self.calls.submit(inner, vec![number(sum / 8)], child).await?;
        let (witness, parent) = (&self.worker.machine.witness, self.run.operationid);
        witness.scheduled(|rule| rule.called(parent, 0, &made));
        let got = self.get(made[0]).await?;
        // From here on the child may be gone before the parent runs again.
        witness.scheduled(|rule| {
            rule.let_go(parent);
            Ok(())
        });
        self.calls.batch(vec![decrement(made)], &[]).await?;
        Ok(match got {
            Value::Number(part) => Value::Number(part.wrapping_add(sum - sum / 8)),
            other => other,
        })
    }

    /// Waits for an object. What is behind this task is given back, and the worker asks for one task more: that may
    /// be the one that makes it.
    async fn get(&mut self, object: u64) -> Result<Value, Gone> {
        let shelf = &self.worker.shelf;
        self.calls.request(object, &[]).await?;
        if let Ok(got) = tokio::time::timeout(WAIT_SHORT, shelf.get(object)).await
            && let Ok(got) = got?
        {
            return Ok(got);
        }
        self.worker.machine.witness.count("times that a task waited");
        let (given, mut beside) = (self.worker.inbox.waits(self.run), self.calls.beside());
        let told = self.worker.give_back(&mut beside, given, true);
        let got = async {
            loop {
                match shelf.get(object).await? {
                    Ok(got) => return Ok::<_, Gone>(got),
                    // It cannot come now. Who asks later is brought it.
                    Err(Refused) => {
                        tokio::time::sleep(ASK_AGAIN).await;
                        self.calls.request(object, &[]).await?;
                    }
                }
            }
        };
        let (told, got) = futures::join!(told, got);
        self.worker.inbox.resumes(self.run);
        told.and(got)
    }

    /// An object that holds the id of another one, which holds the number.
    async fn wrap(&mut self, sum: u64) -> Result<Output, Gone> {
        let child = self.child();
        let (inner, present) = self.calls.put(child, &[]).await?;
        if !present {
            self.worker.shelf.put(inner, Value::Number(sum), None)?;
        }
        Ok(Output::Value(Value::Holding(inner)))
    }
}

/// Whether a driver has exported that function.
pub(super) fn is_exported(name: &str) -> bool {
    name.starts_with(EXPORTED)
}

/// The name of the function that a driver exports.
pub(super) fn exported_by(driver: u64) -> String {
    format!("{EXPORTED}{driver}")
}

/// What must be told when an object that holds another one was written by a process that owns a reference to that.
pub(super) fn holding(container: u64, inner: u64) -> Vec<tripod_proto::tripod::v1::RayCall> {
    let contained = AddContainedObjectIDsRequest { objectid: container, contained_objectid: vec![inner] };
    vec![increment(vec![inner]), call(Call::Contained(contained)), decrement(vec![inner])]
}
