//! Sizes on which the two ends of a connection must agree.

/// Bytes of one answer of a node as it is encoded. A node refuses what has more before it is sent, and no client of ours
/// takes more: a peer that means no good, or another program at that address, fills nobody's memory.
pub const ANSWER_ENCODED_BYTES_MAX: usize = 256 << 20;
