//! Reports: what a run did, what was done to it, and what the checkers say; and the sum of many runs.
//!
//! # Modules
//! | module | what |
//! |---|---|
//! | `run`, `markdown` | the report of one run, as JSON and as Markdown |
//! | `verdict` | the one word about it |
//! | `outage` | times without an acknowledged write, and the longest |
//! | `picture` | faults and such times beside each other, as SVG |
//! | `timeline` | every fault, with the time without service that it fell into |
//! | `bound` | what had to happen within which time |
//! | `promise` | what each checker stands for |
//! | `machine`, `program` | where it took place, and what was judged |
//! | `totals` | many runs together |

mod bound;
mod machine;
mod markdown;
mod outage;
mod picture;
mod program;
mod promise;
mod run;
#[cfg(test)]
mod tests;
mod timeline;
mod totals;
mod verdict;

pub use bound::Bound;
pub use machine::Machine;
pub use outage::{OUTAGE_MIN, OUTAGES_MAX, Outage};
pub use program::Program;
pub use run::{About, FORMAT, Outcomes, Report, TIMELINE};
pub use timeline::{Episode, TIMELINE_MAX};
pub use totals::{Scenario, Totals};
pub use verdict::Verdict;
