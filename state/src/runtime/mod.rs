//! The distributed runtime of clients older than the coordination service: all tasks connect
//! together, exchange device topologies, meet at barriers that serve once, and share one fault. Such
//! a client has no incarnation; what ties its calls together is the job's service incarnation.
//!
//! How long a call waits is its caller's business: whoever holds the call watches the time, and a
//! command tells the state that it ran out. Every such command answers what the call is to be told,
//! for the wait may have ended in the meantime.

mod apply;
mod barrier;
mod connect;
mod devices;
mod keys;
mod leave;
mod look;
pub(crate) mod record;
mod refusal;
mod wait;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::command::Scope;
use crate::ids::{ClientId, Incarnation, TaskId};
use crate::task::Origin;

pub use keys::KEYS_PREFIX;
pub use refusal::{Call, Refusal};
pub use wait::{Patience, Wait};

/// The incarnation of every task that connected here: these clients send none with their heartbeats.
/// Other clients draw 64 random bits, which are never these.
pub const INCARNATION: Incarnation = Incarnation(u64::MAX);

/// A barrier's id: any bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BarrierId(pub Bytes);

/// What changes a job's runtime. `waited_ms` is the time that the caller gave, for the refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Waits for all tasks to connect; or [`crate::Answer::Registered`] at once. The same task and
    /// client again are the same call.
    Connect { scope: Scope, task: TaskId, client: ClientId },
    /// The time for connecting ran out: the task is forgotten if it still waits.
    Withdraw { scope: Scope, task: TaskId, client: ClientId, waited_ms: i64 },
    /// Hands in a task's topology and waits for all. Never answered at once: the answer is long, and
    /// replies are remembered.
    Enumerate { scope: Scope, task: TaskId, topology: Bytes },
    /// Waits for all tasks; or [`crate::Answer::Done`] at once.
    Arrive { scope: Scope, barrier: BarrierId, task: TaskId },
    /// The time at a barrier ran out: it will never pass.
    GiveUp { scope: Scope, barrier: BarrierId, waited_ms: i64 },
    /// Waits for as many calls as there are tasks; or [`crate::Answer::Done`] at once. `task` is only
    /// checked: clients leave it at zero.
    Shutdown { scope: Scope, task: TaskId },
    /// The time for leaving together ran out: the runtime closes.
    GiveUpShutdown { scope: Scope, waited_ms: i64 },
    /// Writes a key, whether or not it is there.
    Put { scope: Scope, key: Bytes, value: Bytes },
    /// [`Self::Connect`] with where it comes from, for people. Needs feature level 11.
    ConnectFrom { scope: Scope, task: TaskId, client: ClientId, origin: Box<Origin> },
}

impl Command {
    pub(crate) fn scope(&self) -> Scope {
        match self {
            Self::Connect { scope, .. }
            | Self::Withdraw { scope, .. }
            | Self::Enumerate { scope, .. }
            | Self::Arrive { scope, .. }
            | Self::GiveUp { scope, .. }
            | Self::Shutdown { scope, .. }
            | Self::GiveUpShutdown { scope, .. }
            | Self::Put { scope, .. }
            | Self::ConnectFrom { scope, .. } => *scope,
        }
    }

    /// A connect that says where it comes from; any other command as it is.
    #[must_use]
    pub fn with_origin(self, origin: Origin) -> Self {
        match self {
            Self::Connect { scope, task, client } if !origin.is_empty() => {
                Self::ConnectFrom { scope, task, client, origin: Box::new(origin) }
            }
            command => command,
        }
    }

    /// The same as it is sent where nobody can say that.
    pub(crate) fn without_origin(self) -> Self {
        match self {
            Self::ConnectFrom { scope, task, client, origin: _ } => Self::Connect { scope, task, client },
            command => command,
        }
    }
}
