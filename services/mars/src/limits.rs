//! Every bound of this front end, with its unit and its reason. Those of graphs are `tripod_tile::limits`, those of what is kept
//! are the state's.

use std::time::Duration;

/// Bytes of one part of a graph that comes in parts, and of a graph that comes in one request: what one message may take of
/// a connection's room.
pub(crate) const PART_BYTES_MAX: usize = 16 << 20;
/// Bytes of one message: a part, and what stands beside it.
pub const MESSAGE_BYTES_MAX: usize = PART_BYTES_MAX + (1 << 20);
/// Nodes of one graph: what tiling makes of one at most.
pub(crate) const NODES_MAX: usize = tripod_tile::limits::CHUNKS_MAX;
/// Bytes that a chunk brings of its own, with its attributes: what a task of the scheduler may have.
pub(crate) const CHUNK_ARGUMENT_BYTES_MAX: usize = 1 << 20;
/// Bytes of an operator's name.
pub(crate) const OPERATOR_BYTES_MAX: usize = 256;

/// Bytes of a graph that is submitted in one command: a few round trips less. Some twenty thousand chunks.
pub(crate) const WHOLE_BYTES: u64 = 4 << 20;
/// Bytes of each command of one that is submitted in several. All nodes write and apply the first of them while the next ones
/// are made and sent, and no other command waits behind one for longer than some milliseconds.
pub(crate) const COMMAND_BYTES: u64 = 1 << 20;
/// Commands of one graph that are proposed and not answered: half of what the calls of a node may propose at a time.
pub(crate) const COMMANDS_UNDER_WAY: usize = 8;

/// Graphs that are tiled at a time on a node. Each takes a thread, and memory for a million chunks.
pub(crate) const TILINGS_MAX: usize = 4;
/// Graphs that wait to be tiled on a node.
pub(crate) const TILINGS_WAITING_MAX: usize = 1_024;

/// Keys of chunks of mutables that a node keeps once it has made them, 8 bytes each: 64 MiB. A mutable has 65,536 at most.
pub(crate) const CHUNK_KEYS_KEPT: usize = 8 << 20;

/// Names of things that the processes at one worker have, which are told: each has a few.
pub(crate) const RESOURCES_TOLD_MAX: usize = 64;

/// Addresses or ids of one request about schedulers or workers.
pub(crate) const NAMES_MAX: usize = 10_000;
/// Mutable tileables of one question about how far they are: a look at the state is short.
pub(crate) const MUTABLES_ASKED_MAX: usize = 1_000;
/// Fields of one filter: more than there are.
pub(crate) const FIELDS_MAX: usize = 64;

/// How long a node holds a call that waits. The client asks again.
pub(crate) const HOLD_MAX: Duration = Duration::from_secs(60);
/// Between two messages about one graph: five in a second.
pub(crate) const WATCH_PAUSE: Duration = Duration::from_millis(200);
