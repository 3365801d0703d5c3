//! Whom one connects to: how an address becomes an endpoint, and which of those that others name (workers, object stores,
//! tasks that listen) are connected to at all. Where workers and object stores listen is here, too: what protects a
//! connection is the same at both of its ends.
//!
//! Whoever names an address makes a node or a store connect to it, from within the cluster's network. So an address is
//! resolved here, judged by a [`Rule`], and what was judged is what is connected to: a name is not looked up again in
//! between. Connections are made a few at a time, and fewer to each host, so that dead addresses hold up only their own.
//!
//! | module | holds |
//! |---|---|
//! | `endpoint` | from any address to an endpoint: the one place that will know what protects a connection |
//! | `host_port` | a host and a port, as they are written |
//! | `listen` | from an address to a worker's or a store's port: the same at the other end |
//! | `node` | connections to nodes, and how this process proves to them who it is |
//! | `bearer` | the token that this process shows to nodes |
//! | `workers` | what protects the ports of workers and stores, and who may call what there |
//! | `network` | addresses that begin alike |
//! | `allow` | which addresses may be named by anybody: a flag |
//! | `rule` | whether an address is connected to, and on whose word |
//! | `refused` | why not |
//! | `names` | the addresses of names |
//! | `turns` | how much is under way at a time, in all and for each |
//! | `dialler` | all of this together |

mod allow;
mod bearer;
mod dialler;
mod endpoint;
mod host_port;
mod listen;
mod names;
mod network;
mod node;
mod refused;
mod rule;
mod turns;
mod workers;

pub use allow::Allow;
pub use bearer::{Shown, bear, bearer, show};
pub use dialler::Dialler;
pub use endpoint::{Callee, endpoint};
pub use listen::{Accepted, Incoming, PortIncoming, listen, listen_as_store, listen_as_worker};
pub use names::LookUp;
pub use network::{Illegal, Network};
pub use node::{connect, connect_to_worker, protect, protection};
pub use refused::Refused;
pub use rule::{Named, Rule};
pub use workers::{
    ArrivedBy, caller_address, connection_of, gate_of_store, gate_of_worker, is_proved, protect_workers,
};
