//! Which objects are here, and how far they are. Pure: no bytes, no time, no threads.
//!
//! The states are those of the object store of August 2016. What ended that store's process is a [`Refusal`] here.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::forgotten::Forgotten;
use crate::ids::ObjectId;

/// How far an object is that this store has heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is to be fetched; nothing has come yet.
    PreAllocated,
    /// It is being written, by a process or by a transfer.
    NotReady,
    Ready,
    /// It was here, and its bytes were damaged on disk. Like an object that was never here, but gets are told.
    Lost,
}

/// Which of several writers of one id is meant: an object that is given up and made again is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Life(pub(crate) u64);

/// What is to be done about an order to fetch an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    Begin(Life),
    /// It is being fetched or written.
    UnderWay,
    Present,
}

/// What a get finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// The object, under the id that its bytes are kept under.
    Ready(ObjectId),
    NotYet,
    Deallocated,
    Lost,
    /// It has so many bytes that it can never be here.
    TooLarge(u64),
}

/// Why the table is not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("object {0} is here already, or is being written")]
    Exists(ObjectId),
    #[error("object {0} is not here, so nothing can be its alias")]
    CanonicalAbsent(ObjectId),
    #[error("{0} means another object already, or is one")]
    AliasTaken(ObjectId),
    #[error("object {0} was deallocated or given up meanwhile")]
    Gone(ObjectId),
}

/// The objects of one store.
#[derive(Debug, Default)]
pub(crate) struct Table {
    entries: BTreeMap<ObjectId, (State, Life)>,
    /// Other ids of objects that are ready here. Of an alias of an alias, the object itself.
    aliases: BTreeMap<ObjectId, ObjectId>,
    names: HashMap<ObjectId, BTreeSet<ObjectId>>,
    forgotten: Forgotten,
    /// Objects that could not be fetched because they are larger than the store, with their bytes. Of very many the
    /// oldest are forgotten: gets of those wait until they are asked for once more.
    too_large: BTreeMap<ObjectId, u64>,
    lives: u64,
}

/// How many ids of objects are remembered that are larger than the store.
const TOO_LARGE_MAX: usize = 4096;

impl Table {
    /// An order to fetch the object. An object that was deallocated may come again: the scheduler has results made
    /// once more under their old ids.
    pub(crate) fn deliver(&mut self, id: ObjectId) -> Delivery {
        if self.aliases.contains_key(&id) {
            return Delivery::Present;
        }
        match self.state(id) {
            Some(State::Ready) => Delivery::Present,
            Some(State::PreAllocated | State::NotReady) => Delivery::UnderWay,
            Some(State::Lost) | None => Delivery::Begin(self.enter(id, State::PreAllocated)),
        }
    }

    /// A process will write the object. It comes before a transfer of which nothing has come yet.
    ///
    /// # Errors
    /// [`Refusal::Exists`].
    pub(crate) fn create(&mut self, id: ObjectId) -> Result<Life, Refusal> {
        let taken = matches!(self.state(id), Some(State::NotReady | State::Ready));
        if taken || self.aliases.contains_key(&id) {
            return Err(Refusal::Exists(id));
        }
        Ok(self.enter(id, State::NotReady))
    }

    /// The first bytes of a transfer have come.
    ///
    /// # Errors
    /// [`Refusal::Gone`] if the transfer is not wanted any more.
    pub(crate) fn fill(&mut self, id: ObjectId, life: Life) -> Result<(), Refusal> {
        self.advance(id, life, &[State::PreAllocated, State::NotReady], State::NotReady)
    }

    /// The object is whole.
    ///
    /// # Errors
    /// [`Refusal::Gone`] if it is not wanted any more.
    pub(crate) fn finish(&mut self, id: ObjectId, life: Life) -> Result<(), Refusal> {
        self.advance(id, life, &[State::NotReady], State::Ready)
    }

    /// The writer gave up. Without effect if it is not the current one; whether it was.
    pub(crate) fn abandon(&mut self, id: ObjectId, life: Life) -> bool {
        let current = self.entries.get(&id).is_some_and(|(state, current)| {
            matches!(state, State::PreAllocated | State::NotReady) && *current == life
        });
        if current {
            self.entries.remove(&id);
        }
        current
    }

    /// The object turned out to be larger than the store. Whether it is still the one that was to be fetched.
    pub(crate) fn refuse(&mut self, id: ObjectId, life: Life, size_bytes: u64) -> bool {
        let current = self.is_current(id, life);
        if current {
            self.entries.remove(&id);
            self.note_too_large(id, size_bytes);
        }
        current
    }

    /// The object's bytes turned out to be damaged. Answers the ids that nobody can get any more.
    pub(crate) fn lose(&mut self, id: ObjectId) -> Vec<ObjectId> {
        let mut lost = self.drop_names(id);
        lost.push(id);
        for id in &lost {
            self.enter(*id, State::Lost);
        }
        lost
    }

    /// Another id for an object that is ready here, or that is known to be too large for that.
    ///
    /// # Errors
    /// [`Refusal::CanonicalAbsent`], or [`Refusal::AliasTaken`] if the alias has another meaning.
    pub(crate) fn alias(&mut self, alias: ObjectId, canonical: ObjectId) -> Result<(), Refusal> {
        let canonical = match self.find(canonical) {
            Found::Ready(canonical) => canonical,
            Found::TooLarge(size_bytes) => {
                if self.state(alias).is_none() && !self.aliases.contains_key(&alias) {
                    self.note_too_large(alias, size_bytes);
                }
                return Ok(());
            }
            Found::NotYet | Found::Deallocated | Found::Lost => {
                return Err(Refusal::CanonicalAbsent(canonical));
            }
        };
        if alias == canonical || self.aliases.get(&alias) == Some(&canonical) {
            return Ok(());
        }
        let taken = matches!(self.state(alias), Some(State::Ready | State::NotReady));
        if taken || self.aliases.contains_key(&alias) {
            return Err(Refusal::AliasTaken(alias));
        }
        self.entries.remove(&alias);
        self.too_large.remove(&alias);
        self.forgotten.remove(alias);
        self.aliases.insert(alias, canonical);
        self.names.entry(canonical).or_default().insert(alias);
        Ok(())
    }

    /// Nobody needs the object any more. Answers the ids that ended with it; none if it was not here, which is no
    /// error: the order may come twice.
    pub(crate) fn deallocate(&mut self, id: ObjectId) -> Vec<ObjectId> {
        let mut ended = self.drop_names(id);
        if let Some(canonical) = self.aliases.remove(&id) {
            if let Some(names) = self.names.get_mut(&canonical) {
                names.remove(&id);
            }
            ended.push(id);
        }
        if self.entries.remove(&id).is_some() | self.too_large.remove(&id).is_some() {
            ended.push(id);
        }
        for id in &ended {
            self.forgotten.insert(*id);
        }
        ended
    }

    pub(crate) fn find(&self, id: ObjectId) -> Found {
        if let Some(canonical) = self.aliases.get(&id) {
            return Found::Ready(*canonical);
        }
        match self.state(id) {
            Some(State::Ready) => Found::Ready(id),
            Some(State::Lost) => Found::Lost,
            Some(State::PreAllocated | State::NotReady) => Found::NotYet,
            None => match self.too_large.get(&id) {
                Some(size_bytes) => Found::TooLarge(*size_bytes),
                None if self.forgotten.contains(id) => Found::Deallocated,
                None => Found::NotYet,
            },
        }
    }

    /// Whether the object is being written or fetched.
    pub(crate) fn is_coming(&self, id: ObjectId) -> bool {
        matches!(self.state(id), Some(State::PreAllocated | State::NotReady))
    }

    /// Whether this is still the object's writer.
    pub(crate) fn is_current(&self, id: ObjectId, life: Life) -> bool {
        self.entries.get(&id).is_some_and(|(_, current)| *current == life)
    }

    /// The ids that can be got, aliases included, in ascending order.
    pub(crate) fn ready(&self) -> Vec<ObjectId> {
        let own = self.entries.iter().filter(|(_, (state, _))| *state == State::Ready).map(|(id, _)| *id);
        let mut ids: Vec<_> = own.chain(self.aliases.keys().copied()).collect();
        ids.sort_unstable();
        ids
    }

    /// All ids of the object: its own, and its aliases.
    pub(crate) fn names_of(&self, id: ObjectId) -> Vec<ObjectId> {
        std::iter::once(id).chain(self.names.get(&id).into_iter().flatten().copied()).collect()
    }

    fn state(&self, id: ObjectId) -> Option<State> {
        self.entries.get(&id).map(|(state, _)| *state)
    }

    fn enter(&mut self, id: ObjectId, state: State) -> Life {
        self.lives += 1;
        self.forgotten.remove(id);
        self.too_large.remove(&id);
        self.entries.insert(id, (state, Life(self.lives)));
        Life(self.lives)
    }

    fn note_too_large(&mut self, id: ObjectId, size_bytes: u64) {
        self.forgotten.remove(id);
        self.too_large.insert(id, size_bytes);
        if self.too_large.len() > TOO_LARGE_MAX {
            self.too_large.pop_first();
        }
    }

    fn advance(&mut self, id: ObjectId, life: Life, from: &[State], to: State) -> Result<(), Refusal> {
        match self.entries.get_mut(&id) {
            Some((state, current)) if *current == life && from.contains(state) => {
                *state = to;
                Ok(())
            }
            _ => Err(Refusal::Gone(id)),
        }
    }

    fn drop_names(&mut self, id: ObjectId) -> Vec<ObjectId> {
        let names = self.names.remove(&id).unwrap_or_default();
        for name in &names {
            self.aliases.remove(name);
        }
        names.into_iter().collect()
    }
}

#[cfg(test)]
#[path = "table_test.rs"]
mod tests;
