//! Lets clients in whose `:authority` the `http` crate cannot parse.
//!
//! gRPC sends the whole target as `:authority`: `a:1,b:1` for `ipv4:a:1,b:1` and `d%2Fs` for
//! `unix:/d/s`. h2 under tonic answers every stream with such a value PROTOCOL_ERROR before any
//! handler is asked, so without a cure no client with a list of nodes can register.
//!
//! The cure sits between the socket (or TLS) and h2. [`Mended`] reads a connection up to its first
//! header block. If that block's authority parses, as it does for ordinary clients, the bytes go
//! through untouched and nothing is looked at again. If not, all header blocks of the connection are
//! decoded, mended and written anew without HPACK compression; all other frames pass as they are.
//! Nothing is refused here that h2 would take, and what h2 would refuse is left to it as long as the
//! connection is not being rewritten.
//!
//! | module | holds |
//! |---|---|
//! | `frame` | HTTP/2 frame heads, padding and priority fields |
//! | `block` | decoding, mending and encoding of one header block |
//! | `mender` | the state machine over bytes, without input and output |
//! | `connection` | the adapter around a socket |
//! | `incoming` | listeners that yield adapted connections |

mod block;
mod connection;
mod frame;
mod incoming;
mod mender;

pub use connection::Mended;
pub use incoming::{Listener, MendedIncoming, Peer, Socket};
