//! Everything that a run leaves for its checkers.

use serde::{Deserialize, Serialize};

use super::{Fault, Micros, Operation};

/// What is known of the run as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The scenario's name.
    pub scenario: String,
    pub seed: u64,
}

/// The operations of a run in the order in which they were invoked, and the faults among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    pub header: Header,
    /// By the moment at which they were invoked, ids ascending.
    pub operations: Vec<Operation>,
    /// By the moment at which they began.
    pub faults: Vec<Fault>,
    /// When a node began to lead and started every timer again, as far as anybody noticed.
    pub timers_restarted: Vec<Micros>,
    /// Why the run proves nothing: the harness itself failed.
    pub void: Option<String>,
}

impl History {
    /// The last moment of which the history tells.
    #[must_use]
    pub fn end(&self) -> Micros {
        let operations = self.operations.iter().map(|operation| operation.completed);
        let faults = self.faults.iter().map(|fault| fault.ended.unwrap_or(fault.began));
        operations.chain(faults).max().unwrap_or_default()
    }
}
