//! What happens between a socket (or TLS) and h2, at the level of HTTP/2 frames.
//!
//! Three things are done here that h2 cannot. The first is a cure. gRPC sends the whole target as `:authority`: `a:1,b:1` for `ipv4:a:1,b:1` and
//! `d%2Fs` for `unix:/d/s`, which the `http` crate cannot parse. h2 under tonic answers every stream with
//! such a value PROTOCOL_ERROR before any handler is asked, so without a cure no client with a list of
//! nodes can register.
//!
//! [`Mended`] reads a connection up to its first header block. If that block's authority parses, as it
//! does for ordinary clients, the bytes go through untouched and nothing is looked at again. If not, all
//! header blocks of the connection are decoded, mended and written anew without HPACK compression; all
//! other frames pass as they are. Nothing is refused here that h2 would take, and what h2 would refuse is
//! left to it as long as the connection is not being rewritten.
//!
//! The second is the end of a connection when its node stops, see `parting`: a GOAWAY frame that covers
//! no stream, written at the end of a frame of h2's.
//!
//! The third is that an answer leaves in one system call, see `outgoing`, so that a node which is killed has
//! answered a call or not.
//!
//! | module | holds |
//! |---|---|
//! | `frame` | HTTP/2 frame heads, padding and priority fields |
//! | `block` | decoding, mending and encoding of one header block |
//! | `mender` | the state machine over bytes, without input and output |
//! | `outgoing` | what h2 has written, gathered to whole answers |
//! | `boundary` | where the frames of what we write end |
//! | `connection_calls` | the calls of a connection that may not be cut, and those being answered |
//! | `silent` | connections of which nothing has come yet, which give way |
//! | `port_resources` | what new connections of a port depend on |
//! | `opening` | the time that a new connection has to begin |
//! | `parting` | the end of a connection whose node is stopping |
//! | `belief` | the end of a connection whose client is not believed any more |
//! | `presence` | that a connection stands, for those who wait for its client's first heartbeat |
//! | `untaken` | what h2 has not been able to write |
//! | `adapter` | the adapter around a socket |
//! | `listener`, `socket` | where connections are accepted, and what is accepted |
//! | `arrivals` | the connections of a listener, as soon as each has a permit |
//! | `incoming` | the same, adapted |

mod adapter;
mod arrivals;
mod belief;
mod block;
mod boundary;
mod connection_calls;
mod frame;
#[cfg(test)]
mod identity_test;
mod incoming;
mod listener;
mod mender;
mod opening;
mod outgoing;
mod parting;
mod port_resources;
mod presence;
mod silent;
mod socket;
mod untaken;

pub use adapter::Mended;
pub(crate) use arrivals::Arrivals;
pub(crate) use belief::{Believed, belief};
pub use connection_calls::ConnectionCalls;
pub(crate) use connection_calls::{Handing, Unfinished};
pub use incoming::MendedIncoming;
pub use listener::Listener;
pub use port_resources::PortResources;
pub use presence::{PRESENCE_TOLD_FOR, tell_presence};
pub(crate) use silent::{Silence, SilentConnections};
pub use socket::Socket;
