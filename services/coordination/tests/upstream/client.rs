//! A client as upstream's agent behaves: counts its barriers, beats, polls for errors.
//!
//! [`Agent`] is one process of a job with its own connection, and speaks dialect N. [`Cluster`] is a job on a
//! served port, where such processes live, and knows when a call of theirs has arrived.
//!
//! Source: openxla/xla `xla/pjrt/distributed/coordination/coordination_service_agent.cc`.

mod agent;
mod barriers;
mod calls;
mod cluster;
mod config;
pub(crate) mod plays;
pub(crate) mod topology;

pub(crate) use agent::Agent;
pub(crate) use cluster::{Call, Cluster, incarnations};
pub(crate) use config::{Config, IMPATIENT, impatient, ms, spec};
