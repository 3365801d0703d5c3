//! A home in memory: what is written is lost in a crash, from some batch on, until it is synced.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::dice::Dice;
use super::fuse::{Fuse, Loss};
use crate::journal::frame::JournalId;
use crate::journal::home::Home;
use crate::log_store::{Change, Disk, DiskError, Loaded, OldEntries};
use crate::types::{Entry, entry_bytes};

/// Clones are the same home.
#[derive(Clone)]
pub(super) struct SimHome {
    state: Arc<Mutex<State>>,
    fuse: Fuse,
}

#[derive(Default)]
struct State {
    live: Held,
    durable: Held,
    unsynced: Vec<Vec<Change>>,
}

#[derive(Default, Clone)]
struct Held {
    entries: BTreeMap<u64, Entry>,
    values: Loaded,
    journal: Option<JournalId>,
}

impl Held {
    fn apply(&mut self, changes: &[Change]) {
        for change in changes {
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
}

impl SimHome {
    pub(super) fn new(fuse: Fuse) -> Self {
        Self { state: Arc::default(), fuse }
    }

    /// What a machine finds that starts again after this one has crashed.
    pub(super) fn after_crash(&self, fuse: Fuse, loss: Loss) -> Self {
        let state = self.state.lock();
        let (live, unsynced) = (state.live.clone(), state.unsynced.clone());
        let mut durable = state.durable.clone();
        let state = match loss {
            Loss::Nothing => State { live, durable, unsynced },
            Loss::Everything => State { live: durable.clone(), durable, unsynced: Vec::new() },
            Loss::Some(seed) => {
                let mut dice = Dice::new(seed ^ 0x5EED);
                let kept = usize::try_from(dice.below(unsynced.len() as u64 + 1)).unwrap();
                unsynced[..kept].iter().for_each(|batch| durable.apply(batch));
                if dice.flip() {
                    durable.journal = live.journal;
                }
                State { live: durable.clone(), durable, unsynced: Vec::new() }
            }
        };
        Self { state: Arc::new(Mutex::new(state)), fuse }
    }

    /// How many entries it holds.
    pub(super) fn len(&self) -> usize {
        self.state.lock().live.entries.len()
    }

    /// The index of its last entry.
    pub(super) fn last_index(&self) -> Option<u64> {
        self.state.lock().live.entries.keys().next_back().copied()
    }

    /// Forgets the last entry, as a damaged sled does.
    pub(super) fn forget_last(&self) {
        self.state.lock().live.entries.pop_last();
    }

    /// Replaces the last entry by another one of the same id.
    pub(super) fn alter(&self, index: u64, entry: Entry) {
        self.state.lock().live.entries.insert(index, entry);
    }

    fn end(action: &'static str) -> DiskError {
        DiskError::Io { action, directory: "sim/home".into(), cause: Fuse::error().to_string() }
    }

    fn begin(&self, action: &'static str) -> Result<bool, DiskError> {
        self.fuse.begin().map_err(|_| Self::end(action))
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
        let mut state = self.state.lock();
        state.live.apply(changes);
        state.unsynced.push(changes.to_vec());
        if goes_on { Ok(()) } else { Err(Self::end("write")) }
    }

    fn sync(&mut self) -> Result<(), DiskError> {
        if !self.begin("sync")? {
            return Err(Self::end("sync"));
        }
        let mut state = self.state.lock();
        state.durable = state.live.clone();
        state.unsynced.clear();
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
        if !self.begin("adopt")? {
            self.state.lock().live.journal = Some(journal);
            return Err(Self::end("adopt"));
        }
        self.state.lock().live.journal = Some(journal);
        self.sync()
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
