//! Which stores of a mutable live, and what becomes of it when they do not.

use std::collections::BTreeSet;

use crate::ids::TimeMs;
use crate::mars::limits::{ABSENT_MS, SEAL_MS};
use crate::mars::mutable::{Mutable, MutableState};
use crate::ray::Ray;

/// The addresses at which a store lives.
pub(super) struct Living<'a>(BTreeSet<&'a str>);

impl<'a> Living<'a> {
    pub(super) fn of(ray: &'a Ray) -> Self {
        let living = ray.stores.values().filter(|store| store.is_alive());
        Self(living.map(|store| store.address.as_str()).collect())
    }

    fn has(&self, mutable: &Mutable, store: usize) -> bool {
        mutable.stores.get(store).is_some_and(|address| self.0.contains(address.as_str()))
    }
}

/// What is to become of a mutable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    Stay,
    /// That chunks are away, or that all are back, is to be noted.
    Note {
        absent: bool,
    },
    /// Sealing has failed, and all that was written is there.
    Reopen,
    Lose,
}

impl Mutable {
    /// The store that is to seal a chunk: the first that lives and has not failed at it.
    pub(super) fn sealer(&self, living: &Living<'_>, chunk: usize) -> Option<usize> {
        let failed = self.seal.as_ref().map_or(&[][..], |seal| &seal.failed);
        let has_failed =
            |store: usize| u32::try_from(store).is_ok_and(|store| failed.binary_search(&store).is_ok());
        self.stores_of(chunk).find(|store| living.has(self, *store) && !has_failed(*store))
    }

    pub(super) fn judge(&self, living: &Living<'_>, now: TimeMs) -> Verdict {
        if !matches!(self.state, MutableState::Open | MutableState::Sealing) {
            return Verdict::Stay;
        }
        let is_made =
            |chunk: usize| self.seal.as_ref().is_some_and(|seal| seal.made.get(chunk) == Some(&true));
        let has_store = |chunk: &usize| self.stores_of(*chunk).any(|store| living.has(self, store));
        let mut open = (0..self.chunks()).filter(|chunk| !is_made(*chunk));
        let absent = open.any(|chunk| !has_store(&chunk));
        if absent {
            return match self.absent_since {
                None => Verdict::Note { absent: true },
                Some(since) if since.plus(ABSENT_MS) <= now => Verdict::Lose,
                Some(_) => Verdict::Stay,
            };
        }
        if let Some(seal) = self.seal.as_ref().filter(|_| self.state == MutableState::Sealing) {
            let mut left = (0..self.chunks()).filter(|chunk| !is_made(*chunk));
            let nobody = left.any(|chunk| self.sealer(living, chunk).is_none());
            if nobody || seal.begun.plus(SEAL_MS) <= now {
                // A chunk that is made and whose writer is away is not all of what was written.
                let all = (0..self.chunks()).all(|chunk| has_store(&chunk));
                return if all { Verdict::Reopen } else { Verdict::Lose };
            }
        }
        if self.absent_since.is_some() { Verdict::Note { absent: false } } else { Verdict::Stay }
    }

    /// When [`Self::judge`] may say something else although no store comes or goes.
    pub(super) fn next_judgement(&self) -> Option<TimeMs> {
        let absent = self.absent_since.map(|since| since.plus(ABSENT_MS));
        let seal = self.seal.as_ref().filter(|_| self.state == MutableState::Sealing);
        let seal = seal.map(|seal| seal.begun.plus(SEAL_MS));
        absent.into_iter().chain(seal).min()
    }
}
