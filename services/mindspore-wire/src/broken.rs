//! What is no frame.

use prost::DecodeError;

/// Why a connection cannot go on: what follows in it has no beginning that could be found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// It begins as no frame of its protocol does.
    #[error("a frame begins with {found:02x?}, and those of this protocol begin otherwise")]
    Beginning { found: [u8; 4] },
    /// A length is beyond its bound.
    #[error("a frame's {what} has {bytes} bytes, and may have {limit}")]
    TooLong { what: &'static str, bytes: u64, limit: u64 },
    /// A part is longer than what it is a part of.
    #[error("a frame's meta has {meta} bytes, and the whole message has {message}")]
    MetaTooLong { meta: u32, message: u64 },
    /// What stands before the payload cannot be read.
    #[error("a frame's meta cannot be read: {0}")]
    Meta(#[from] DecodeError),
}
