//! Every bound of sessions and what they hold, with its unit and its reason. Beyond one of them a command is refused and the
//! state is unchanged.

use crate::fault::Fault;
use crate::ids::DurationMs;
use crate::limits::within;

/// Sessions of one job: a client has one, and a notebook leaves some behind.
pub const SESSIONS_MAX: u64 = 4_096;
/// Characters of a session's id and of a mutable's name.
pub const SESSION_ID_CHARS_MAX: usize = 128;
/// Labels of one session.
pub const LABELS_MAX: usize = 64;
/// Bytes of a label's name and of its value.
pub const LABEL_BYTES_MAX: usize = 1 << 10;
/// Bytes of a key: of a graph, a tileable, a chunk.
pub const KEY_BYTES_MAX: usize = 512;
/// Bytes of a tileable's name, and of a column's.
pub const TEXT_BYTES_MAX: usize = 1 << 10;
/// Bytes of a request's id.
pub const REQUEST_ID_BYTES_MAX: usize = 128;

/// Graphs of one session, those that have ended included: they are kept until somebody deletes them.
pub const GRAPHS_MAX: u64 = 4_096;
/// Graphs of one job.
pub const JOB_GRAPHS_MAX: u64 = 65_536;
/// Chunks of one graph.
pub const GRAPH_CHUNKS_MAX: u64 = 500_000;
/// Chunks of all graphs of one session. At 400 bytes each this is 400 MB at most.
pub const SESSION_CHUNKS_MAX: u64 = 1_000_000;
/// Chunks of all graphs of one job.
pub const JOB_CHUNKS_MAX: u64 = 4_000_000;
/// Inputs of one chunk: as many arguments a task of the scheduler has, without the first.
pub const INPUTS_MAX: u64 = crate::ray::limits::ARGUMENTS_MAX - 1;
/// Inputs of all chunks of one graph together.
pub const GRAPH_INPUTS_MAX: u64 = 4_000_000;
/// Axes of anything.
pub const DIMS_MAX: u64 = 32;
/// Bytes of the first argument of a chunk's task, with what it brings: what a task of the scheduler has.
pub const ARGUMENT_BYTES_MAX: u64 = crate::ray::limits::TASK_BYTES_MAX;
/// Named resources that a chunk may need.
pub const RESOURCES_MAX: u64 = 16;
/// Bytes of what one graph of chunks consists of in memory before it is scheduled: arguments and inputs.
pub const GRAPH_BYTES_MAX: u64 = 1 << 30;
/// The same of all graphs of one job.
pub const JOB_GRAPH_BYTES_MAX: u64 = 2 << 30;
/// Tileables of one graph, targets included.
pub const TILEABLES_MAX: u64 = 65_536;
/// Chunks that all tileables of one graph list together.
pub const LISTED_CHUNKS_MAX: u64 = 2_000_000;
/// Columns of a frame.
pub const COLUMNS_MAX: u64 = 4_096;
/// Parts along one axis, and of all axes together.
pub const SPLITS_MAX: u64 = 500_000;
/// Bytes of all that one command says, roughly: an entry of the log is 64 MiB at most. Who submits more does it in parts.
pub const COMMAND_BYTES_MAX: u64 = 32 << 20;
/// Chunks in one command: applying it is to take fractions of a second.
pub const COMMAND_CHUNKS_MAX: u64 = 131_072;
/// Targets of one graph.
pub const TARGETS_MAX: u64 = 100_000;

/// Subtasks that one command gives to the scheduler.
pub const WINDOW: u32 = 1_024;
/// Subtasks of one graph that the scheduler has at a time: enough for thousands of workers, and little to cancel.
pub const IN_FLIGHT_MAX: u32 = 8_192;
/// How long a subtask that runs may take to end after it was stopped: upstream's 5 s.
pub const CANCEL_GRACE_MS: DurationMs = DurationMs(5_000);
/// Attempts after the first that a client may ask for.
pub const RESCHEDULES_MAX: u32 = 1_000;
/// Longest timeout of a graph and longest time for which its results are kept, in milliseconds: a year.
pub const TIMEOUT_MS_MAX: u64 = crate::limits::TIMEOUT_MS_MAX;
/// Bytes of the text of a failed subtask that are kept.
pub const ERROR_TEXT_BYTES_MAX: usize = 16 << 10;
/// Bytes of its message: the last line of the text.
pub const ERROR_MESSAGE_BYTES_MAX: usize = 1 << 10;

/// Graphs of one session whose bytes are being uploaded.
pub const UPLOADS_MAX: u64 = 16;
/// Bytes of one graph that is uploaded.
pub const UPLOAD_BYTES_MAX: u64 = 1 << 30;
/// Bytes of all uploads of one session that have not become graphs.
pub const SESSION_UPLOAD_BYTES_MAX: u64 = 1 << 30;
/// The same of one job.
pub const JOB_UPLOAD_BYTES_MAX: u64 = 2 << 30;
/// Bytes of one part.
pub const UPLOAD_PART_BYTES_MAX: u64 = 16 << 20;
/// Parts of one upload: those of gRPC's usual 4 MiB, and smaller ones.
pub const UPLOAD_PARTS_MAX: u64 = 16_384;
/// How long an upload, or a graph that is submitted in parts, may rest.
pub const UPLOAD_IDLE_MS: DurationMs = DurationMs(600_000);

/// How long the answer to a request with an id is remembered.
pub const REMEMBERED_MS: DurationMs = DurationMs(600_000);
/// Answers that one job remembers; beyond, the oldest are forgotten. 200 requests a second.
pub const REMEMBERED_MAX: u64 = 131_072;
/// Bytes of those.
pub const REMEMBERED_BYTES_MAX: u64 = 128 << 20;

/// Keys of one request that takes references away.
pub const DECREF_KEYS_MAX: u64 = 10_000;
/// Entries of one page of a listing.
pub const PAGE_MAX: usize = 1_000;
/// Nodes whose states are told of one graph.
pub const NODE_STATES_MAX: usize = 10_000;
/// Keys that one request asks about.
pub const KEYS_ASKED_MAX: u64 = 10_000;

/// Mutable tileables of one session.
pub const MUTABLES_MAX: u64 = 1_024;
/// Those of one job.
pub const JOB_MUTABLES_MAX: u64 = 16_384;
/// Chunks of one.
pub const MUTABLE_CHUNKS_MAX: u64 = 65_536;
/// Elements of one: places are numbers of 64 bits.
pub const MUTABLE_ELEMENTS_MAX: u64 = 1 << 48;
/// Stores that have one chunk.
pub const REPLICAS_MAX: u32 = 3;
/// Stores over which the chunks of one are spread.
pub const MUTABLE_STORES_MAX: usize = 4_096;
/// How long nothing is said of chunks whose stores are away: a machine that starts again brings what it had.
pub const ABSENT_MS: DurationMs = DurationMs(120_000);
/// How long sealing may take.
pub const SEAL_MS: DurationMs = DurationMs(600_000);

/// Whether a text can be a session's id or a mutable's name.
pub(crate) fn check_id(what: &str, id: &str) -> Result<(), Fault> {
    within(&format!("characters of {what}"), id.len() as u64, SESSION_ID_CHARS_MAX as u64)?;
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if id.is_empty() || !id.bytes().all(legal) {
        return Err(invalid(what, "must be 1 to 128 characters of A-Z, a-z, 0-9, `.`, `_` and `-`"));
    }
    Ok(())
}

/// Whether a text can be a key.
pub(crate) fn check_key(what: &str, key: &str) -> Result<(), Fault> {
    if key.len() > KEY_BYTES_MAX {
        within(&format!("bytes of {what}"), key.len() as u64, KEY_BYTES_MAX as u64)?;
    }
    if key.is_empty() { Err(invalid(what, "must not be empty")) } else { Ok(()) }
}

pub(crate) fn invalid(field: &str, reason: &str) -> Fault {
    super::Refusal::Invalid { field: field.to_owned(), reason: reason.to_owned() }.into()
}
