//! What is known of a session that belongs to somebody.

use std::hash::{Hash, Hasher};

use imbl::OrdMap;

use super::weight;
use crate::command::Reply;
use crate::identity::Identity;
use crate::ids::Sequence;
use crate::session::Owner;

/// What is known of an owned session besides its replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) owner: Owner,
    /// Of a client's remembered replies: to what, and how large. A node numbers each of its commands once.
    kept: OrdMap<Sequence, Kept>,
    /// Of all that is kept. Derived.
    bytes: u64,
    /// Who opened it, if a port proved that: nobody else uses it.
    opener: Option<Identity>,
}

/// One of whom nobody knows who opened it has the digest that it has for a build that never knows that.
impl Hash for Owned {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Self { owner, kept, bytes, opener } = self;
        (owner, kept, bytes).hash(hasher);
        if let Some(opener) = opener {
            opener.hash(hasher);
        }
    }
}

/// What is known of a remembered reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Kept {
    /// What tells its command from others.
    mark: u64,
    bytes: u64,
}

impl Owned {
    pub(crate) fn new(owner: Owner) -> Self {
        Self { owner, kept: OrdMap::new(), bytes: 0, opener: None }
    }

    /// Who opened it, if that is known.
    pub(super) fn opener(&self) -> Option<&Identity> {
        self.opener.as_ref()
    }

    pub(super) fn opened_by(&mut self, by: Identity) {
        self.opener = Some(by);
    }

    pub(super) fn forget_opener(&mut self) {
        self.opener = None;
    }

    pub(super) fn is_client(&self) -> bool {
        matches!(self.owner, Owner::Client(_))
    }

    /// Bytes of the remembered replies, roughly.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The mark of the command that this number was used for, as long as its reply is remembered.
    pub(super) fn mark(&self, sequence: Sequence) -> Option<u64> {
        self.kept.get(&sequence).map(|kept| kept.mark)
    }

    /// What the commands were whose replies are remembered, by number.
    pub(crate) fn marks(&self) -> impl Iterator<Item = (Sequence, u64)> {
        self.kept.iter().map(|(sequence, kept)| (*sequence, kept.mark))
    }

    pub(super) fn keep(&mut self, sequence: Sequence, mark: u64, reply: &Reply) {
        let bytes = weight::of(reply);
        self.bytes += bytes;
        self.kept.insert(sequence, Kept { mark, bytes });
    }

    /// To the same command another reply is remembered from now on.
    pub(super) fn change(&mut self, sequence: Sequence, reply: &Reply) {
        if let Some(kept) = self.kept.remove(&sequence) {
            self.bytes -= kept.bytes;
            self.keep(sequence, kept.mark, reply);
        }
    }

    pub(super) fn forget_below(&mut self, floor: Sequence) {
        while let Some((sequence, kept)) = self.kept.get_min().copied().filter(|(oldest, _)| *oldest < floor)
        {
            self.kept.remove(&sequence);
            self.bytes -= kept.bytes;
        }
    }
}
