//! Nodes of MindSpore's clusters that are only played: of the dynamic cluster (1.8 to 2.10) and of the parameter server
//! (1.2 to 2.2), with the frames and the connections of real ones, and thousands of them in one process.
//!
//! A node knows several addresses of its scheduler, as if something moved its one address along. It uses one of them
//! until that fails, and goes on to the next. Whatever was sent and not answered may have been done: it is told so
//! ([`Failure`]) and never repeated in secret.
//!
//! | module | what |
//! |---|---|
//! | `job` | a job for a cluster, and where its nodes find it |
//! | `worker` | a node of the dynamic cluster |
//! | `node` | a node of the parameter server, as far as it asks |
//! | `port` | the same, as far as it is called: what it is told, and its echoes |
//! | `frames` | the bytes of both protocols |
//! | `line` | a connection with frames of one of them |
//! | `failure` | why nothing came of a message |
//!
//! The frames are written a second time here: what nodes of ours read and write is not measured with itself.

mod failure;
mod frames;
mod job;
mod line;
mod node;
mod port;
mod worker;

pub use failure::Failure;
pub use job::{Job, Size};
pub use node::{Node, Role, UNRANKED};
pub use port::{Hear, Told};
pub use worker::{Dialect, Registered, Worker};
