//! Clusters of real processes, what is done to them, and the clients that use them meanwhile.
//!
//! # What this crate does not know
//! The inside of a node: it starts the real binary, speaks the public wire, and looks at processes from outside. What it
//! finds, a user could find. Nor which faults come together in a run, and what is judged then.
//!
//! # Invariants
//! * Every process that is started here is ended here, by its id, also on errors and on Ctrl-C.
//! * Data lie on a real disk (the system's temporary directory), never in memory: a benchmark of
//!   durable writes must pay for them.
//!
//! # Modules
//! | module | what |
//! |---|---|
//! | [`cluster`] | start, kill, restart and pause nodes; also for tests of other crates |
//! | [`proxy`] | a network between processes that can be made bad |
//! | [`fault`] | what is done to a cluster while clients use it |
//! | [`open_files`] | how many files may be open, before thousands of sockets are |
//! | [`attack`] | what hostile and broken clients do, and a well-behaved one beside them |
//! | [`played`] | workers that make chunks for Mars, as processes of the program that runs all this |
//! | [`workload`] | clients that use it meanwhile, and write down what they were told |

pub mod attack;
pub mod cluster;
pub mod fault;
pub mod open_files;
pub mod played;
pub mod proxy;
pub mod workload;
