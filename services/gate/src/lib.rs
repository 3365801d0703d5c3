//! Who may call what: every RPC has a row, and one function decides by it before any byte of a body is read.
//!
//! | | |
//! |---|---|
//! | [`Rpc`] | everything that can be called, made by `build.rs` from the files of `proto/` |
//! | [`row`] | what a row says of each [`Role`]: one exhaustive match, so an RPC without a row does not compile |
//! | [`decide`] | allowed, refused for a reason, or to be decided where the command is applied |
//! | [`Gate`], [`Guarded`] | the same in front of a port: off, counting what it would refuse, or refusing |
//!
//! Effects are authorised, not requests: what needs the state or the body is a [`Check`] that goes with the call, and is made by who
//! applies it. The gate refuses only what no state could allow.
//!
//! # What this crate does not know
//!
//! * How it was proved who calls: whoever accepts a connection puts an `Arc<Caller>` among the extensions of its requests.
//! * What a message says, whether a job exists, the state.
//! * Which job a call is about that names none, on a port that has none: that is found later, and checked then.
//!
//! # Modules
//!
//! | module | holds |
//! |---|---|
//! | `rpc` | [`Rpc`], and paths |
//! | `role`, `right`, `row` | the columns of the table, what stands in a cell, a row |
//! | `rows` | the table |
//! | `port` | where a service is served |
//! | `check` | what is left to be checked |
//! | `caller`, `grant` | who calls, and what was granted to that one |
//! | `decide` | the decision |
//! | `dialect` | how figures call an RPC |
//! | `mode`, `gate`, `tally` | a gate in front of a port, and what it counts |
//! | `guarded` | the same as a service of tower |
//! | [`page`] | the table as documentation has it |

mod caller;
mod check;
mod decide;
mod dialect;
mod gate;
mod grant;
mod guarded;
mod mode;
pub mod page;
mod port;
mod right;
mod role;
mod row;
mod rows;
mod rpc;
mod tally;

pub use caller::Caller;
pub use check::{Check, Checks};
pub use decide::{Call, Decision, Reason, Subject, decide};
pub use gate::{Gate, NamedJob};
pub use grant::{GRANTED_JOBS_MAX, Grant, TooMany};
pub use guarded::{GateLayer, Guarded};
pub use mode::Mode;
pub use port::Port;
pub use right::Right;
pub use role::Role;
pub use row::Row;
pub use rows::row;
pub use rpc::*;
pub use tally::{KINDS_COUNTED_MAX, Refusals, Tally};
