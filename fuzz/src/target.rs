//! A target: something that reads bytes of others.

use crate::source::Source;
use crate::targets;

/// How inputs of a target are made, and what is done with them.
#[derive(Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    /// Whose bytes they are, and what reads them.
    pub what: &'static str,
    /// Makes an input that is nearly right.
    pub generate: fn(&mut Source) -> Vec<u8>,
    /// Reads any bytes; panics where something that must hold does not.
    pub run: fn(&[u8]),
}

/// Every target, in the order in which they are run.
pub const ALL: &[Target] = &[
    targets::services::N,
    targets::services::T,
    targets::services::L,
    targets::services::AGENTS,
    targets::services::NATIVE,
    targets::services::SCHEDULER,
    targets::services::RAY,
    targets::services::MARS,
    targets::services::MIXED,
    targets::log::PROPOSALS,
    targets::log::QUESTIONS,
    targets::peer::MESSAGES,
    targets::disk::JOURNAL,
    targets::disk::SNAPSHOT,
    targets::disk::BACKUP,
    targets::connection::HTTP2,
    targets::calls::FRAMES,
    targets::xds::REQUESTS,
    targets::web::REQUESTS,
    targets::mindspore::PS,
    targets::mindspore::HTTP,
    targets::mindspore::TOPOLOGY,
    targets::agent::CALLS,
    targets::agent_mindspore::FRAMES,
    targets::store::FRAMES,
    targets::store::REPLIES,
    targets::worker::VALUES,
    targets::chunk_data::READS,
    targets::chunk_data::WRITES,
    targets::chunk_data::FRAMES,
];

/// The target of a name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Target> {
    ALL.iter().find(|target| target.name == name)
}
