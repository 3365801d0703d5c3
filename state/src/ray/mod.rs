//! The scheduler of tasks and objects that workers, drivers and object stores speak to (Ray, August 2016).
//!
//! A job has at most one. It holds operations, objects with their references and places, functions, exports, and
//! what workers and stores are still to be told ([`Order`]). Who leads plans ([`Ray::plan`]), and says in the log
//! what it planned; apply checks that it still holds.

pub mod ids;
pub mod limits;
pub mod view;

mod act;
mod alias;
mod answer;
mod apply;
mod assign;
mod check;
mod command;
mod delivery;
mod expire;
mod export;
mod function;
mod get;
mod index;
mod lineage;
mod lost;
mod object;
mod operation;
mod order;
mod outbox;
pub(crate) mod part;
mod peers;
mod plan;
mod query;
mod queue;
mod ready;
mod reconcile;
pub(crate) mod record;
mod references;
mod refusal;
mod register;
mod release;
mod report;
mod retry;
mod session;
mod submit;
mod tree;

pub use answer::Answer;
pub use command::{
    Algorithm, Argument, Assignment, Command, Decision, Origin, Peer, Previous, Registration, Request, Role,
    Run, Stamp, Task, TaskOptions,
};
pub use order::{Order, Source};
pub use record::Ray;
pub use refusal::Refusal;
