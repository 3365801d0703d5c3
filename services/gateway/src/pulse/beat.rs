//! What a node tells the leader about the tasks of its clients.

use tripod_state::ids::{DurationMs, Incarnation, TaskId, TimeMs};
use tripod_state::task::Beat as Opinion;
use tripod_state::{Scope, State};

/// A heartbeat, or what counts until the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Beat {
    pub(crate) scope: Scope,
    pub(crate) task: TaskId,
    pub(crate) incarnation: Incarnation,
    pub(crate) sign: Sign,
}

/// What it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// The client's own heartbeat. `interval`: when it sends the next one, if it says so.
    Beat { interval: Option<DurationMs> },
    /// The connection stands over which the task has registered.
    Present { connection: u64 },
    /// The client has closed it.
    Gone { connection: u64 },
}

impl Beat {
    /// When the client sends the next one, if it says so.
    pub(crate) fn interval(&self) -> Option<DurationMs> {
        match self.sign {
            Sign::Beat { interval } => interval,
            Sign::Present { .. } | Sign::Gone { .. } => None,
        }
    }

    /// What the state says to this beat at `wall` time. The log runs on the clocks of its leaders, which
    /// may be ahead of this machine's.
    pub(crate) fn opinion(&self, state: &State, wall: TimeMs) -> Opinion {
        state.heartbeat(self.scope, self.task, self.incarnation, wall.max(state.now_ms()))
    }
}
