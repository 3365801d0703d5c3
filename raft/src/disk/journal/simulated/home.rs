//! A home in memory: what is written is lost in a crash, from some change on, until it is synced.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::dice::Dice;
use super::medium::{Loss, Medium, Sync};
use crate::base::types::{Entry, entry_bytes};
use crate::disk::journal::frame::JournalId;
use crate::disk::journal::home::Home;
use crate::disk::{Change, Disk, DiskError, Loaded, OldEntries};

/// Clones are the same home.
#[derive(Clone)]
pub(crate) struct SimHome {
    state: Arc<Mutex<State>>,
    medium: Medium,
}

#[derive(Default)]
struct State {
    live: HomeContents,
    durable: HomeContents,
    unsynced: Vec<Write>,
}

#[derive(Clone)]
enum Write {
    Change(Change),
    Adopt(JournalId),
}

#[derive(Default, Clone)]
struct HomeContents {
    entries: BTreeMap<u64, Entry>,
    values: Loaded,
    journal: Option<JournalId>,
}

impl HomeContents {
    fn apply(&mut self, write: &Write) {
        match write {
            Write::Change(change) => self.change(change),
            Write::Adopt(journal) => self.journal = Some(*journal),
        }
    }

    fn change(&mut self, change: &Change) {
        match change {
            Change::Append(entries) => {
                for entry in entries {
                    let index = entry.log_id.index;
                    let purged = self.values.purged.map(|id| id.index);
                    let last = self.entries.keys().next_back().copied().max(purged);
                    assert!(last.is_none_or(|last| index == last + 1), "a hole in the home at {index}");
                    self.entries.insert(index, entry.clone());
                }
            }
            Change::Vote(vote) => self.values.vote = Some(*vote),
            Change::Committed(id) => self.values.committed = Some(*id),
            Change::TruncateAfter(keep) => {
                let from = keep.map_or(0, |id| id.index + 1);
                self.entries.split_off(&from);
            }
            Change::Purge(upto) => {
                self.entries = self.entries.split_off(&(upto.index + 1));
                self.values.purged = Some(*upto);
            }
        }
    }
}

impl SimHome {
    pub(crate) fn new(medium: Medium) -> Self {
        Self { state: Arc::default(), medium }
    }

    /// What a machine finds that starts again after this one has crashed.
    pub(crate) fn after_crash(&self, medium: Medium, loss: Loss) -> Self {
        let state = self.state.lock();
        let mut durable = state.durable.clone();
        let mut unsynced = state.unsynced.clone();
        drop(state);
        let kept = match loss {
            Loss::Nothing => {
                let mut live = durable.clone();
                unsynced.iter().for_each(|write| live.apply(write));
                return Self { state: Arc::new(Mutex::new(State { live, durable, unsynced })), medium };
            }
            Loss::Everything => 0,
            Loss::Some(seed) => {
                let any = Dice::new(seed ^ 0x5EED).below(unsynced.len() as u64 + 1);
                usize::try_from(any).expect("at most the length")
            }
        };
        unsynced.drain(..kept).for_each(|write| durable.apply(&write));
        let state = State { live: durable.clone(), durable, unsynced: Vec::new() };
        Self { state: Arc::new(Mutex::new(state)), medium }
    }

    /// Changes what is seen now, and has the medium follow. A crash may come between two of the writes: a home
    /// promises an order, and sled stores a long purge, and what follows it, bit by bit.
    fn put(&self, writes: Vec<Write>) {
        writes.iter().for_each(|write| self.state.lock().live.apply(write));
        let state = self.state.clone();
        self.medium.perform(move |_| state.lock().unsynced.extend(writes));
    }

    fn end(action: &'static str) -> DiskError {
        DiskError::Io { action, directory: "sim/home".into(), cause: Medium::error().to_string() }
    }

    fn begin(&self, action: &'static str) -> Result<bool, DiskError> {
        self.medium.begin().map_err(|_| Self::end(action))
    }
}

#[cfg(test)]
impl SimHome {
    /// How many entries it holds.
    pub(in crate::disk::journal) fn len(&self) -> usize {
        self.state.lock().live.entries.len()
    }

    /// The index of its last entry.
    pub(in crate::disk::journal) fn last_index(&self) -> Option<u64> {
        self.state.lock().live.entries.keys().next_back().copied()
    }

    /// Forgets the last entry, as a damaged sled does.
    pub(in crate::disk::journal) fn forget_last(&self) {
        self.state.lock().live.entries.pop_last();
    }

    /// Replaces the last entry by another one of the same id.
    pub(in crate::disk::journal) fn alter(&self, index: u64, entry: Entry) {
        self.state.lock().live.entries.insert(index, entry);
    }
}

impl Disk for SimHome {
    fn load(&mut self, each: &mut dyn FnMut(Entry)) -> Result<Loaded, DiskError> {
        let state = self.state.lock();
        state.live.entries.values().cloned().for_each(each);
        Ok(state.live.values)
    }

    fn write(&mut self, changes: &[Change]) -> Result<(), DiskError> {
        let goes_on = self.begin("write")?;
        self.put(changes.iter().cloned().map(Write::Change).collect());
        if goes_on { Ok(()) } else { Err(Self::end("write")) }
    }

    fn sync(&mut self) -> Result<(), DiskError> {
        if !self.begin("sync")? {
            return Err(Self::end("sync"));
        }
        let state = self.state.clone();
        self.medium.perform(move |sync| {
            if sync == Sync::Honest {
                let state = &mut *state.lock();
                state.unsynced.drain(..).for_each(|write| state.durable.apply(&write));
            }
        });
        Ok(())
    }

    fn reader(&self) -> Arc<dyn OldEntries> {
        Arc::new(self.clone())
    }
}

impl Home for SimHome {
    fn journal(&self) -> Result<Option<JournalId>, DiskError> {
        Ok(self.state.lock().live.journal)
    }

    fn adopt(&mut self, journal: JournalId) -> Result<(), DiskError> {
        let goes_on = self.begin("adopt")?;
        self.put(vec![Write::Adopt(journal)]);
        if goes_on { self.sync() } else { Err(Self::end("adopt")) }
    }
}

impl OldEntries for SimHome {
    fn read(&self, start: u64, end: u64, bytes_max: usize) -> Result<Vec<Entry>, DiskError> {
        let state = self.state.lock();
        let mut bytes = 0;
        let entries = state.live.entries.range(start..end).map(|(_, entry)| entry.clone());
        let bounded = entries.take_while(|entry| {
            let more = bytes < bytes_max;
            bytes += entry_bytes(entry);
            more
        });
        Ok(bounded.collect())
    }

    fn close(&self) {}
}
