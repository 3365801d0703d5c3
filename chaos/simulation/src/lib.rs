//! Whole clusters in one thread, from one seed.
//!
//! Every node is the real one (raft, state, gateway, peer transport, front ends as gRPC servers, and that of MindSpore at
//! ports of its own); its network, disk, clock and chance are simulated. The seed decides the size of the cluster, its
//! timing, what goes wrong and when, and what the clients do; the same seed gives the same run, event by event. First
//! faults are injected, then all of them end and everything must come to rest: a leader, an answer to every call, equal
//! nodes. Rules judge all the while.
//!
//! # What it does not know
//! The inside of a node: it looks at a node through its handle, as its front ends do, and at its wire.
//!
//! # Invariants
//! * One thread, one run, and for a run that is to be repeated one process. Nothing waits for real time, and nothing
//!   depends on it.
//! * Nobody iterates over a hash map, and every `select!` says in which order it looks.
//! * A panic is a violation.
//!
//! | module | what |
//! |---|---|
//! | `run`, `options`, `report`, `panics` | one seed, from start to verdict |
//! | `plan`, `fault`, `nemesis`, `stale_leader` | what the seed decides, and doing it |
//! | `node`, `network`, `clock` | a node, its network and its clock as a simulated host |
//! | `client`, `workload` | the clients |
//! | `watcher`, `observation`, `invariant` | what is seen of nodes, and the rules |
//! | `witness`, `judged`, `event_log` | where all of it is told |
//! | `planted` | mistakes made on purpose |
//! | `command` | many seeds, each in a process of its own |

mod client;
mod clock;
mod command;
mod event_log;
mod fault;
mod invariant;
mod judged;
mod nemesis;
mod network;
mod node;
mod observation;
mod options;
mod panics;
mod plan;
mod planted;
mod report;
mod run;
mod stale_leader;
mod watcher;
mod witness;
mod workload;

pub use command::{SimulationArgs, command};
pub use event_log::EventLog;
pub use invariant::one_membership::OneMembership;
pub use judged::Judged;
pub use observation::{SimTime, Violation};
pub use options::Options;
pub use planted::Planted;
pub use report::SeedReport;
pub use run::run_seed;

/// What `tripod-chaos run` calls it, and `list`.
pub const NAME: &str = "simulation";
