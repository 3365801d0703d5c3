//! What one stream of calls may be.

use std::time::Duration;

/// Ops that may be under way, those apart that have arrived and wait. Four frames of the largest: one that comes, one that is
/// proposed, one that is answered, and one to spare.
pub(crate) const OPS_GRANTED: u32 = 1_024;
/// Ops in one frame: what is proposed together.
pub(super) const OPS_A_FRAME_MAX: usize = 256;
/// Bytes of one frame, which is what a stream's window lets through.
pub(super) const FRAME_BYTES_MAX: usize = 4 << 20;
/// Paths that a stream may name: more than all protocols together have methods.
pub(super) const PATHS_MAX: usize = 256;
/// Bytes of one path.
pub(super) const PATH_BYTES_MAX: usize = 256;
/// Entries of metadata of an op, and of all ops of a stream.
pub(super) const METADATA_MAX: usize = 32;
/// Bytes of such metadata with their heads: as much as HTTP/2 takes for the headers of a call.
pub(super) const METADATA_BYTES_MAX: usize = 16 << 10;
/// Digits of a session, which is a number of 128 bits.
pub(super) const SESSION_DIGITS_MAX: usize = 39;
/// For so long a stream may be open without a first frame.
pub(super) const HELLO_TIME: Duration = Duration::from_secs(10);
/// Streams of one connection: one for each processor that makes calls, and no more tasks than that.
pub(super) const STREAMS_MAX: usize = 8;
/// Answers in one frame.
pub(super) const ANSWERS_A_FRAME_MAX: usize = 256;
/// Bytes of answers in one frame, unless the first is larger.
pub(super) const ANSWER_BYTES_A_FRAME: usize = 1 << 20;
/// Frames that are taken before the tasks of others run.
pub(super) const FRAMES_A_TURN: usize = 4;
/// What a path weighs beside its bytes.
pub(super) const PATH_BYTES: usize = 256;
