//! `mars.v1.Scheduler` on every node: sessions, graphs of tensors and frames and of their chunks, metas, and tensors that are
//! written in place.
//!
//! A call is decoded to a request of the domain, given to the gateway, and its answer is encoded; any node takes any call.
//! Graphs of tileables are tiled here, before anything is proposed: the log has chunks. On the node that leads, the engine
//! proposes what the state says is due, and tells object stores to seal. `README.md` beside this crate has a table of all calls.
//!
//! # What this crate does not know
//!
//! * Rules: when a graph has failed, which chunk is kept, who has a mutable's chunks. They are in `tripod_state::mars`.
//! * Scheduling: a chunk is made by a task of the job's scheduler (`tripod_state::ray`), whose front end gives the orders.
//! * Bytes of chunks: they are in object stores, which serve `mars.v1.Worker`.
//! * Replication: who leads, what is in a log. It sees a [`tripod_gateway::Gateway`] and nothing below.
//!
//! # Invariants
//!
//! * A graph is refused, with node and reason, before anything of it is in the log; or it is there wholly.
//! * What takes long (decoding, tiling) is done on threads, of which a session has one at a time.
//! * Lists are counted before they are made.
//! * A call that waits looks at the state again whenever that changes, on whichever node it is; nothing of the waiting is
//!   replicated.
//!
//! # Modules
//!
//! | module | holds |
//! |---|---|
//! | `front_end` | what the binary mounts and runs |
//! | `service` | the calls, by what they are about |
//! | `front` | the way from a call to the gateway and back |
//! | `domain` | the state's words and questions, in one place |
//! | `graph` | graphs as clients send them, to chunks |
//! | `submit`, `parts` | whole graphs and graphs in parts, to commands; several commands of one graph |
//! | `tiling` | turns on threads |
//! | `hold` | calls that wait and watch |
//! | `cluster`, `figures` | who schedules and computes, and how full stores are |
//! | `encode`, `fields` | what is shown, and which parts of it |
//! | `mutable`, `chunk_keys` | definitions of what is written in place; whose a chunk of it is |
//! | `status`, `oversize` | the one table from refusals and outages to codes and texts |
//! | `deadline`, `limits` | how long, how much |
//! | `manners` | how each call may end when its node stops |
//! | `engine` | what the leader does |

mod chunk_keys;
mod cluster;
mod deadline;
mod domain;
mod encode;
mod engine;
mod fields;
mod figures;
mod front;
mod front_end;
mod graph;
mod hold;
mod limits;
mod manners;
mod mutable;
mod oversize;
mod parts;
mod service;
mod status;
mod submit;
mod tiling;

pub use engine::{Connect, Connecting};
pub use figures::{Figures, StoreFigures};
pub use front_end::Mars;
pub use limits::MESSAGE_BYTES_MAX;
pub use manners::MANNERS;
