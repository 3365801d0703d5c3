//! The facade that front ends call.

use std::sync::Arc;

use tripod_raft::Status;
use tripod_state::ids::{Incarnation, TaskId};
use tripod_state::{Command, Reply, Scope, State, Ticket};

use crate::backend::Backend;

/// How fresh a read must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// Sees every write that was acknowledged before the read began.
    Linearizable,
    /// This node's memory, possibly old.
    Local,
}

/// Why the cluster could not answer. Everything else is a [`Reply`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Outage {
    /// There was no leader for as long as calls are held.
    #[error("no leader for {waited_ms} ms: {last}")]
    NoLeader { waited_ms: u64, last: String },
    /// The command may have taken effect and its session is gone, so it cannot be repeated.
    #[error("outcome unknown: {0}")]
    Unknown(String),
    /// Too many calls wait on this node.
    #[error("overloaded: {0}")]
    Overloaded(String),
    /// This node is stopping.
    #[error("node is stopping")]
    Stopping,
}

/// Cheap to clone; one for all front ends of a node.
#[derive(Clone)]
pub struct Gateway {
    backend: Arc<dyn Backend>,
}

impl Gateway {
    /// A gateway over `backend`.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self { backend }
    }

    /// Replicates a command exactly once and gives its reply. Holds while there is no leader.
    ///
    /// # Errors
    /// [`Outage`].
    pub async fn submit(&self, _command: Command) -> Result<Reply, Outage> {
        Err(Outage::Stopping)
    }

    /// [`Self::submit`], and if the reply is a ticket, waits for its outcome. Dropping the future
    /// drops the wait, never the arrival.
    ///
    /// # Errors
    /// [`Outage`].
    pub async fn call(&self, _command: Command) -> Result<Reply, Outage> {
        Err(Outage::Stopping)
    }

    /// Waits for a ticket that no command issued (a key, a change of tasks), from a linearizable
    /// point on.
    ///
    /// # Errors
    /// [`Outage`].
    pub async fn wait(&self, _ticket: Ticket) -> Result<Reply, Outage> {
        Err(Outage::Stopping)
    }

    /// Looks at the state.
    ///
    /// # Errors
    /// [`Outage`]; a local read has none.
    pub async fn read<T>(&self, _consistency: Consistency, look: impl FnOnce(&State) -> T) -> Result<T, Outage> {
        Ok(look(&State::default()))
    }

    /// A heartbeat: told to the leader, or held while there is none, but answered before the client
    /// gives up on it.
    ///
    /// # Errors
    /// [`Outage`], never for want of a leader.
    pub async fn heartbeat(&self, _scope: Scope, _task: TaskId, _incarnation: Incarnation) -> Result<Reply, Outage> {
        Err(Outage::Stopping)
    }

    /// This node's own view; needs no leader.
    #[must_use]
    pub fn status(&self) -> Status {
        self.backend.status()
    }

    /// How many calls wait on this node.
    #[must_use]
    pub fn waiting_calls(&self) -> u64 {
        0
    }
}
