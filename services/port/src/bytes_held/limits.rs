//! How many bytes may be held for clients.

/// What a call weighs that waits, beside its request: its task, its stream and its headers. Measured: 40,000 waiting calls
/// took 570 MiB.
pub const CALL_BYTES: u64 = 14 << 10;
/// The same of a call that is an op of a stream, which has no task and no stream of HTTP/2 of its own. Measured: 36,000 waiting
/// gets of keys took 5.7 kB each, most of it what their service keeps.
pub(crate) const OP_BYTES: u64 = 6 << 10;
/// What every connection has, whatever the others hold: nine calls that wait. A client of a job has four or five.
pub const CONNECTION_BYTES_FREE: u64 = 128 << 10;
/// What every connection has for heartbeats beside that: eighteen at a time.
pub(super) const BEAT_BYTES_FREE: u64 = 256 << 10;
/// Bytes that a client may send on one connection before it is granted more. So much of a connection lies unread when
/// its requests wait.
pub const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// Refusals that wait to be written to one connection, of about a KiB each. A client that has more does not read.
pub(super) const REFUSALS_UNREAD_MAX: u64 = 16_384;
/// Of a machine's memory, one part of so many is for clients, unless a flag says otherwise. The state, its forks and the
/// log have the others.
const CLIENTS_SHARE: u64 = 4;
/// What an agent has for its clients at most, unless a flag says otherwise: no more than a node of 4 GiB holds for
/// one connection, which is what an agent is to it. The rest of its machine is for tasks.
const AGENT_BYTES_MAX: u64 = 512 << 20;
/// Of the memory for clients, one connection has one part of so many, unless a flag says otherwise: with 2 GiB for
/// clients, 70,000 calls may wait on one connection.
const CONNECTION_SHARE: u64 = 2;
/// Of the memory for clients, how many parts of a hundred one identity has, by all of its connections together. What is left
/// is for everybody else, however many connections it opens.
const IDENTITY_PERCENT: u64 = 75;
/// Of the limit, one part of so many is held when memory is short.
pub(super) const SHORT_SHARE: u64 = 2;

/// Bytes that may be held for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimits {
    /// For all connections of a node together. What every connection has in any case is beyond it.
    pub all: u64,
    /// For one connection in each direction: for its requests and calls, and for its answers.
    pub one_connection: u64,
}

impl MemoryLimits {
    /// As many as there are.
    #[must_use]
    pub fn none() -> Self {
        Self { all: u64::MAX, one_connection: u64::MAX }
    }

    /// So many for all, and for one connection its usual part of them.
    #[must_use]
    pub fn of(all: u64) -> Self {
        Self { all, one_connection: all / CONNECTION_SHARE }
    }

    /// For one identity, by all of its connections and in both directions together: never less than one connection has in
    /// one direction. What every connection has in any case is beyond it.
    #[must_use]
    pub fn one_identity(self) -> u64 {
        let percent = self.all / 100 * IDENTITY_PERCENT + self.all % 100 * IDENTITY_PERCENT / 100;
        percent.max(self.one_connection)
    }

    /// What clients have of a machine, or a part of one, with so much memory.
    #[must_use]
    pub fn of_machine(bytes: u64) -> Self {
        Self::of(bytes / CLIENTS_SHARE)
    }

    /// What the clients of an agent have of such a machine.
    #[must_use]
    pub fn of_agents_machine(bytes: u64) -> Self {
        Self::of((bytes / CLIENTS_SHARE).min(AGENT_BYTES_MAX))
    }
}
