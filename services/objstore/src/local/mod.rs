//! The store's protocol for processes of the same machine, over a unix socket with descriptors.
//!
//! | module | what |
//! |---|---|
//! | `frame` | frames, as both sides read and write them |
//! | `listener` | the socket and its connections |
//! | `session` | one connection: what it asks, writes and holds |
//! | `relayed` | one that carries messages between its process and the cluster |
//! | `untold` | what its process is to tell the scheduler, and may not have |
//! | `answer` | refusals, with their codes |
//! | `outgoing` | replies on their way, with descriptors |
//! | `connection` | the other side: the library for processes |
//! | `incoming` | replies as they come, with descriptors |
//! | `object` | an object as a process has it |

mod answer;
mod connection;
mod frame;
mod incoming;
mod listener;
mod object;
mod outgoing;
mod relayed;
mod session;
mod untold;

pub use connection::{Connection, Welcome};
pub(crate) use incoming::read_to_the_end;
pub(crate) use listener::Listener;
pub use object::{Draft, LocalError, Object};
pub(crate) use session::serve;

/// The version of the protocol.
const VERSION: u32 = 1;
