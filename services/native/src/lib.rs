//! `tripod.v1`: our own API for the command line, the SDK and agents.
//!
//! Every call is decode, gateway, encode. The crate holds no state and no rule of the domain.
//!
//! What this crate does not know: how commands are replicated (that is behind
//! [`tripod_gateway::Gateway`]), and on which port it is served (the binary adds it to the routes of
//! the client port).
//!
//! Invariants:
//! * Every [`tripod_state::Fault`] and every [`tripod_gateway::Outage`] has one code, one reason word and
//!   one text; the compiler checks that none is forgotten.
//! * `UNAVAILABLE` means that the call was not executed. A call that may have been is answered with the
//!   reason `outcome-unknown`.
//! * `Cluster.Status` is answered from memory and never waits for a leader.
//!
//! | module | what |
//! |---|---|
//! | `service` | the services |
//! | `audited` | calls of which a line is written |
//! | `backups` | what the binary tells about the backups of its node |
//! | `decode` | requests to commands, bounded |
//! | `encode` | answers to messages |
//! | `front_end` | the API as the binary composes it |
//! | `health` | `grpc.health.v1` for the whole port |
//! | `job_ports` | what the binary tells about the job ports of its node |
//! | `manners` | how each call may end when its node stops |
//! | `resolve` | job names to job ids |
//! | `status` | faults and outages to codes and reasons |
//! | `text` | faults in words |

mod audited;
mod backups;
mod decode;
mod encode;
mod front_end;
mod health;
mod job_ports;
mod manners;
mod resolve;
mod service;
mod status;
mod text;

pub use backups::{Backups, Newest};
pub use front_end::Native;
pub use job_ports::{ClosedPort, JobPorts, OwnPort};
pub use manners::MANNERS;
