//! The schedulers of MindSpore's clusters: what its nodes of all releases dial, in front of the replicated state.
//!
//! A job has one port for all of it on each node, and any node takes any message. What a node of MindSpore asks is decoded
//! to a request of the domain, given to the gateway, and answered when it is committed; while nobody leads it is held. On the
//! node that leads, the engine notices who is silent, and calls nodes of a parameter server to tell them what there is to
//! tell. `README.md` beside this crate has a table of all messages.
//!
//! # What this crate does not know
//! * Rules: who gets which rank, when a cluster is complete, what a silence means. They are in `tripod_state::mindspore`.
//! * Replication: who leads, what is in a log. It sees a [`tripod_gateway::Gateway`] and nothing below.
//! * Ports, signals, files: the binary has [`Mindspore`] in its list of front ends.
//!
//! # Invariants
//! * What a node sends is answered, has no answer in the protocol, or ends its connection and is told to the log with a code;
//!   nothing else comes of it, and a refusal changes nothing.
//! * The messages of a connection are answered in their order, but for heartbeats of the parameter server: a node that waits for
//!   something else is not to take its scheduler for dead.
//! * Every length is compared with a bound before what it announces is waited for, and every byte is counted.
//! * A node is told one thing after the other, the next when its answer to the one before is in the log. A node that does not
//!   answer delays nobody else.
//! * Signs of life stay out of the log. After an election everybody has time anew, and a pause of this process counts for
//!   nobody.
//!
//! # Modules
//!
//! | module | holds |
//! |---|---|
//! | `front_end` | what the binary mounts and runs |
//! | [`wire`] | frames of both protocols as bytes |
//! | `connection` | which protocol a connection speaks, its frames, its end |
//! | `marked` | what agents say with frames, and what they are told |
//! | `topology` | messages of dynamic clusters: to the domain's requests, and back |
//! | `ps` | what nodes of the parameter server tell their scheduler: the same |
//! | `http` | what operators of the parameter server ask |
//! | `calls` | connections to nodes of a parameter server, and what they are told on them |
//! | `queries` | what servers are asked that changes nothing |
//! | `pulse` | signs of life, from any node to the leader |
//! | `engine` | what the leader does; see its page |

mod calls;
mod connection;
mod engine;
mod front_end;
mod http;
mod marked;
mod ps;
mod pulse;
mod queries;
mod topology;

pub use calls::{Bytestream, Dial, Dialling};
pub use engine::Patience;
pub use front_end::{Mindspore, PORT};
pub use queries::Unanswered;
/// Frames of both protocols as bytes.
pub use tripod_mindspore_wire as wire;
