//! What the clients of a run did and saw, and whether that keeps every promise.
//!
//! # What this crate does not know
//! Clusters, processes, faults: a history comes from real processes, from the simulation or from a file, and is judged alike.
//!
//! # Modules
//! | module | what |
//! |---|---|
//! | [`history`] | what the clients of a run did and saw |
//! | [`check`] | whether a history keeps every promise |
//! | [`export`] | histories for the checkers of others |
//! | [`report`] | what a run did and found, for people and for programs |

pub mod check;
pub mod export;
pub mod history;
pub mod report;
