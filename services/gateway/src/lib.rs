//! What every front end stands on: commands that take effect exactly once, reads, waits and
//! heartbeats that outlive a leader.
//!
//! Does not know: any wire protocol of clients (no status code, no message text, no port), how
//! commands are replicated (that is behind [`Replica`]), or any rule about tasks, keys and barriers
//! (those are in the state).
//!
//! Invariants:
//! * A call is held while there is no leader; it is never refused for that before its patience ends.
//! * A command is sent again only with the stamp of its first attempt, or when every earlier attempt
//!   certainly had no effect.
//! * A waiter listens before it looks, so no wake-up is lost; what it waits for is resolved from the
//!   replicated state, so a change of leaders does not end a wait.
//! * No connection and no address keeps the calls of others waiting for longer than its turn takes.
//! * A heartbeat is never answered with an error for a reason of the cluster's own.
//! * A beat is answered before its client gives up on it, whatever is suspected of other tasks; held
//!   or not, it does not bring its own task nearer to its deadline.
//! * Timers only propose. A new leader starts all of them anew, and a pause of this process puts all
//!   of them off.
//!
//! Map: [`Gateway`] is the door; `parts` is what must exist before the node, `backend` the seam to it
//! and `memory` its double; `aside` is where long work goes, `forks` what long looks are taken of, `awake` the time that this process lived. `submit`, `session` and `hold` send
//! commands, `renewal` has the session follow the feature level; `fairness` lets the calls of clients take turns, by `caller_connection`; `hub` and `calls` wait; `pulse` asks the leader about heartbeats and `keeper` is the
//! leader's memory of them; `contact` tells when a node is cut off,
//! `readiness` whether it can serve. `bytes_held` counts what is held for clients. `job` finds the job that a call is about. `peers` asks the leader what a front end of its node keeps in memory.

mod aside;
mod awake;
mod backend;
mod bytes_held;
mod caller_address;
mod caller_connection;
mod calls;
mod clock;
mod contact;
mod fairness;
mod forks;
mod gateway;
mod hold;
mod hub;
mod job;
mod keeper;
mod lost;
mod memory;
mod opening;
mod options;
mod outage;
mod parts;
mod peers;
mod pulse;
mod readiness;
mod renewal;
mod session;
mod submit;

pub use awake::{Awake, Moment};
pub use backend::{Admin, Future, Replica};
pub use bytes_held::{
    Account, Budget, CALL_BYTES, CONNECTION_BYTES_FREE, CONNECTION_WINDOW_BYTES, CallBytes, Charge,
    Direction, Making, MemoryLimits, Reserved, Short, Turn,
};
pub use caller_address::CallerAddress;
pub use caller_connection::CallerConnection;
pub use clock::Clock;
pub use contact::{Contact, ContactSwitch};
pub use fairness::TurnCounts;
pub use gateway::{Consistency, Gateway, PRESENT_EVERY};
pub use hub::Watch;
pub use job::JobBinding;
pub use lost::end_when_lost;
pub use memory::{MemoryBackend, Mishap};
pub use opening::IdWidth;
pub use options::Options;
pub use outage::Outage;
pub use parts::Parts;
pub use peers::PeersHandler;
pub use readiness::{Check, Readiness};
// Front ends do not see the raft crate; these are the words in which the gateway speaks of a node.
pub use tripod_raft::backup::{SaveError, Saving};
pub use tripod_raft::{
    Chance, ChangeError, Comparisons, ConnectionLimits, Connections, DiskStatus, ElectionCounts,
    FILES_RESERVED, FlushTimes, Full, GivenUp, HistogramView, Leadership, LevelError, LevelRequest, Levels,
    Measures, MemberLevel, MemberList, MemberSight, MemberStatus, MembersAnswer, MembersRequest, Place,
    Planned, ProposeError, Role, SnapshotCounts, StageTimes, Status, Unwise, Votes,
};
