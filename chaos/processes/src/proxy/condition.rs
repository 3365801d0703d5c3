//! What may happen to a connection.

use serde::{Deserialize, Serialize};

/// What happens to the bytes of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flow {
    #[default]
    Pass,
    /// Nothing arrives, and nobody is told; it all arrives when this is over, unless the connection is
    /// reset. An end or a reset of the connection does not arrive either.
    Swallow,
    /// Everything arrives later, by a time that is drawn anew for each piece; order is kept.
    Delay { least_ms: u64, jitter_ms: u64 },
    /// As over a narrow line.
    Slow { bytes_per_second: u64 },
}

/// The state of the connections that one end opens to another. Changes count for open ones too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Condition {
    /// From whoever opened the connection.
    pub forward: Flow,
    /// To whoever opened it.
    pub backward: Flow,
    /// New connections are reset as soon as they are open.
    pub refuse_new: bool,
    /// Every connection is reset at a random time, at most so many milliseconds from its beginning or from
    /// the last change.
    pub lifetime_max_ms: Option<u64>,
    /// Connections that are older than the last increase are reset.
    pub resets: u64,
}

impl Condition {
    /// Whether anything is held back.
    #[must_use]
    pub fn swallows(&self) -> bool {
        self.forward == Flow::Swallow || self.backward == Flow::Swallow
    }
}
