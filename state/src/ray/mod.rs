//! The scheduler of tasks and objects that workers, drivers and object stores speak to (Ray, August 2016).
//!
//! A job has at most one. It holds operations, objects with their references and places, functions, exports, and
//! what workers and stores are still to be told ([`Order`]). Who leads plans ([`Ray::plan`]), and says in the log
//! what it planned; apply checks that it still holds. What upstream decided is decided as upstream did; what it
//! ended its process for is refused; and what it had no answer to, processes that die, is answered here.
//!
//! # Rules
//!
//! * A reference has one owner: a process that says who it is, a task that waits, the object that it is in, a
//!   delivery, the object's own creation, or nobody in particular. A count is the sum over all owners. When a
//!   process ends, what it owned goes; what nobody owns is never reclaimed.
//! * An object ends when nothing refers to any id that means it. It is referred to until then: an id that means
//!   nothing yet has the reference of its creation.
//! * A task has one current attempt. It is over when its end was reported and each of its results came to be, or
//!   cannot come to be any more. An attempt whose worker dies is repeated a few times.
//! * An object without a copy is made again by its task, as long as that is remembered, and its arguments before
//!   it; otherwise it fails, with one reason, and so do the tasks that need it. The first value of an object counts.
//! * Whoever waits at a store for an object is not asked again: what was on its way there, or was lost there, comes
//!   when it can, or the reason comes why it does not.
//! * Of tasks that can run, one of the highest priority is the next, and only a worker that has what a task needs is
//!   given it. A task that nobody could run waits.
//! * What was cancelled ends as cancelled, whatever is said of it later.
//! * A refusal changes nothing. Everything that grows is bounded ([`limits`]), and what is over is forgotten, the
//!   newest of it last: a constant number of live objects needs constant memory.
//!
//! # Map
//!
//! | module | what |
//! |---|---|
//! | `command`, `answer`, `refusal`, `order`, [`view`], [`ids`] | the words |
//! | `apply`, `act`, `session` | the match over all commands; one command's work; exactly-once execution |
//! | `record`, `object`, `operation`, `peers`, `function`, `export`, `outbox` | what is kept |
//! | `index`, `tree`, `queue`, `lineage` | what is derived from that, so that nothing is searched |
//! | `references`, `release`, `alias`, `repoint`, `ready`, `delivery`, `get` | objects: owners, ends, meanings, places |
//! | `register`, `submit`, `calls`, `plan`, `need`, `unfit`, `assign`, `capacity`, `report` | workers, tasks and what tasks call |
//! | `resources`, `cancel`, `describe`, `graph_task` | what tasks need and workers have; what is not to run any more; what objects are; tasks of graphs |
//! | `expire`, `retry`, `lost`, `fetch`, `reconcile` | what dies, what is tried again, what is lost, what does not come |
//! | `promise` | objects that stores bring by themselves |
//! | `incident` | what happened that people want to know |
//! | `query`, `check`, `part`, `size`, [`limits`] | what is shown; what must hold; snapshots; what it takes of memory; bounds |

pub mod ids;
pub mod limits;
pub mod view;

mod act;
mod alias;
mod answer;
mod apply;
mod assign;
mod calls;
mod cancel;
mod capacity;
mod check;
mod command;
mod delivery;
mod describe;
mod expire;
mod export;
mod fetch;
mod function;
mod get;
pub(crate) mod graph_task;
mod incident;
mod index;
mod lineage;
mod lost;
mod need;
mod object;
mod operation;
mod order;
mod outbox;
pub(crate) mod part;
mod peers;
mod plan;
mod promise;
mod query;
mod queue;
mod ready;
mod reconcile;
pub(crate) mod record;
mod references;
mod refusal;
mod register;
mod release;
mod repoint;
mod report;
mod resources;
mod retry;
mod session;
mod size;
mod submit;
mod tree;
mod unfit;

pub use answer::Answer;
pub use command::{
    Algorithm, Argument, Assignment, Command, Decision, FetchFailure, Origin, Peer, Previous, Registration,
    Request, Role, Run, Stamp, Task, TaskCall, TaskOptions,
};
pub use describe::Description;
pub(crate) use incident::Incident;
pub use order::{Order, Source};
pub use record::Ray;
pub use refusal::Refusal;
pub use resources::{Needs, Offers};
pub use unfit::Unfit;
