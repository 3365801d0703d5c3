//! Mutable tileables as they are shown, and what stores are to seal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use xxhash_rust::xxh3::xxh3_128;

use crate::command::Scope;
use crate::fault::Fault;
use crate::ids::JobId;
use crate::mars::ids::{MutableNo, Name, SessionNo};
use crate::mars::limits::PAGE_MAX;
use crate::mars::mutable::{Mutable, MutableState};
use crate::mars::record::Mars;
use crate::mars::refusal::Refusal;
use crate::mars::stores::Living;
use crate::mars::view::{MutableChunkView, MutableEntry, MutableView, SealOrder};
use crate::ray::ids::ObjectId;
use crate::state::State;

/// The key of a chunk of a mutable, by its place in C order. Whoever knows session and number knows it.
#[must_use]
pub fn mutable_chunk_key(session: &str, mutable: MutableNo, chunk: u64) -> String {
    format!("{:032x}", xxh3_128(format!("{session}/{mutable}/{chunk}").as_bytes()))
}

/// The same of its first so many chunks, as the numbers that the keys write in hexadecimal: for whoever finds out whose a key
/// is.
pub fn mutable_chunk_numbers(session: &str, mutable: MutableNo, chunks: u64) -> impl Iterator<Item = u128> {
    let mut text = format!("{session}/{mutable}/");
    let begin = text.len();
    (0..chunks).map(move |chunk| {
        text.truncate(begin);
        let _ = write!(text, "{chunk}");
        xxh3_128(text.as_bytes())
    })
}

impl State {
    /// A mutable of a session.
    ///
    /// # Errors
    /// The scope's faults, or that the session or the mutable is not there.
    pub fn mars_mutable(&self, scope: Scope, session: &str, name: &str) -> Result<MutableView, Fault> {
        let mars = self.mars_with(scope, session)?;
        let number = mars.session(session)?;
        let found = mars.mutable_names.get(&(number, Name::from(name)));
        let found = found.and_then(|mutable| mars.mutable_view(*mutable));
        found.ok_or_else(|| Refusal::MutableUnknown { name: name.to_owned() }.into())
    }

    /// The same by its number, for stores; `None`: it was deleted.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn mars_mutable_numbered(
        &self,
        scope: Scope,
        mutable: MutableNo,
    ) -> Result<Option<MutableView>, Fault> {
        Ok(self.mars_of(scope)?.and_then(|mars| mars.mutable_view(mutable)))
    }

    /// How far mutables are, by their numbers and in their order; `None`: the job has none of that number.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn mars_mutable_states(
        &self,
        scope: Scope,
        mutables: &[MutableNo],
    ) -> Result<Vec<Option<MutableState>>, Fault> {
        let mars = self.mars_of(scope)?;
        let state = |mutable: &MutableNo| Some(mars?.mutables.get(mutable)?.state);
        Ok(mutables.iter().map(state).collect())
    }

    /// At most 1,000 of those of which a store has chunks, by number, after the one numbered. `store`: the address that it
    /// serves.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn mars_mutables_at(
        &self,
        scope: Scope,
        store: &str,
        after: Option<MutableNo>,
    ) -> Result<Vec<MutableView>, Fault> {
        let Some(mars) = self.mars_of(scope)? else { return Ok(Vec::new()) };
        let has = |mutable: &Mutable| mutable.stores.iter().any(|known| known.as_str() == store);
        let theirs = mars
            .mutables
            .iter()
            .filter(|(number, mutable)| after.is_none_or(|after| **number > after) && has(mutable));
        Ok(theirs.filter_map(|(number, _)| mars.mutable_view(*number)).take(PAGE_MAX).collect())
    }

    /// All mutables of a session by their names, without what they are.
    ///
    /// # Errors
    /// The scope's faults, or that the session is not there.
    pub fn mars_mutable_entries(&self, scope: Scope, session: &str) -> Result<Vec<MutableEntry>, Fault> {
        let mars = self.mars_with(scope, session)?;
        let number = mars.session(session)?;
        let first = (number, Name::from(""));
        let theirs = mars.mutable_names.range(first..).take_while(|((session, _), _)| *session == number);
        let entry = |((_, name), mutable): (&(SessionNo, Name), &MutableNo)| {
            let chunks = mars.mutables.get(mutable)?.chunks() as u64;
            Some(MutableEntry { mutable: *mutable, name: name.as_str().to_owned(), chunks })
        };
        Ok(theirs.filter_map(entry).collect())
    }

    /// What stores are to seal now. Whoever leads tells them, and tells them again.
    #[must_use]
    pub fn mars_seal_orders(&self, job: JobId) -> Vec<SealOrder> {
        let Some(job) = self.jobs.get(job) else { return Vec::new() };
        let (Some(mars), Some(ray)) = (job.domains.mars.as_deref(), job.domains.ray.as_deref()) else {
            return Vec::new();
        };
        let living = Living::of(ray);
        let sealing = mars.mutables.iter().filter(|(_, mutable)| mutable.state == MutableState::Sealing);
        sealing.flat_map(|(number, mutable)| mars.orders_of(*number, mutable, &living)).collect()
    }

    /// Whether the scheduler knows what became of every one of these objects: a store has called it ready, or it failed, or
    /// nobody needs it any more. A store says of a chunk that it is made before the scheduler hears of its object.
    #[must_use]
    pub fn mars_came_to_be(&self, job: JobId, objects: &[ObjectId]) -> bool {
        let ray = self.jobs.get(job).and_then(|job| job.domains.ray.as_deref());
        ray.is_none_or(|ray| objects.iter().all(|object| ray.came_to_be(*object)))
    }
}

impl Mars {
    fn orders_of(&self, number: MutableNo, mutable: &Mutable, living: &Living<'_>) -> Vec<SealOrder> {
        let Some(seal) = &mutable.seal else { return Vec::new() };
        let session =
            self.sessions.get(&mutable.session).map(|session| session.name.as_str()).unwrap_or_default();
        let mut orders: BTreeMap<usize, SealOrder> = BTreeMap::new();
        for (chunk, (object, _)) in
            seal.objects.iter().zip(&seal.made).enumerate().filter(|(_, (_, made))| !**made)
        {
            let Some(store) = mutable.sealer(living, chunk) else { continue };
            let Some(address) = mutable.stores.get(store) else { continue };
            let order = orders.entry(store).or_insert_with(|| SealOrder {
                mutable: number,
                session: session.to_owned(),
                name: mutable.name.as_str().to_owned(),
                epoch: mutable.epoch,
                timestamp_ns: seal.timestamp_ns,
                store: address.as_str().to_owned(),
                chunks: Vec::new(),
            });
            let key = mutable_chunk_key(session, number, chunk as u64);
            order.chunks.push((u32::try_from(chunk).unwrap_or(u32::MAX), key, *object));
        }
        orders.into_values().collect()
    }

    fn mutable_view(&self, number: MutableNo) -> Option<MutableView> {
        let mutable = self.mutables.get(&number)?;
        let session = self.sessions.get(&mutable.session)?.name.as_str().to_owned();
        let definition = mutable.definition.as_ref().clone();
        let nsplits = &definition.nsplits;
        let chunks = (0..mutable.chunks()).map(|chunk| {
            let mut rest = chunk;
            let mut index = vec![0; nsplits.len()];
            let mut shape = vec![0; nsplits.len()];
            for (axis, parts) in nsplits.iter().enumerate().rev() {
                let part = rest % parts.len().max(1);
                rest /= parts.len().max(1);
                index[axis] = part as u64;
                shape[axis] = parts.get(part).copied().unwrap_or(0);
            }
            let stores = mutable.stores_of(chunk).filter_map(|store| mutable.stores.get(store));
            MutableChunkView {
                key: mutable_chunk_key(&session, number, chunk as u64),
                index,
                shape,
                stores: stores.map(|store| store.as_str().to_owned()).collect(),
            }
        });
        let is_sealed = mutable.state == MutableState::Sealed;
        Some(MutableView {
            mutable: number,
            name: mutable.name.as_str().to_owned(),
            epoch: mutable.epoch,
            state: mutable.state,
            chunks: chunks.collect(),
            seal_timestamp_ns: mutable.seal.as_ref().and_then(|seal| seal.timestamp_ns),
            tileable_key: is_sealed.then(|| mutable.tileable_key(number.0).as_str().to_owned()),
            session,
            definition,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_chunks_are_those_of_their_keys() {
        let keys = (0..12).map(|chunk| mutable_chunk_key("s", MutableNo(7), chunk));
        let numbers = mutable_chunk_numbers("s", MutableNo(7), 12).map(|number| format!("{number:032x}"));
        assert!(keys.eq(numbers));
    }
}
