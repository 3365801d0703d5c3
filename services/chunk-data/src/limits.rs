//! Every bound of this crate. Who passes one is refused and told which.

use std::time::Duration;

/// Keys of one call. Each may be looked up, so a call is no list of everything.
pub(crate) const KEYS_MAX: usize = 4096;
/// Bytes of a key, of the name of a session and of a client's id.
pub(crate) const NAME_BYTES_MAX: usize = 1024;
/// Axes of a chunk, as numpy had them before its second version.
pub(crate) const DIMS_MAX: usize = 32;
/// Places in all lists of indexes of one call.
pub(crate) const LIST_MAX: usize = 1 << 20;
/// Ways to compress that a client may name.
pub(crate) const COMPRESSIONS_MAX: usize = 16;
/// Columns of a frame; the same as `services/tile` allows.
pub(crate) const COLUMNS_MAX: usize = 4096;
/// Bytes of what describes a chunk: 4,096 columns with names of 1 KiB.
pub(crate) const DESCRIPTION_BYTES_MAX: usize = 8 << 20;

/// Bytes of one message of an answer, before they are compressed: below the 4 MiB that clients of gRPC read by default.
pub(crate) const PART_BYTES: usize = 1 << 20;
/// Bytes of what one key may be answered with: a list may name one element again and again.
pub(crate) const ANSWER_BYTES_MAX: u64 = 16 << 30;
/// Bytes of rows that are picked from a frame, which are put together in memory.
pub(crate) const PICKED_ROWS_BYTES_MAX: u64 = 256 << 20;

/// Answers at a time: of one address, and of all.
pub(crate) const STREAMS_OF_ONE_MAX: usize = 32;
pub(crate) const STREAMS_MAX: usize = 256;
/// Calls that write, of one address and of all: each holds some batches in memory.
pub(crate) const WRITERS_OF_ONE_MAX: usize = 8;
pub(crate) const WRITERS_MAX: usize = 32;
/// How long who asked may read nothing of its answer.
pub(crate) const READ_PATIENCE: Duration = Duration::from_secs(60);
/// How long objects on their way are waited for, in all that one call asks for: from another store, or from disk.
pub(crate) const PREPARE_PATIENCE: Duration = Duration::from_secs(10);
/// How long the nodes may take to say where a chunk is.
pub(crate) const LOOK_UP_PATIENCE: Duration = Duration::from_secs(10);
/// For how long what they said is believed: a chunk of a session that ended is read for so much longer.
pub(crate) const LOOK_UP_AGE_MAX: Duration = Duration::from_secs(5);
/// How many chunks are remembered; beyond, all are asked for anew.
pub(crate) const LOOK_UPS_MAX: usize = 65_536;

/// Bytes of the values of a batch, before and after they are compressed, and of all batches that are made durable at once.
pub(crate) const BATCH_BYTES_MAX: usize = 16 << 20;
/// A message with a batch: its values, as many places, and the fields around them.
pub(crate) const MESSAGE_BYTES_MAX: usize = 2 * BATCH_BYTES_MAX + (64 << 10);
/// Batches that are made durable at once.
pub(crate) const GROUP_MAX: usize = 64;
/// How long a client may take between two batches of a call.
pub(crate) const WRITE_PATIENCE: Duration = Duration::from_secs(60);
/// When who was refused for want of room may try again.
pub(crate) const QUOTA_RETRY: Duration = Duration::from_secs(5);
/// Bytes of a mutable chunk, which is put together in memory when it is read.
pub(crate) const MUTABLE_CHUNK_BYTES_MAX: u64 = 256 << 20;
/// Mutable chunks that are put together at a time.
pub(crate) const MATERIALISED_MAX: usize = 4;
/// Mutable chunks of a store: each is an open file.
pub(crate) const MUTABLE_CHUNKS_MAX: usize = 16_384;
/// Bytes of a chunk that is put, before they are compressed: a mutable chunk, and what describes it.
pub(crate) const PUT_CHUNK_BYTES_MAX: u64 = MUTABLE_CHUNK_BYTES_MAX + DESCRIPTION_BYTES_MAX as u64;
/// Bytes of one message of it, before and after they are compressed.
pub(crate) const PUT_PART_BYTES_MAX: usize = BATCH_BYTES_MAX;
/// Messages of one chunk that is put: 256 MiB in pieces of 64 KiB.
pub(crate) const PUT_PARTS_MAX: u64 = 4_096;
/// Chunks of one call that puts.
pub(crate) const PUT_CHUNKS_MAX: usize = KEYS_MAX;
/// Calls that put, of one address and of all: each has one chunk that is not whole yet, in a file, and a message in memory.
pub(crate) const UPLOADS_OF_ONE_MAX: usize = 8;
pub(crate) const UPLOADS_MAX: usize = 64;

/// Between two questions which records are needed.
pub(crate) const SWEEP_EVERY: Duration = Duration::from_secs(10);
/// From a seal of chunks that were put to the next question: the log has to know it first.
pub(crate) const SWEEP_SOON: Duration = Duration::from_secs(1);
/// For how long records must not have been needed before they go: whoever was told before that the chunk is open has heard it
/// so long ago at most, and would take cells that are not there for cells that nobody wrote.
pub(crate) const SWEEP_SETTLED: Duration = Duration::from_secs(5 + 5 + 10);
/// Mutable tileables of one question.
pub(crate) const STATES_ASKED_MAX: usize = 1_000;
/// Bytes that are sent at once to the store that has the other copy.
pub(crate) const COPY_BYTES: usize = 8 << 20;
/// How long that store may take.
pub(crate) const COPY_PATIENCE: Duration = Duration::from_secs(20);
