//! Nodes that replicate in memory, and fail on demand.

mod cluster;
mod native;
mod node;
mod service;
mod streams;

pub(crate) use cluster::Cluster;
pub(crate) use node::{BeatConduct, Node};
