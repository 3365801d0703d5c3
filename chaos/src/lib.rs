//! Named runs against clusters of real processes: faults, then recovery, then judgement. A library for tests, and the
//! `tripod-chaos` binary, which also runs the simulation and the benchmarks.
//!
//! What runs consist of lies beside this crate: clusters, faults and workloads in `tripod-processes`, what judges a run in
//! `tripod-checkers`, whole clusters in one thread in `tripod-simulation`, comparisons with peers in `tripod-bench`.
//!
//! # What this crate does not know
//! The inside of a node, and how a fault is done.
//!
//! # Modules
//! | module | what |
//! |---|---|
//! | [`scenario`] | which faults meet which clients for how long, and what has to hold then |

pub mod scenario;
