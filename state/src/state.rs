//! The whole replicated state.

use std::hash::{Hash, Hasher};

use bytes::Bytes;
use imbl::{OrdMap, OrdSet};
use xxhash_rust::xxh3::Xxh3;

use crate::command::{Effect, Reply};
use crate::ids::{
    BarrierCounter, BarrierName, CertificateName, DurationMs, JobId, Key, LogIndex, NodeId, TimeMs,
};
use crate::{events, identity, job, level, member, session, token};

/// What apply gives back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub reply: Reply,
    /// In the order in which they happened.
    pub effects: Vec<Effect>,
}

/// The replicated state. Cloning is O(1): the maps share structure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    pub(crate) now_ms: TimeMs,
    pub(crate) jobs: job::table::Table,
    pub(crate) sessions: session::table::Table,
    pub(crate) members: OrdMap<NodeId, member::Addresses>,
    pub(crate) registry: member::Registry,
    pub(crate) levels: level::Levels,
    /// What people wrote about jobs.
    pub(crate) notes: OrdMap<JobId, String>,
    /// Nodes that are to lead nothing and to have no clients, until the operator takes it back.
    pub(crate) drained: OrdSet<NodeId>,
    pub(crate) tokens: token::Tokens,
    /// What happened that concerns no job that is there.
    pub(crate) events: events::OfCluster,
    /// What the certificates of nodes call them.
    pub(crate) names: OrdMap<NodeId, CertificateName>,
    /// The least that nodes are to be protected by.
    pub(crate) floor: identity::Floor,
}

/// An empty registry counts for nothing, nor does the first level, nor does it count that there are no notes, no
/// drained nodes, no tokens, no names and no floor, and that nothing is known to have happened: so a state keeps the digest that it has for a
/// program that knows none of these, and nodes of both agree.
impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Self {
            now_ms,
            jobs,
            sessions,
            members,
            registry,
            levels,
            notes,
            drained,
            tokens,
            events,
            names,
            floor,
        } = self;
        (now_ms, jobs, sessions, members).hash(hasher);
        if *registry != member::Registry::default() {
            registry.hash(hasher);
        }
        if *levels != level::Levels::default() {
            levels.hash(hasher);
        }
        if !notes.is_empty() {
            notes.hash(hasher);
        }
        if !drained.is_empty() {
            drained.hash(hasher);
        }
        if *tokens != token::Tokens::default() {
            tokens.hash(hasher);
        }
        if !events.is_empty() {
            events.hash(hasher);
        }
        if !names.is_empty() {
            names.hash(hasher);
        }
        if *floor != identity::Floor::default() {
            floor.hash(hasher);
        }
    }
}

/// An open barrier instance, for timers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenBarrier {
    pub job: JobId,
    pub barrier: BarrierName,
    pub counter: BarrierCounter,
    /// Its whole length, from when it opened.
    pub timeout: DurationMs,
}

/// One key of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: Key,
    pub value: Bytes,
    /// Writes since the key was created, from 1.
    pub version: u64,
    /// The log index of the last write.
    pub modified: LogIndex,
}

impl State {
    /// Which states have which digests. Raise it with every change of the state's types or of how they are
    /// hashed: nodes of two versions of the program compare only digests of one version.
    pub const DIGEST_VERSION: u32 = 2;

    /// A 64-bit hash of everything in the state. Equal states have equal digests on every replica.
    /// It reads all of the state, every value included: take it from a clone, beside the apply loop.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut hasher = Xxh3::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}
