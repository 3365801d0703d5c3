//! One call of one client, from beginning to end.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Call, ClientId, Micros, NodeId, OperationId, Outcome, Reply};

/// A call and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    pub id: OperationId,
    pub client: ClientId,
    /// The node that was asked first, if the client knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    pub call: Call,
    /// Not later than the first byte was sent.
    pub invoked: Micros,
    /// Not earlier than the last byte was received; when the client gave up if the outcome is not known.
    pub completed: Micros,
    /// How often the call was sent, all repetitions included. More than 1 matters only for calls without a
    /// stamp.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub attempts: u32,
    pub outcome: Outcome,
}

impl Operation {
    /// The answer, if there was one.
    #[must_use]
    pub fn reply(&self) -> Option<&Reply> {
        self.outcome.reply()
    }

    /// Whether the cluster did what was asked.
    #[must_use]
    pub fn acknowledged(&self) -> bool {
        self.outcome.acknowledged()
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, client, call, outcome, .. } = self;
        let (from, until) = (self.invoked.as_secs_f64(), self.completed.as_secs_f64());
        write!(f, "operation {id} of client {client}, {from:.6} s to {until:.6} s")?;
        if let Some(node) = self.node {
            write!(f, ", by node {node}")?;
        }
        write!(f, ": {call}: {outcome}")
    }
}

fn once() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_once(attempts: &u32) -> bool {
    *attempts == 1
}
