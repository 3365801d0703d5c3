//! The coordination services of JAX and TensorFlow, as their unmodified clients know them.
//!
//! Three wire dialects are served on one port; the path tells them apart:
//!
//! * **N**, `xla.coordination.CoordinationService`: jaxlib 0.10.0 and later;
//! * **T**, `tensorflow.CoordinationService`: jaxlib up to 0.9.2, and TensorFlow;
//! * **L**, `xla.DistributedRuntimeService`: jaxlib before 0.4.14 without the coordination service.
//!
//! A call is decoded to a command of the domain, given to the gateway, and its answer is encoded.
//! `README.md` beside this crate has a table of all calls and the list of differences from upstream.
//!
//! # What this crate does not know
//!
//! * Rules: which registration is accepted, when a barrier passes, what an error does to others. A
//!   front end that asks about the state of a task has taken a rule out of the state machine.
//! * Replication: who leads, what is in a log. It sees a [`tripod_gateway::Gateway`] and nothing below.
//! * Connections, and how a port stops: that is `tripod-port`, to which the binary hands what [`Coordination`] adds to its routes.
//! * Signals, files: the binary runs [`push::run_over`].
//!
//! # Invariants
//!
//! * A poll for errors is never answered OK (the client would end its process), and the cluster's
//!   own trouble ends it CANCELLED, the one code that does no harm.
//! * An error that the service made carries the coordination payload unless upstream's does not; an
//!   outage carries none: that is how clients decide whether to try again.
//! * UNAVAILABLE says when to come again: never after an error of the domain, soon after an outage.
//! * A reply repeats the key as it was asked for, not as it is stored.
//!
//! # Modules
//!
//! | module | holds |
//! |---|---|
//! | `n`, `t` | one dialect each: `decode`, `encode`, and `service`, which names the two ends of every call |
//! | `l` | the dialect without payloads and with time-outs of its own; `waiting_call`, `topology` and `status` besides |
//! | `front` | the way from a request to the gateway and back, and who calls |
//! | `agents` | heartbeats in batches and the members, for node-local agents |
//! | `caller` | who calls: job, attempt, stamp |
//! | `origin` | where a registration comes from |
//! | `own_task` | that a caller who proved to be a task speaks of that one |
//! | `speaker` | for whom a connection speaks |
//! | `presence` | tasks that have registered and not sent a heartbeat yet |
//! | `attempt` | how often gRPC has made a call before |
//! | `names` | by which names a caller knows tasks |
//! | [`push`] | errors told to tasks by calling them |
//! | `foreign` | calls for other services of TensorFlow, which come here all the same |
//! | `answer` | answers of the state machine taken apart, for all dialects |
//! | `status` | the one table from refusals and outages to codes, texts and payloads |
//! | `text` | the exact texts |
//! | `payload` | payload bytes and the trailer that carries them |
//! | `manners` | how each call may end when its node stops |
//! | `routes` | all dialects as the routes of one port |
//! | `direct` | the same past the router: calls that are made often, in one piece |
//! | `front_end` | the protocol as the binary composes it |

mod agents;
mod answer;
mod attempt;
mod beat_sets;
mod caller;
mod dialect;
mod direct;
mod foreign;
mod front;
mod front_end;
mod l;
mod manners;
mod n;
mod names;
mod origin;
mod own_task;
mod payload;
mod presence;
pub mod push;
mod routes;
mod speaker;
mod status;
mod t;
mod text;

pub use front_end::Coordination;
pub use manners::MANNERS;
pub use payload::{BARRIER_KEY, COORDINATION_KEY, MISMATCH_KEY};
