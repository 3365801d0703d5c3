//! Reports: what a run did, what was done to it, and what the checkers say; and the sum of many runs.
//!
//! # Modules
//! | module | what |
//! |---|---|
//! | `run`, `markdown` | the report of one run, as JSON and as Markdown |
//! | `verdict` | the one word about it |
//! | `outage` | the longest time without an acknowledged write |
//! | `machine` | where it took place |
//! | `totals` | many runs together |

mod machine;
mod markdown;
mod outage;
mod run;
#[cfg(test)]
mod tests;
mod totals;
mod verdict;

pub use machine::Machine;
pub use outage::Outage;
pub use run::{About, FORMAT, Outcomes, Report};
pub use totals::{Scenario, Totals};
pub use verdict::Verdict;
