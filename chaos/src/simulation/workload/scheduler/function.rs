//! The functions that simulated workers execute. Each gives the same result in every attempt.

use std::sync::Arc;

use tripod_proto::ray::AddContainedObjectIDsRequest;
use tripod_proto::tripod::v1::ray_call::Call;

use super::calls::{Calls, Gone, call, decrement, increment, number, object};
use super::shelf::Shelf;
use super::value::Value;

/// Their names and numbers of results.
pub(super) const FUNCTIONS: [(&str, u64); 6] =
    [("make", 1), ("sum", 1), ("pair", 2), ("tree", 1), ("wrap", 1), ("fail", 1)];

/// A result.
#[derive(Debug, Clone)]
pub(super) enum Output {
    Value(Value),
    /// What another object is. The task gives its reference to it away.
    Object(u64),
}

/// A task that runs.
pub(super) struct Running<'a> {
    calls: &'a mut Calls,
    shelf: &'a Arc<Shelf>,
    children: u32,
}

impl<'a> Running<'a> {
    pub(super) fn new(calls: &'a mut Calls, shelf: &'a Arc<Shelf>) -> Self {
        Self { calls, shelf, children: 0 }
    }

    fn child(&mut self) -> Option<u32> {
        self.children += 1;
        Some(self.children - 1)
    }

    /// The results: one for all if it failed.
    pub(super) async fn call(&mut self, name: &str, arguments: &[Value]) -> Result<Vec<Output>, Gone> {
        let mut sum = 0_u64;
        for argument in arguments {
            match argument {
                Value::Number(number) => sum = sum.wrapping_add(*number),
                Value::Holding(_) => {}
                Value::Error { .. } => return Ok(vec![Output::Value(argument.clone())]),
            }
        }
        let value = |number| Output::Value(Value::Number(number));
        Ok(match name {
            "make" | "sum" => vec![value(sum)],
            "pair" => vec![value(sum), value(sum.wrapping_add(1))],
            "tree" => vec![Output::Object(self.tree(sum).await?)],
            "wrap" => vec![self.wrap(sum).await?],
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

    /// An object that holds the id of another one, which holds the number.
    async fn wrap(&mut self, sum: u64) -> Result<Output, Gone> {
        let child = self.child();
        let (inner, present) = self.calls.put(child).await?;
        if !present {
            self.shelf.put(inner, Value::Number(sum), None)?;
        }
        Ok(Output::Value(Value::Holding(inner)))
    }
}

/// What must be told when an object that holds another one was written by a process that owns a reference to that.
pub(super) fn holding(container: u64, inner: u64) -> Vec<tripod_proto::tripod::v1::RayCall> {
    let contained = AddContainedObjectIDsRequest { objectid: container, contained_objectid: vec![inner] };
    vec![increment(vec![inner]), call(Call::Contained(contained)), decrement(vec![inner])]
}
