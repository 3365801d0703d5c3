//! A closed-loop load generator: N clients, each of which sends its next request when the previous
//! one is answered. Used by `tripod bench` against a running cluster, and by the benchmarks of the
//! chaos crate, which drive Tripod and its peers with this same code.
//!
//! # What this crate does not know
//! How a cluster is started, killed or compared with another one: that is the chaos crate. It speaks
//! the public wire only (`tripod.v1`, dialect N, MindSpore's frames, three calls of etcd's API), never our internals, so
//! that a peer's service can be given instead of ours.
//!
//! # Invariants
//! * Every system is driven through the same connection settings ([`connect`]) and the same loop
//!   ([`closed_loop`]); only the message types differ. Ours may be asked for streams of calls, which others do not have;
//!   then the report says so.
//! * Latencies are recorded for requests that end inside the measured window; the warm-up before it
//!   is not counted. A failed request counts as an error, never as an operation.
//! * What a bench creates (jobs, keys) is removed at its end.
//!
//! # Modules
//! | module | what |
//! |---|---|
//! | [`cli`] | the flags of `tripod bench` and what they run |
//! | [`system`] | Tripod and etcd behind the same few calls |
//! | [`connect`] | channels with equal settings for all |
//! | [`closed_loop`] | the loop: warm-up, window, histogram, errors |
//! | [`report`] | the result as JSON and as a table |
//! | [`kv`] | put, get and local get of small values |
//! | [`job`] | a job of its own for each run |
//! | [`task`] | one task of a job, as JAX's client behaves, over dialect N |
//! | [`agents`] | agents with tasks behind them that are only played: a stream of calls for each |
//! | [`program`] | sets and gets as a training program's client makes them, over dialect T |
//! | [`barrier`], [`heartbeat`] | what the tasks of a job do |
//! | [`tasks`] | the scheduler: a store, workers and drivers that are only played |
//! | [`mindspore`] | nodes of MindSpore's clusters that are only played |

pub mod agents;
pub mod barrier;
pub mod cli;
pub mod closed_loop;
pub mod connect;
pub mod heartbeat;
pub mod job;
pub mod kv;
pub mod mindspore;
pub mod program;
pub mod report;
pub mod system;
pub mod task;
pub mod tasks;
