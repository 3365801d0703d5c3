//! Who is missing in a job, since when, why, and whether it is the cluster's own fault: plain facts in, findings and text out.
//!
//! Does not know: any wire, any clock, how facts are gathered. What is judged depends on the facts alone, so a transcript is a
//! test of it.
//!
//! Invariants:
//! * Programs are not blamed while the coordinator is the cause: without a quorum, without a leader, with a slow disk.
//! * A finding is `certain` only by the word of the replicated state, or of whoever started a process; what one node says of
//!   another, or a silence, is `likely`.
//! * Nobody is blamed for a wait that a healthy program has, too: each rule has its patience.
//!
//! | module | what |
//! |---|---|
//! | `facts` | what goes in |
//! | `code`, `finding` | what comes out |
//! | `rules` | from one to the other, in an order that is a contract |
//! | `safety` | how many nodes may be lost, and whether a change of members is safe |
//! | `render`, `json` | for people and for programs |
//! | `words` | times, ages and ranges as they are printed |

mod code;
mod facts;
mod finding;
mod json;
mod render;
mod rules;
mod safety;
mod words;

pub use code::Code;
pub use facts::{
    Call, CallKind, Calls, Cluster, End, Facts, Held, HeldState, Job, Key, Memory, Node, NodeWord, Origin,
    Outcome, Patience, Place, PlaceKind, Said, Standing, Task, TaskError,
};
pub use finding::{Diagnosis, Finding, Sure, Where};
pub use rules::diagnose;
pub use safety::{Member, Safety, safety};
