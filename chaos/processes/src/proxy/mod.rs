//! A network between processes that can be made bad: every connection between two nodes, and between
//! clients and a node, leads through here, and each direction of each pair can be treated on its own.
//!
//! All nodes must be told the same peer addresses, because these stand in the replicated membership. So
//! there is one port per node and not per pair; who has connected to it is read from the kernel's tables.
//!
//! What cannot be done here: losing single packets of a connection. TCP would send them again, which is
//! what [`Flow::Swallow`] looks like to both ends once it is over: everything arrives late, in order.
//!
//! | module | what |
//! |---|---|
//! | `condition` | what may happen to a connection |
//! | `pump` | one direction of one connection |
//! | `connection` | both directions, and how it ends |
//! | `source` | which node has connected |
//! | `network` | all ports and pairs |

mod condition;
mod connection;
mod network;
mod pump;
mod source;
#[cfg(test)]
mod tests;

pub use condition::{Condition, Flow};
pub use network::{LinkEnd, Network, Route};
