//! Frames of both protocols, as bytes: what any split of them decodes to, and what no frame may be.
//!
//! A frame is taken from the front of a buffer when all of it is there. Every length in it is compared with a bound before a
//! byte of what it announces is waited for, and whatever is wrong ends the connection: neither protocol has a mark by which
//! the next frame could be found.
//!
//! | module | holds |
//! |---|---|
//! | `opening` | which protocol a connection speaks, by its first bytes |
//! | [`ps`] | frames of the parameter server: a header, what the message is, a payload |
//! | [`rpc0`] | frames of dynamic clusters: a name, two addresses, a body |
//! | `command`, `name` | what messages are called, in each protocol |
//! | `broken` | what is no frame |
//! | `mark` | what agents and nodes say to each other beside the frames of clients |
//!
//! What this crate does not know: what a message does, who serves it, or how it travels.

mod broken;
mod command;
mod mark;
mod name;
mod opening;
pub mod ps;
pub mod rpc0;

use bytes::BytesMut;

pub use broken::Broken;
pub use command::Command;
pub use mark::{Mark, Stamp, Word};
pub use name::{Dialect, Name};
pub use opening::{OPENING_BYTES, Opening};

/// A frame of either protocol.
pub trait Frame: Sized {
    /// How many bytes the frame has that begins here, as far as they tell: those of its fixed part until that has come.
    ///
    /// # Errors
    /// No frame begins so.
    fn bytes_of(front: &[u8]) -> Result<usize, Broken>;

    /// Takes the first frame, if all of it is there.
    ///
    /// # Errors
    /// No frame begins so. What is left in the buffer means nothing any more.
    fn take(buffer: &mut BytesMut) -> Result<Option<Self>, Broken>;
}
