//! The scheduler of tasks and objects that workers, drivers and object stores speak to (Ray, August 2016).
//!
//! A job has at most one. It holds operations, objects with their references and places, functions, exports, and
//! what workers and stores are still to be told ([`Order`]). Who leads plans ([`Ray::plan`]), and says in the log
//! what it planned; apply checks that it still holds.

pub mod ids;
pub mod view;

mod answer;
mod command;
mod order;
pub(crate) mod record;
mod refusal;

pub use answer::Answer;
pub use command::{
    Argument, Assignment, Command, Decision, Origin, Peer, Previous, Registration, Request, Role, Run, Stamp,
    Task, TaskOptions,
};
pub use order::{Order, Source};
pub use record::Ray;
pub use refusal::Refusal;
