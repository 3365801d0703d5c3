//! Workers and drivers of the scheduler, in Rust.
//!
//! A [`Worker`] executes functions that are registered with it under their names. A [`Driver`] submits [`Task`]s and
//! reads what comes of them. Both register with the scheduler of a job, through any node; objects lie in the store of
//! their machine, and travel between stores without them.
//!
//! What this crate does not know: who leads, where tasks run, when objects are freed, or what happens to those that
//! are lost: the scheduler decides. It only keeps the rules of a process: who holds which references.
//!
//! Invariants:
//! * The calls of a process take effect in the order in which they were made, each once.
//! * An attempt of a task is executed once by a worker, however often it is sent.
//! * A function that panics is a failed task, and not a dead worker.
//! * A worker that nobody has heard for as long as it may be silent begins nothing.
//! * One task runs at a time; while it waits for others, another one does. What would wait too long is given back.
//! * A task that was cancelled is told so; if it does not end in time, its worker ends.
//! * A reference is given up once, and after everything that needs it.
//! * A task sees no change that another one made to a reusable variable: what it used is made anew before the next one
//!   begins, and while two run beside each other each has an instance of its own.
//!
//! | module | what |
//! |---|---|
//! | `value` | Rust values as objects; `failed`: errors as objects |
//! | `process` | what workers and drivers have in common: submit, put, get, wait |
//! | `again` | puts of a task that runs again |
//! | `outbox` | the calls of a process, in order and many at a time |
//! | `reference`, `task` | counted references; a task before it is submitted |
//! | `store` | the object store of this machine |
//! | `driver` | a driver |
//! | `worker`, `function`, `context` | a worker, its functions, and what a running task can do |
//! | `reusable` | variables that a worker makes once and its tasks use; `caught`: panics of functions |
//! | `beat` | heartbeats |
//! | `demo` | functions for trying out, tests and benchmarks |

mod again;
mod beat;
mod caught;
mod config;
mod context;
pub mod demo;
mod driver;
mod error;
mod failed;
mod function;
mod id;
mod outbox;
mod process;
mod reference;
mod reusable;
mod store;
mod task;
pub mod value;
mod worker;

pub use config::Config;
pub use context::Context;
pub use driver::Driver;
pub use error::{CallError, GetError, Lost, TaskError};
pub use function::{Output, Plain};
pub use id::ObjectId;
pub use process::{BeginError, PutError};
pub use reference::ObjectRef;
pub use reusable::{ExportError, Reusable, ReusableError, ReusableGuard};
pub use task::Task;
pub use tripod_client::Offers;
pub use value::Blob;
pub use worker::{Worker, WorkerError};
