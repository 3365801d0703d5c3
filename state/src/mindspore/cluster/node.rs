//! A node of a cluster, and what it has been told.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{NodeName, TimeMs};
use crate::memory::{Weigh, of_text};
use crate::mindspore::Role;
use crate::mindspore::cluster::{Incarnation, Scaling};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Node {
    pub(crate) name: NodeName,
    pub(crate) role: Role,
    /// `None`: it leaves.
    pub(crate) rank: Option<u32>,
    pub(crate) ip: Arc<str>,
    pub(crate) port: u32,
    pub(crate) incarnation: Incarnation,
    pub(crate) life: Life,
    /// It has registered since scaling began, or nothing scales. Not of one that leaves.
    pub(crate) registered: bool,
    /// This process was there when all were told of each other.
    pub(crate) entered: bool,
    /// It came for a place that scaling out has made.
    pub(crate) newcomer: bool,
    pub(crate) work: Work,
    pub(crate) finished: bool,
    pub(crate) told: Told,
}

/// What scaling asks of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Work {
    Nothing,
    /// To do what its program does when the cluster has another size.
    Asked,
    Done,
}

/// Whether a node lives, as far as the leader has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Life {
    Alive,
    /// Its place waits for it, or for another, until then.
    Dead {
        until: TimeMs,
    },
    /// Its place can still be taken, but the others have been told that it is lost.
    GivenUp,
}

/// What this process has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Told {
    /// The generation of the last metadata; 0: none.
    pub(crate) metadata: u64,
    /// The generation of the last scaling.
    pub(crate) scale: u64,
    /// That all are done with this; `None`: nothing is to be told.
    pub(crate) done: Option<Scaling>,
    /// The number of the last switch.
    pub(crate) switch: u64,
    /// The number of the next event.
    pub(crate) event: u64,
    pub(crate) finish: bool,
}

impl Told {
    /// Nothing, and of events only what comes.
    pub(crate) fn nothing(next_event: u64) -> Self {
        Self { metadata: 0, scale: 0, done: None, switch: 0, event: next_event, finish: false }
    }
}

impl Node {
    pub(crate) fn is_alive(&self) -> bool {
        self.life == Life::Alive
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.rank.is_none()
    }

    /// Whether it counts for the cluster being complete.
    pub(crate) fn is_present(&self) -> bool {
        self.is_alive() && self.registered && !self.is_leaving()
    }

    /// Whether this process can be told of the others when they are all there.
    pub(crate) fn is_outside(&self) -> bool {
        self.is_present() && !self.entered
    }

    /// Whether it is one of those that are told of switches.
    pub(crate) fn is_told_of_switches(&self) -> bool {
        self.role == Role::Server && self.entered && self.is_alive() && !self.is_leaving()
    }

    /// Whether it must have the events that are kept.
    pub(crate) fn holds_events(&self) -> bool {
        !self.is_leaving() && self.life != Life::GivenUp
    }
}

impl Weigh for Node {
    fn outside(&self) -> u64 {
        of_text(self.name.as_str().len()).saturating_add(of_text(self.ip.len()))
    }
}
