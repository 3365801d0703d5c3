//! Messages between processes of this machine and the cluster that go over the store's connections. The store does not
//! look into them: what either side may have learned since this one was built reaches the other.
//!
//! | module | what |
//! |---|---|
//! | `nodes` | connections to nodes of the cluster |
//! | `batches` | from a process to a node |
//! | `followers` | workers of this machine that take orders here |
//! | `orders` | `/tripod.v1.RayPeerLine/Orders`: from a node to a worker |

mod batches;
mod followers;
mod nodes;
mod orders;

pub(crate) use batches::Batches;
pub(crate) use followers::{Follower, Followers};
pub(crate) use nodes::Nodes;
pub(crate) use orders::OrdersServer;
