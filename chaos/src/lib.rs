//! Everything that is hard on a cluster: benchmarks against peers now; simulation, faults, workloads
//! and checkers as they come. A library for tests, and the `tripod-chaos` binary.
//!
//! # What this crate does not know
//! The inside of a node. It starts the real binary, speaks the public wire, and looks at processes
//! from outside: what it finds, a user could find.
//!
//! # Invariants
//! * Every process that is started here is ended here, by its id, also on errors and on Ctrl-C.
//! * Data lie on a real disk (the system's temporary directory), never in memory: a benchmark of
//!   durable writes must pay for them.
//! * Systems are compared in the same run, in interleaved rounds, by the ratio within each round.
//!
//! # Modules
//! | module | what |
//! |---|---|
//! | [`cluster`] | start, kill, restart and pause nodes; also for tests of other crates |
//! | [`mod@bench`] | comparisons with etcd and with jaxlib's own service |

pub mod bench;
pub mod cluster;
