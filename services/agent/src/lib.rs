//! The node-local agent: keeps clients that know one address connected to a cluster of several nodes.
//!
//! An unmodified client of the coordination protocols ends its process when it loses the one connection
//! that it has. The agent sits beside it, on loopback or a unix socket, and does not go away: it holds the
//! client's calls, sends them to a node, and sends them again, to the same node or another one, until the
//! cluster has answered. `README.md` beside this crate says what it guarantees and what it does not.
//!
//! What this crate does not know: what a call or a frame means (it passes messages on as bytes and knows of
//! each only whether it may be sent twice), who leads, or how an agent is started (the binary reads flags and
//! signals).
//!
//! Invariants:
//! * A call that changes something is sent again only with the stamp of its first attempt; with another
//!   one only if that session has expired and the cluster recognises the call by what it says.
//! * A refusal of the cluster reaches the client byte for byte, and only a node's own trouble is not
//!   passed on.
//! * One connection to the cluster is in use at a time; it is left for another one only when that one's
//!   node has shown that it can serve.
//! * A heartbeat is told only if a client has made it, and never answered without the cluster after the
//!   cluster has refused the same client's last one.
//! * A planned stop gives back what may be made again, and cuts nothing else that could still be finished.
//! * Nothing waits for longer than the client does, or than the longest outage.
//! * Every byte that is held for a client is counted, and no client takes from others what each connection has in any case.
//!
//! | module | what |
//! |---|---|
//! | `config`, `error`, `agent` | from a configuration to a running agent |
//! | `listen`, `incoming` | the client's side: places, connections |
//! | `front`, `calls`, `deadline` | what a request becomes; the table of calls |
//! | `message`, `raw` | requests and replies as bytes |
//! | `registered` | how the client of a connection registered, for nodes that must be told |
//! | `forward`, `sessions`, `numbers` | sending until answered, exactly once |
//! | `room` | bytes of answers that come |
//! | `beats` | heartbeats |
//! | `devices` | the exchange of devices, whose answer comes once |
//! | `mindspore` | nodes of MindSpore, whose protocols are frames and not calls |
//! | `job` | the job, created on first use |
//! | `upstream` | the cluster's side |
//! | `meters`, `status` | what is counted, and told |

mod agent;
mod answer_bytes;
mod beats;
mod calls;
mod config;
mod deadline;
mod devices;
mod error;
mod forward;
mod front;
mod incoming;
mod job;
mod listen;
mod message;
mod meters;
mod mindspore;
mod numbers;
mod raw;
mod registered;
mod sessions;
mod status;
mod upstream;

pub use agent::Agent;
pub use calls::Kind;
pub use config::{AgentConfig, Listen, Poll, Timing};
pub use error::Error;
pub use status::{AgentStatus, StatusHandle, UpstreamStatus};
pub use tripod_local::ConnectionLimits;
pub use tripod_port::MemoryLimits;
/// What a job is created with.
pub use tripod_proto::tripod::v1::JobSpec;
/// Where an agent's clients come from.
pub use tripod_proto::tripod::v1::TaskOrigin;
pub use upstream::Dial;
