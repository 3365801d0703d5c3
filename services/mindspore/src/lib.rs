//! The schedulers of MindSpore's clusters: what its nodes of all releases dial, in front of the replicated state.
//!
//! # What this crate does not know
//! * Rules: who gets which rank, when a cluster is complete, what a silence means. They are in `tripod_state::mindspore`.
//! * Replication: who leads, what is in a log. It sees a `tripod_gateway::Gateway` and nothing below.
//! * Ports, signals, files: the binary has this front end in its list.
//!
//! # Modules
//!
//! | module | holds |
//! |---|---|
//! | [`wire`] | frames of both protocols as bytes |

pub mod wire;
