//! The pure, deterministic state machine of a Tripod cluster.

pub mod barrier;
pub mod command;
pub mod context;
pub mod fault;
pub mod ids;
pub mod job;
pub mod kv;
pub mod limits;
pub mod member;
pub mod session;
pub mod snapshot;
pub mod state;
pub mod task;
pub mod wait;

pub use command::{Answer, Command, Effect, Envelope, Reply, Scope, Stamp};
pub use context::ApplyContext;
pub use fault::{Asked, BarrierFault, Fault, Leaving};
pub use state::State;
pub use wait::{Ticket, Topic};
