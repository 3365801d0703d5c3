//! What is fuzzed, by whose bytes it reads.
//!
//! | module | whose bytes |
//! |---|---|
//! | `services` | clients of a node's port |
//! | `calls` | the same by one stream |
//! | `connection` | the same below gRPC: frames of HTTP/2 |
//! | `xds`, `web` | clients that ask where nodes are; probes |
//! | `log`, `peer` | other nodes |
//! | `mindspore` | nodes of MindSpore's clusters, and their operators |
//! | `disk` | files |
//! | `agent`, `agent_mindspore` | an agent's clients and its nodes |
//! | `chunk_data` | clients that read and write chunks, and workers that made them |
//! | `store`, `worker` | processes of a machine and their store; other workers |

pub(crate) mod agent;
pub(crate) mod agent_mindspore;
pub(crate) mod calls;
pub(crate) mod chunk_data;
pub(crate) mod connection;
pub(crate) mod disk;
pub(crate) mod log;
pub(crate) mod mindspore;
pub(crate) mod peer;
pub(crate) mod services;
pub(crate) mod store;
pub(crate) mod web;
pub(crate) mod worker;
pub(crate) mod xds;
