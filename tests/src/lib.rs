//! Tests of whole programs: real JAX clients, real node processes, real sockets.
//!
//! The library holds what tests of processes share; the program `tripod-clients` runs the real-client
//! tests, and `tests/` the ones that need no Python. Everything goes through the wire or the command
//! line.
//!
//! What this crate does not know: any type of the state machine, of replication or of a front end.
//!
//! Invariants:
//! * A fault is injected when a condition holds (a step was reached, a connection exists), never after
//!   a sleep.
//! * Every process ends with the value that owns it, also when a test fails.
//!
//! | module | what |
//! |---|---|
//! | [`dev`] | a cluster as `tripod dev` starts it |
//! | [`python`] | a client script with its steps |
//! | [`wait`] | waiting for a condition, with a deadline |
//! | [`jobs`] | creating and looking at jobs |
//! | [`terminal`] | commands as an operator types them |
//! | [`launcher`] | nodes that are started in another way than the first time |
//! | [`counting`] | clients that know exactly what was acknowledged |
//! | [`server`] | one server process with wrong flags |
//! | [`folders`] | directories that cannot be written to |

pub mod counting;
pub mod dev;
pub mod folders;
pub mod jobs;
pub mod launcher;
pub mod python;
pub mod server;
pub mod terminal;
pub mod wait;
