//! Every bound, with its unit and its reason. Beyond one of them a command is refused with
//! [`crate::Fault::LimitExceeded`] and the state is unchanged.

use crate::fault::Fault;

/// Bytes of one key. Upstream has none; 4,000-byte keys occur in its own tests.
pub const KEY_BYTES_MAX: usize = 64 << 10;
/// Bytes of one value. Compiled programs of tens of megabytes pass through the store.
pub const VALUE_BYTES_MAX: usize = 62 << 20;
/// Bytes of all keys and values of one job: one job must not take a node's memory.
pub const JOB_BYTES_MAX: u64 = 4 << 30;
/// Bytes of the keys and values of one answer that cannot be had in pages: two values of the largest size, and what
/// stands around them.
pub const ANSWER_BYTES_MAX: u64 = 128 << 20;
/// Keys of one job.
pub const JOB_KEYS_MAX: u64 = 10_000_000;
/// Tasks of one job: ten times the largest job we have heard of.
pub const JOB_TASKS_MAX: u32 = 1_000_000;
/// Elements that any list of tasks may have, whatever the job: what is wrong with a short list, apply says in the words
/// of the caller's protocol.
pub const LISTED_ANYWAY: u64 = 1_024;
/// Groups of one job: each is compared with all others. TensorFlow has five names.
pub const GROUPS_MAX: usize = 1_000;
/// Devices of one task. The largest hosts have dozens.
pub const DEVICES_MAX: usize = 65_536;
/// Jobs with a port of their own: the width of a node's range of job ports.
pub const JOB_SLOTS_MAX: u16 = 100;
/// Characters of a job name: it must fit a DNS label.
pub const JOB_NAME_CHARS_MAX: usize = 63;
/// Bytes of a note about a job: a few lines for people.
pub const JOB_NOTE_BYTES_MAX: usize = 1 << 10;
/// Bytes of a task's address.
pub const ADDRESS_BYTES_MAX: usize = 512;
/// Bytes of a barrier id.
pub const BARRIER_NAME_BYTES_MAX: usize = 4 << 10;
/// Failed barriers of one job that are remembered with those who waited, to tell people why it failed.
pub const FAILED_BARRIERS_KEPT: usize = 8;
/// Tasks that are named of those who came to a barrier, and of those who did not.
pub const BARRIER_TASKS_NAMED: usize = 64;
/// Barrier ids that one job remembers: late calls must still find their result.
pub const JOB_BARRIERS_MAX: usize = 1_000_000;
/// Open barriers of a job at which it is looked how long somebody has waited, whenever figures are asked for.
pub const WAITS_LOOKED_AT_MAX: usize = 10_000;
/// Bytes of an error text that a task reports; the wire shows 3,072.
pub const REPORT_BYTES_MAX: usize = 64 << 10;
/// Bytes of one task's device descriptions.
pub const DEVICES_BYTES_MAX: usize = 4 << 20;
/// Open sessions, below feature level 5.
pub const SESSIONS_MAX: usize = 100_000;
/// Open sessions of clients. Those of nodes, without which no node can write, have room beside them.
pub const CLIENT_SESSIONS_MAX: u64 = 100_000;
/// Open sessions of clients at one address: a rack behind one address translation, each of its machines with an agent.
pub const ADDRESS_SESSIONS_MAX: u64 = 4_096;
/// Bytes of the replies that all sessions of clients remember, roughly, and of those at one address: whoever has the
/// replies says so with its next command, so a client that does holds hundreds of bytes.
pub const CLIENT_SESSION_BYTES_MAX: u64 = 1 << 30;
pub const ADDRESS_SESSION_BYTES_MAX: u64 = 64 << 20;
/// Open sessions of one node: of the process that runs, and of those before whose commands may still be on their way.
pub const NODE_SESSIONS_MAX: u64 = 4;
/// Commands of one session that may be unacknowledged at a time: the memory of replies is bounded.
pub const SESSION_WINDOW: u64 = 16_384;
/// Longest time-out, in milliseconds: a year. Anything longer is a mistake in units.
pub const TIMEOUT_MS_MAX: u64 = 366 * 24 * 3600 * 1000;
/// Shortest heartbeat timeout of a job, in milliseconds: below, a task that is only busy would be taken for dead.
pub const HEARTBEAT_TIMEOUT_MS_MIN: u64 = 1_000;
/// Answered groups of one set of tasks whose result is kept for callers that were slow to look.
pub const ALIVE_ANSWERS_KEPT: usize = 8;
/// Callers of one job whose last increment is remembered, to recognise a retry: one for each task of a
/// large job.
pub const INCREMENTS_REMEMBERED: usize = 16_384;
/// Sets of tasks of one job that callers ask about at a time, and answers kept over all sets.
pub const ALIVE_SETS_MAX: usize = 4_096;

/// Nodes that have an id: far more than ever vote, since every learner costs the leader a stream.
pub const NODES_MAX: usize = 64;

/// Refuses what is beyond a limit. `what` says what was counted, for the error text.
pub(crate) fn within(what: &str, actual: u64, limit: u64) -> Result<(), Fault> {
    if actual <= limit { Ok(()) } else { Err(Fault::LimitExceeded { what: what.to_owned(), limit, actual }) }
}
