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
//! * Ports, signals, files: the binary binds sockets and hands them to [`serve`], and runs [`push::run_over`].
//!
//! # Invariants
//!
//! * A poll for errors is never answered OK (the client would end its process), and the cluster's
//!   own trouble ends it CANCELLED, the one code that does no harm.
//! * An error that the service made carries the coordination payload unless upstream's does not; an
//!   outage carries none: that is how clients decide whether to try again.
//! * UNAVAILABLE says when to come again: never after an error of the domain, soon after an outage.
//! * A reply repeats the key as it was asked for, not as it is stored.
//! * Bytes of a connection whose authority is in order are not changed, until its node stops.
//! * A planned stop cuts no call that must not be executed twice: it is answered before its connection ends.
//!
//! # Modules
//!
//! | module | holds |
//! |---|---|
//! | `n`, `t` | one dialect each: `decode`, `encode`, and `service`, which names the two ends of every call |
//! | `l` | the dialect without payloads and with time-outs of its own; `held`, `topology` and `status` besides |
//! | `front` | the way from a request to the gateway and back, and who calls |
//! | `agents` | heartbeats in batches and the members, for node-local agents |
//! | `caller` | who calls: job, attempt, stamp |
//! | `speaker` | for whom a connection speaks |
//! | `presence` | tasks that have registered and not sent a heartbeat yet |
//! | `label` | a job named by the host that was dialled |
//! | `attempt` | how often gRPC has made a call before |
//! | `names` | by which names a caller knows tasks |
//! | [`push`] | errors told to tasks by calling them |
//! | `foreign` | calls for other services of TensorFlow, which come here all the same |
//! | `answer` | answers of the state machine taken apart, for all dialects |
//! | `status` | the one table from refusals and outages to codes, texts and payloads |
//! | `text` | the exact texts |
//! | `payload` | payload bytes and the trailer that carries them |
//! | [`connection`] | frames between socket and h2: mends `:authority` values, ends connections |
//! | `stop` | the phases of a planned stop |
//! | `followed`, `under_way` | around all services: which calls a stop waits for, and what it does to the others |
//! | `holding` | around all services: how many bytes each call holds |
//! | `overlong` | middleware: the answer to messages beyond the decode limit |
//! | `deadline` | middleware: the answer to calls whose time is over |
//! | `server` | routes, transport settings, serving a listener |

mod agents;
mod answer;
mod attempt;
mod caller;
pub mod connection;
mod deadline;
mod dialect;
mod followed;
mod foreign;
mod front;
mod holding;
mod l;
mod label;
mod n;
mod names;
mod overlong;
mod payload;
mod presence;
pub mod push;
mod server;
mod speaker;
mod status;
mod stop;
mod t;
mod text;
mod under_way;

pub use deadline::given as given_time;
pub use followed::{Followed, REFUSAL_BYTES};
pub use holding::{Content, Received, enter as enter_call};
pub use overlong::MESSAGE_BYTES_MAX;
pub use payload::{BARRIER_KEY, COORDINATION_KEY, MISMATCH_KEY};
pub use server::{routes, serve, serve_through, server};
pub use stop::{Stop, Stopping};
// What agents count bytes and connections by: they do not see the gateway.
pub use tripod_gateway::{
    Budget, CALL_BYTES, CallBytes, CallerConnection, Charge, ConnectionLimits, Connections, Contact, Making,
    MemoryLimits, Reserved, Short,
};
pub use under_way::{Answer, Cut, UnderWay};
