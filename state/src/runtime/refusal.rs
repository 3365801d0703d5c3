//! Why the runtime refused a call, or ended its wait badly.

use serde::{Deserialize, Serialize};

use crate::ids::TaskId;

/// A refusal, as [`crate::Fault::Runtime`]. The state is unchanged unless the variant says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Refusal {
    /// A task wants to connect after all have connected.
    NotInitializing,
    /// Not all tasks have connected yet, or the runtime was closed without a fault.
    NotRunning { call: Call },
    /// The task id is outside `0..tasks`.
    TaskUnknown { task: TaskId, tasks: u32 },
    /// A newer client connected as the same task while this one waited.
    Replaced { task: TaskId },
    /// The task was silent for too long, and the runtime is closed for everybody.
    Lost { task: TaskId },
    /// The barrier has passed; it serves once.
    BarrierUsed,
    /// A call gave up waiting at the barrier, so nobody can pass it any more.
    BarrierSpoiled,
    /// The call's time ran out. Told by the commands that say so, with what they change.
    TimedOut { call: Call, waited_ms: i64 },
}

/// Which call was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Call {
    Connect,
    Enumerate,
    Heartbeat,
    Get,
    Put,
    Barrier,
    Shutdown,
}
