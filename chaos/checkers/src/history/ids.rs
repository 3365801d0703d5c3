//! Newtypes for whatever a history counts or names, so that two bare numbers never stand side by side.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

macro_rules! text {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Arc<str>);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

number! {
    /// A task of a scheduler, as the driver numbers it that submits it.
    Work(u64)
}
number! {
    /// Microseconds since the start of the run, by the run's own clock: real or simulated, never running
    /// backwards, the same for all clients.
    Micros(u64)
}
number! {
    /// A client of the run: something that makes one call after the other. One of several concurrent calls of
    /// a process belongs to a client of its own.
    ClientId(u32)
}
number! {
    /// An operation: its place in the order in which operations were invoked, from 0.
    OperationId(u64)
}
number! {
    /// A node of the cluster under test.
    NodeId(u64)
}
number! {
    /// The value of a register. A run that gives every write a value of its own is checked more sharply and
    /// faster.
    Value(u64)
}
number! {
    /// An element of an append list, appended at most once in a run.
    Element(u64)
}
number! {
    /// How many writes a key has seen since it was created, from 1. A deleted key begins anew.
    Version(u64)
}
number! {
    /// A place in the replicated log.
    LogIndex(u64)
}
number! {
    /// A task of a job. Signed as on the wire.
    TaskId(i32)
}
number! {
    /// One life of a task.
    Incarnation(u64)
}
number! {
    /// How many instances of a barrier's name came before this one. Signed as on the wire.
    Generation(i64)
}
number! {
    /// A fencing token: how many holders a lock has had, this one included, from 1. Whatever a lock protects
    /// takes no write with a lower token than it has seen.
    Fence(u64)
}
number! {
    /// A client's session for calls that must take effect once.
    SessionId(u64)
}
number! {
    /// The number of a call within its session.
    Sequence(u64)
}
number! {
    /// A node's place among those of its role in a cluster of MindSpore.
    Rank(u32)
}
number! {
    /// How many clusters of MindSpore a job had before this one, as its nodes count.
    Round(u64)
}
number! {
    /// One process of a node of MindSpore: the port on which it is called, or which process of the node it is where it is
    /// not called.
    LifeId(u64)
}

number! {
    /// What the bytes of a graph of Mars are told apart by.
    Content(u64)
}
number! {
    /// A stream of what becomes of a graph, as its client numbers it.
    StreamId(u64)
}
number! {
    /// Which opening of a mutable tensor: it rises when sealing has failed.
    Epoch(u64)
}
number! {
    /// A cell of a mutable tensor, by its place in C order.
    Cell(u64)
}
number! {
    /// When something was written, as its client says; nanoseconds, signed as on the wire.
    Timestamp(i64)
}

text! {
    /// A graph of Mars: its session and its key.
    GraphName
}
text! {
    /// A mutable tensor of Mars: its session and its name.
    TensorName
}
text! {
    /// Whatever is stored under one name: a register, an append list or a counter. Unique in the run: whoever
    /// uses several jobs puts the job's name in front.
    Key
}
text! {
    /// A job of the cluster.
    Job
}
text! {
    /// A barrier's name within its job.
    Barrier
}
text! {
    /// What a node of MindSpore is called in its cluster.
    NodeName
}

/// What makes a repeated call one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Stamp {
    /// Whose call it is.
    pub session: SessionId,
    /// Which of the session's calls it is.
    pub sequence: Sequence,
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {} sequence {}", self.session, self.sequence)
    }
}

impl Micros {
    /// This moment and `length` more, at the end of time if that is beyond it.
    #[must_use]
    pub fn plus(self, length: Self) -> Self {
        Self(self.0.saturating_add(length.0))
    }

    /// How long after `earlier` this is; zero if it is not.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// This length of time as seconds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// So many milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }
}
