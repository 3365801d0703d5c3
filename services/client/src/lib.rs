//! The Rust client of `tripod.v1`.
//!
//! A [`Client`] knows the client addresses of a cluster's nodes, connects when it first needs to, and
//! moves on to the next node when one cannot answer. Writes go through a session: every one carries a
//! stamp, so that repeating it after a lost answer never applies it twice.
//!
//! The second call over a connection opens a stream (`tripod_calls`), where the node has them, by which calls go as soon as
//! the node has granted some: an op of a frame costs a fifth of a call of its own. Messages above 64 KiB, older nodes and whatever was certainly not sent go by
//! calls of their own, so nothing else is seen of it; a stream that breaks is to its calls what a broken connection is.
//!
//! What this crate does not know: how the state machine works, how nodes agree, or who leads. It only
//! sees the wire types of [`wire`].
//!
//! Invariants:
//! * A write is repeated only with the stamp of its first attempt, and never under a new one once an
//!   earlier attempt may have been executed.
//! * No call outlives the configured time-out by more than one scheduling delay.
//! * Every error names the endpoint, the phase, the cause and what to do next.
//!
//! | module | what |
//! |---|---|
//! | `config` | addresses and the time-out, checked |
//! | `client` | the entry point |
//! | `endpoint`, `nodes` | one node's address and its cached connection; all of them, and whom to ask first |
//! | `link` | a connection, and whether calls over it go by a stream |
//! | `call` | the loop over nodes with back-off |
//! | `session` | stamps and the acknowledged floor |
//! | `stamped` | writes that take effect once |
//! | `kv`, `jobs`, `events`, `cluster`, `diagnose`, `levels`, `mars`, `mindspore`, `snapshots`, `tokens` | the calls |
//! | `scheduler` | the calls of workers, drivers and object stores |
//! | `error` | what can go wrong, by who can act |

mod call;
mod client;
mod cluster;
mod config;
mod diagnose;
mod endpoint;
mod error;
mod events;
mod jobs;
mod kv;
mod levels;
mod link;
mod mars;
mod mindspore;
mod nodes;
mod scheduler;
mod session;
mod snapshots;
mod stamped;
mod tokens;

pub use client::Client;
pub use cluster::NodeAnswer;
pub use config::Config;
pub use endpoint::{Connect, Connecting};
pub use error::{Attempt, Error, Phase};
pub use events::{Follower, News};
pub use jobs::Jobs;
pub use kv::{Condition, Consistency, Entry, Kv, Page, Written};
pub use mars::{Mars, MarsGraphKind};
pub use mindspore::Mindspore;
pub use nodes::Nodes;
pub use scheduler::{Info, Offers, Registration, Scheduler};
pub use snapshots::Download;

/// The messages of `tripod.v1`, for answers that are passed on as they are.
pub use tripod_proto::tripod::v1 as wire;

/// Those of `mars.v1`.
pub use tripod_proto::mars::v1 as mars_wire;
