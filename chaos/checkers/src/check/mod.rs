//! Checkers: each looks at a [`History`] and says whether one promise was kept.
//!
//! A checker never trusts the cluster and never guesses: what the history leaves open is allowed. So a
//! violation is proof, and a run without one proves only as much as its history shows: how many operations a
//! checker examined stands in its answer.
//!
//! # Modules
//! | module | promise |
//! |---|---|
//! | [`linear`] | registers behave as one copy, each key for itself |
//! | [`list`] | append lists have one order, lose nothing, repeat nothing |
//! | [`counter`] | increments count once however often they were sent |
//! | [`barrier`] | nobody passes before all have come; all pass or all fail; the missing are missing |
//! | [`incarnation`] | an old life of a task is never acknowledged after a newer one |
//! | [`heartbeat`] | who beats is never declared dead, who is silent is |
//! | [`digest`] | replicas that applied the same log are equal |
//! | [`lock`] | one holder for each token, and no holder that was overtaken writes |
//! | [`kept`] | what was acknowledged is there at the end |
//! | [`scheduled`] | each task that was accepted has the right result, or a reason why not |
//! | [`mars`] | graphs of Mars come to one end and what they make is right; mutable tensors lose nothing and take nothing stale |
//! | [`mindspore`] | nodes of MindSpore have one rank each, and hear in one order what all were told |
//! | [`release`] | whoever reads a key that was written is answered soon |

pub mod barrier;
pub mod counter;
pub mod digest;
mod finding;
pub mod heartbeat;
pub mod incarnation;
pub mod kept;
pub mod linear;
pub mod list;
pub mod lock;
pub mod mars;
pub mod mindspore;
pub mod release;
mod rules;
pub mod scheduled;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use finding::{Checked, Conclusion, VIOLATIONS_TOLD, Violation};
pub use rules::{HeartbeatRule, ReleaseRule, Rules};

use crate::history::History;

/// Every checker, in the order of the table above.
#[must_use]
pub fn check_all(history: &History, rules: &Rules) -> Vec<Checked> {
    vec![
        linear::check(history, rules),
        list::check(history, rules),
        counter::check(history, rules),
        barrier::check(history, rules),
        incarnation::check(history, rules),
        heartbeat::check(history, rules),
        digest::check(history, rules),
        lock::check(history, rules),
        kept::check(history, rules),
        release::check(history, rules),
        scheduled::check(history, rules),
        mindspore::check(history, rules),
        mars::check(history, rules),
    ]
}
