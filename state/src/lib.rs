//! The pure, deterministic state machine of a Tripod cluster.
//!
//! A [`State`] holds every job with its tasks, keys and barriers, the clients' sessions, and the
//! nodes with their addresses. [`State::apply`] is the only way to change it: a [`Command`] from the log goes
//! in, a [`Reply`] and [`Effect`]s come out. Everything else looks. The rules are those of the
//! coordination services that JAX and TensorFlow clients expect, down to the order of the checks.
//!
//! # What it does not know
//!
//! No wire format and no status code: a [`Fault`] carries facts, a [`Class`] and plain words, and each front end has
//! the codes and texts of its protocol. No log, disk or network. No clock and no randomness: time and random bits come with the
//! commands. No timers: whoever leads watches the time and *proposes* that something expired, and
//! apply checks it again. No waiting: a call that waits holds a [`Ticket`] and asks
//! [`State::resolve`] whenever an effect touches the ticket's [`Topic`], on whatever node it is.
//!
//! # Invariants
//!
//! * Equal logs make equal states, replies, effects and digests on every replica.
//! * `apply` is total: it does not panic on any input, and a refusal is a reply.
//! * A command concerns one job; nothing of a job is visible in another.
//! * Whenever a ticket's outcome comes into being, the command that made it has an effect with the
//!   ticket's topic.
//! * Every table that grows is bounded by a constant of [`limits`]; beyond it a command is refused
//!   and the state stays as it was.
//! * [`State::from_records`] of [`State::records`] is the same state. Counts, indexes and sums are
//!   derived again and not stored.
//! * Cloning a state is O(1), and an arrival at a barrier costs the same however many wait there.
//!
//! # Map
//!
//! * [`command`], [`fault`], [`wait`], [`context`], [`ids`]: the vocabulary.
//! * `apply`: the one match over all commands, and exactly-once execution. `bounds`: which lists are too long to be
//!   proposed; `nesting`: what is too deep to be read.
//! * `memory`: what everything takes; [`need`]: what a command would take besides.
//! * `query`, `resolve`: reads, and the outcomes of waits.
//! * [`job`]: namespaces; `job::turn` is one command's work on one job, to which the domains add
//!   their methods, and `job::domains` lists what a job keeps for them.
//! * [`task`]: registration, leaving, errors and whom they concern, heartbeats, polls, the living,
//!   devices, watches.
//! * [`barrier`]: instances with counters, their members, their ends, and who waits for whom.
//! * [`runtime`]: the service of JAX clients older than the coordination service.
//! * [`ray`]: the scheduler of tasks and objects.
//! * [`mindspore`]: the schedulers of MindSpore's clusters.
//! * [`mars`]: sessions, graphs of tensors and frames and of their chunks, mutable tileables.
//! * [`kv`], [`session`], [`member`]: keys, remembered replies, nodes and the change among them.
//! * [`identity`]: who proposed a command, and what only the state can judge of that.
//! * [`token`]: what bearers of tokens may call as.
//! * [`level`]: which commands all members understand: one row for each.
//! * [`events`]: what happened to jobs and to the cluster, for people.
//! * [`snapshot`]: a state as records. [`restore`]: a saved state as the first of a new cluster. [`limits`]: every
//!   bound. [`planted`]: bugs for builds that test the testers.

mod apply;
pub mod barrier;
mod bounds;
mod canonical;
pub mod command;
pub mod context;
pub mod events;
pub mod fault;
pub mod identity;
pub mod ids;
pub mod job;
pub mod kv;
pub mod level;
pub mod limits;
pub mod mars;
pub mod member;
mod memory;
pub mod mindspore;
pub mod need;
mod nesting;
pub mod planted;
mod query;
pub mod ray;
mod resolve;
pub mod restore;
pub mod runtime;
pub mod session;
pub mod snapshot;
pub mod state;
pub mod task;
pub mod token;
pub mod wait;

pub use command::{Answer, Command, Effect, Envelope, Reply, Scope, Stamp};
pub use context::ApplyContext;
pub use fault::{Asked, BarrierFault, Class, Fault, Leaving};
pub use state::State;
pub use wait::{DomainId, Ticket, Topic};
