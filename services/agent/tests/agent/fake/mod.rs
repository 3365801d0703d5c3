//! Nodes that replicate in memory, and fail on demand.

#[path = "../../../../coordination/tests/support/bytes_codec.rs"]
mod bytes_codec;
mod cluster;
mod native;
mod node;
mod service;

pub(crate) use cluster::Cluster;
pub(crate) use node::{BeatConduct, Node};
