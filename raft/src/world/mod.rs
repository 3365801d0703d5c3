//! The operating system's network, or one that is brought along.
//!
//! | module | what |
//! |---|---|
//! | `network` | the interface of a network that is brought along |
//! | `wiring` | our transport over the operating system's network, or over such a one |

mod network;
pub(crate) mod wiring;

pub(crate) use wiring::{Door, Wires};

pub use network::{BoxFuture, Listener, Network, Stream};
