//! Everything that is hard on a cluster: faults, attacks, workloads, checkers, a simulation, and benchmarks against
//! peers. A library for tests, and the `tripod-chaos` binary.
//!
//! # What this crate does not know
//! The inside of a node, except in [`simulation`], which runs nodes in its own process. Everything else starts
//! the real binary, speaks the public wire, and looks at processes from outside: what it finds, a user could find.
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
//! | [`proxy`] | a network between processes that can be made bad |
//! | [`fault`] | what is done to a cluster while clients use it |
//! | [`attack`] | what hostile and broken clients do, and a well-behaved one beside them |
//! | [`workload`] | clients that use it meanwhile, and write down what they were told |
//! | [`scenario`] | named runs: faults, then recovery, then judgement |
//! | [`simulation`] | whole clusters in one thread, from one seed |
//! | [`mod@bench`] | comparisons with etcd and with jaxlib's own service |
//! | [`history`] | what the clients of a run did and saw |
//! | [`check`] | whether a history keeps every promise |
//! | [`report`] | what a run did and found, for people and for programs |

pub mod attack;
pub mod bench;
pub mod check;
pub mod cluster;
pub mod fault;
pub mod history;
pub mod proxy;
pub mod report;
pub mod scenario;
pub mod simulation;
pub mod workload;
