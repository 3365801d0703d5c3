//! All tokens, and the revision that every change of them raises.

use imbl::OrdMap;

use crate::ids::{DurationMs, LogIndex, TimeMs, TokenId};
use crate::limits::{TOKEN_KEPT_MS, TOKEN_TEXT_BYTES_MAX};
use crate::memory::of_map;
use crate::token::{Kind, Token};

/// The tokens of the cluster. Cloning is O(1).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Tokens {
    /// The log index of the last change; 0: there was none.
    pub(crate) revision: LogIndex,
    pub(crate) all: OrdMap<TokenId, Token>,
}

impl Tokens {
    /// Another number after every change, never one that was. What was verified at a revision is true as long as this
    /// is the revision, but for what time does.
    #[must_use]
    pub fn revision(&self) -> LogIndex {
        self.revision
    }

    /// A token, whether it can be used or not.
    #[must_use]
    pub fn get(&self, token: TokenId) -> Option<&Token> {
        self.all.get(&token)
    }

    /// Each of them, by id.
    pub fn iter(&self) -> impl Iterator<Item = (TokenId, &Token)> {
        self.all.iter().map(|(id, token)| (*id, token))
    }

    /// How many there are, those that have ended included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// An operator's that can be used.
    pub(super) fn of_an_operator(&self, now: TimeMs) -> Option<&Token> {
        self.all.values().find(|token| token.bearer.kind == Kind::Operator && token.holds_at(now))
    }

    /// Forgets those that have been of no use for so long that nobody asks any more.
    pub(super) fn forget_old(&mut self, now: TimeMs) {
        let is_old = |token: &Token| token.expires.plus(DurationMs(TOKEN_KEPT_MS)) <= now;
        let old: Vec<TokenId> =
            self.all.iter().filter(|(_, token)| is_old(token)).map(|(id, _)| *id).collect();
        for token in old {
            self.all.remove(&token);
        }
    }

    /// Bytes of memory that they take, roughly. O(1).
    pub(crate) fn bytes(&self) -> u64 {
        of_map::<TokenId, Token>(self.all.len())
            .saturating_add((self.all.len() * TOKEN_TEXT_BYTES_MAX) as u64)
    }
}
