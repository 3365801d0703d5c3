//! One task.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::ids::{CallId, Incarnation, LogIndex, TimeMs};
use crate::task::Phase;

/// What a job knows of one task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Task {
    pub(crate) life: Life,
    /// Of the last registration, even before the register barrier lets it pass.
    pub(crate) incarnation: Incarnation,
    /// When it last became connected.
    pub(crate) since: LogIndex,
    /// The per-task wish of old dialect-T clients.
    pub(crate) recoverable: bool,
    /// The registration that waits for the register barrier.
    pub(crate) registering: Option<CallId>,
    pub(crate) poll: Option<Poll>,
    /// What it handed in at its first device exchange.
    pub(crate) devices: Option<Arc<Vec<Bytes>>>,
}

/// Where a task stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Life {
    /// Who left is in grace for a while: its heartbeats and polls are still accepted, the last
    /// millisecond included. Who never came has no grace.
    Disconnected {
        grace_until: Option<TimeMs>,
    },
    Connected,
    Error(Arc<Fault>),
}

/// The last poll of a task that was held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Poll {
    pub(crate) call: CallId,
    /// The task left while nothing had been latched.
    pub(crate) left: bool,
    /// It was not held: errors are told by heartbeats.
    pub(crate) released: bool,
}

/// A task that nobody has heard of yet.
pub(crate) static ABSENT: Task = Task {
    life: Life::Disconnected { grace_until: None },
    incarnation: Incarnation(0),
    since: LogIndex(0),
    recoverable: false,
    registering: None,
    poll: None,
    devices: None,
};

impl Task {
    pub(crate) fn phase(&self) -> Phase {
        match self.life {
            Life::Disconnected { .. } => Phase::Disconnected,
            Life::Connected => Phase::Connected,
            Life::Error(_) => Phase::Error,
        }
    }

    pub(crate) fn error(&self) -> Option<&Fault> {
        match &self.life {
            Life::Error(fault) => Some(fault),
            Life::Disconnected { .. } | Life::Connected => None,
        }
    }

    /// Whether it was here and left.
    pub(crate) fn left(&self) -> bool {
        matches!(self.life, Life::Disconnected { grace_until: Some(_) })
    }

    /// Whether a poll of it is held.
    pub(crate) fn polls(&self) -> bool {
        self.poll.is_some_and(|poll| !poll.left && !poll.released)
    }

    /// Whether it left, or never came, and nothing is accepted from it any more.
    pub(crate) fn gone(&self, now: TimeMs) -> bool {
        matches!(self.life, Life::Disconnected { grace_until } if grace_until.is_none_or(|until| now > until))
    }
}
