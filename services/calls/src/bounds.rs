//! How much of everything a stream takes.

/// Ops of a frame. More do not make a call cheaper, and an answer that is awaited stands behind fewer.
pub const FRAME_OPS_MAX: usize = 256;
/// Bytes of a frame, as ops weigh: a small one stands behind no more than that. A single op may weigh more.
pub const FRAME_BYTES_MAX: usize = 256 << 10;
/// Frames that wait for their answers before calls gather: one is executed while the other is on its way.
pub(crate) const FRAMES_WAITING_MAX: usize = 2;
/// Bytes of one message. A longer one would hold up the small ones behind it, and goes by a call of its own.
pub const OP_MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Bytes of one op's metadata: as much as HTTP/2 lets a request's headers have by default.
pub const OP_METADATA_BYTES_MAX: usize = 16 << 10;
/// Entries of one op's metadata: a node makes something of each, however short it is.
pub(crate) const OP_METADATA_MAX: usize = 32;
/// What an op weighs beside its message and metadata: its numbers, as they are encoded.
pub(crate) const OP_OVERHEAD_BYTES: usize = 32;
/// Different paths of a stream: more than a node has methods. The node remembers each for as long as the stream lasts.
pub const PATHS_MAX: usize = 256;
/// Bytes of a path.
pub(crate) const PATH_BYTES_MAX: usize = 256;
/// Calls of a stream that are not answered yet, sent or not: as many as a gateway's session has under way.
pub const CALLS_MAX: usize = 16_384;
/// Bytes of calls that wait to be sent. Without it the longest messages of that many calls would be a gigabyte.
pub const QUEUED_BYTES_MAX: usize = 32 << 20;
/// Calls that were given up and are remembered, since their answers may be on the way: as many as there can be calls.
pub(crate) const GIVEN_UP_MAX: usize = CALLS_MAX;
