//! The coordination services of JAX and TensorFlow, as their unmodified clients know them.
//!
//! Two wire dialects are served on one port; the path tells them apart:
//!
//! * **N**, `xla.coordination.CoordinationService`: jaxlib 0.10.0 and later;
//! * **T**, `tensorflow.CoordinationService`: jaxlib up to 0.9.2, and TensorFlow.
//!
//! A call is decoded to a command of the domain, given to the gateway, and its answer is encoded.
//! `README.md` beside this crate has a table of all calls and the list of differences from upstream.
//!
//! # What this crate does not know
//!
//! * Rules: which registration is accepted, when a barrier passes, what an error does to others. A
//!   front end that asks about the state of a task has taken a rule out of the state machine.
//! * Replication: who leads, what is in a log. It sees a [`tripod_gateway::Gateway`] and nothing below.
//! * Ports, signals, files: the binary binds sockets and hands them to [`serve`].
//!
//! # Invariants
//!
//! * A poll for errors is never answered OK (the client would end its process), and the cluster's
//!   own trouble ends it CANCELLED, the one code that does no harm.
//! * An error that the service made carries the coordination payload unless upstream's does not; an
//!   outage carries none: that is how clients decide whether to try again.
//! * A reply repeats the key as it was asked for, not as it is stored.
//! * Bytes of a connection whose authority is in order are not changed.
//!
//! # Modules
//!
//! | module | holds |
//! |---|---|
//! | `n`, `t` | one dialect each: `decode`, `encode`, `service` |
//! | `front` | the way to the gateway and back, and which job a port is about |
//! | `status` | the one table from refusals and outages to codes, texts and payloads |
//! | `text` | the exact texts |
//! | `payload` | payload bytes and the trailer that carries them |
//! | [`authority`] | mends `:authority` values before h2 sees them |
//! | `overlong` | the answer to messages beyond the decode limit |
//! | `deadline` | the answer to calls whose time is over |
//! | `server` | routes, transport settings, serving a listener |

pub mod authority;
mod deadline;
mod dialect;
mod front;
mod n;
mod overlong;
mod payload;
mod server;
mod status;
mod t;
mod text;

pub use front::JobBinding;
pub use overlong::MESSAGE_BYTES_MAX;
pub use payload::{BARRIER_KEY, COORDINATION_KEY, MISMATCH_KEY};
pub use server::{routes, serve, server};
