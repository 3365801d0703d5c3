//! All storage of one simulated node.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tripod_state::ids::FeatureLevel;
use tripod_state::level;

use super::dice::Dice;
use super::files::SimFiles;
use super::home::SimHome;
use super::medium::{Loss, Medium};
use crate::base::error::StartError;
use crate::base::failure::Failure;
use crate::base::observer::LogLine;
use crate::disk::identity::Identity;
use crate::disk::journal::JournalDisk;
use crate::disk::journal::engine::JournalOptions;
use crate::disk::journal::frame::JournalId;
use crate::disk::journal::helper::Hands;
use crate::disk::{Change, DiskError, Files};

/// So small that a minute of a simulation sees segments change, entries move to the home, and files come back.
const OPTIONS: JournalOptions = JournalOptions { segment_bytes: 64 << 10, held_max: 2 };
/// How long a sync takes at least and at most, in microseconds, on a disk that is well.
const SYNC_US: [u64; 2] = [200, 4000];
/// How many of a disk's syncs take longer, one in so many, and how often as long.
const SLOW: [u64; 2] = [64, 8];

/// The storage of one node: journal, home, snapshots, and whose they are. It is in memory, and outlives the
/// node's tasks. Clones are the same disk.
///
/// What a node writes is seen by that node at once, and is on the disk when the sync that it waits for has
/// taken its time. [`Self::crash`] decides what the node finds that starts next.
#[derive(Clone)]
pub struct SimulatedDisk {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    parts: Parts,
    dice: Dice,
    stalled: Duration,
    /// Whether it answers nothing.
    held: watch::Sender<bool>,
    lying: bool,
    full: bool,
    forgetful: bool,
    stale_votes: bool,
    /// The entries that the node has on the disk, by index.
    log: BTreeMap<u64, LogLine>,
    /// Who used the disk first. Written once, and kept whatever happens.
    identity: Option<Identity>,
    /// The feature level that a build must support to start on it. Written at once, and kept in a crash.
    marked: FeatureLevel,
}

struct Parts {
    medium: Medium,
    files: SimFiles,
    snapshots: SimFiles,
    home: SimHome,
}

impl Parts {
    fn empty() -> Self {
        let medium = Medium::queueing();
        Self {
            files: SimFiles::new(medium.clone(), "simulated/journal"),
            snapshots: SimFiles::new(medium.clone(), "simulated/snapshots"),
            home: SimHome::new(medium.clone()),
            medium,
        }
    }

    fn after_crash(&self, loss: Loss) -> Self {
        let medium = Medium::queueing();
        let other = match loss {
            Loss::Some(seed) => Loss::Some(!seed),
            loss => loss,
        };
        Self {
            files: self.files.after_crash(medium.clone(), loss),
            snapshots: self.snapshots.after_crash(medium.clone(), other),
            home: self.home.after_crash(medium.clone(), loss),
            medium,
        }
    }
}

impl fmt::Debug for SimulatedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedDisk").finish_non_exhaustive()
    }
}

impl SimulatedDisk {
    /// An empty disk. The seed decides how long its syncs take.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let inner = Inner {
            parts: Parts::empty(),
            dice: Dice::new(seed),
            stalled: Duration::ZERO,
            held: watch::Sender::new(false),
            lying: false,
            full: false,
            forgetful: false,
            stale_votes: false,
            log: BTreeMap::new(),
            identity: None,
            marked: level::FIRST,
        };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// The power goes, or only the process ends; the seed decides which. Of what was under way, the first few
    /// operations have happened. If the power went, every change of a name and every sector of 512 bytes that was
    /// not synced is kept or lost. To be called before the node's tasks are dropped, so that none of them tidies
    /// up as it goes; a task that is left gets errors.
    pub fn crash(&self, seed: u64) {
        let mut dice = Dice::new(seed);
        let loss = match dice.below(4) {
            0 => Loss::Nothing,
            1 => Loss::Everything,
            _ => Loss::Some(dice.below(u64::MAX)),
        };
        self.crash_with(loss, &mut dice);
    }

    /// The process ends, and the system keeps what it was given.
    pub fn crash_process(&self, seed: u64) {
        self.crash_with(Loss::Nothing, &mut Dice::new(seed));
    }

    fn crash_with(&self, loss: Loss, dice: &mut Dice) {
        let mut inner = self.inner.lock();
        let queued = inner.parts.medium.queued() as u64;
        let first = usize::try_from(dice.below(queued + 1)).expect("at most the length");
        inner.parts.medium.cut(first);
        let parts = inner.parts.after_crash(loss);
        inner.put_in(parts);
    }

    /// Forgets everything, as a disk does that was replaced.
    pub fn wipe(&self) {
        let mut inner = self.inner.lock();
        inner.parts.medium.cut(0);
        inner.identity = None;
        inner.marked = level::FIRST;
        inner.put_in(Parts::empty());
    }

    /// A disk that holds what this one holds now: a copy of a directory whose node is stopped.
    #[must_use]
    pub fn copy(&self) -> Self {
        let copy = Self::new(0);
        copy.restore(self);
        copy
    }

    /// Has this disk hold what the other one holds now, and nothing else.
    pub fn restore(&self, copy: &Self) {
        let (parts, log, identity, marked) = {
            let copy = copy.inner.lock();
            copy.parts.medium.settle();
            let parts = copy.parts.after_crash(Loss::Nothing);
            (parts, copy.log.clone(), copy.identity.clone(), copy.marked)
        };
        let mut inner = self.inner.lock();
        inner.parts.medium.cut(0);
        (inner.log, inner.identity, inner.marked) = (log, identity, marked);
        inner.put_in(parts);
    }

    /// The snapshots, and the notes beside them, by name.
    #[must_use]
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        self.inner.lock().parts.snapshots.contents()
    }

    /// Puts a file among the snapshots and notes, durably and in place of one of this name, as somebody can who
    /// works on the directory of a stopped node. `None` removes it.
    pub fn put_file(&self, name: &str, bytes: Option<Vec<u8>>) {
        self.inner.lock().parts.snapshots.put(name, bytes);
    }

    /// From now on a sync reports success and makes nothing durable: a fault that Raft cannot bear, planted to
    /// see whether anybody notices.
    pub fn set_lying(&self, lying: bool) {
        self.inner.lock().set_lying(lying);
    }

    /// From now on every sync takes this much longer.
    pub fn set_stalled(&self, more: Duration) {
        self.inner.lock().stalled = more;
    }

    /// From now on no sync ends, until this is called again with `false`; then all do that wait.
    pub fn hold(&self, held: bool) {
        self.inner.lock().held.send_replace(held);
    }

    /// From now on no file may grow, or it may again.
    pub fn set_full(&self, full: bool) {
        self.inner.lock().set_full(full);
    }

    /// From now on votes are not written, and reported as written: another fault that Raft cannot bear.
    pub fn set_forgetful(&self, forgetful: bool) {
        self.inner.lock().forgetful = forgetful;
    }

    /// From now on the vote that was found at the start is told to leaders that ask for the one that is held: a fault of
    /// the node above, planted to see whether anybody notices.
    pub fn set_stale_votes(&self, stale: bool) {
        self.inner.lock().stale_votes = stale;
    }

    pub(crate) fn has_stale_votes(&self) -> bool {
        self.inner.lock().stale_votes
    }

    pub(crate) fn is_forgetful(&self) -> bool {
        self.inner.lock().forgetful
    }

    /// The entries that were written and acknowledged, and are neither cut off nor purged. After a crash: those that
    /// the node has found when it started.
    #[must_use]
    pub fn log(&self) -> Vec<LogLine> {
        self.inner.lock().log.values().copied().collect()
    }

    /// Notes the log as it is read at a start.
    pub(crate) fn note_start(&self, entries: impl Iterator<Item = LogLine>) {
        self.inner.lock().log = entries.map(|line| (line.index.0, line)).collect();
    }

    /// Notes a change that is written.
    pub(crate) fn note(&self, change: &Change) {
        let log = &mut self.inner.lock().log;
        match change {
            Change::Append(entries) => {
                log.extend(entries.iter().map(|entry| (entry.log_id.index, LogLine::of(entry))));
            }
            Change::TruncateAfter(keep) => drop(log.split_off(&keep.map_or(0, |id| id.index + 1))),
            Change::Purge(upto) => *log = log.split_off(&(upto.index + 1)),
            Change::Vote(_) | Change::Committed(_) => {}
        }
    }

    /// A number over everything that the node sees of its files.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let inner = self.inner.lock();
        let mut hash = xxhash_rust::xxh3::Xxh3::new();
        for files in [&inner.parts.files, &inner.parts.snapshots] {
            for (name, bytes) in files.contents() {
                hash.update(name.as_bytes());
                hash.update(&(bytes.len() as u64).to_le_bytes());
                hash.update(&bytes);
            }
        }
        hash.digest()
    }

    /// Waits until what was asked of the disk has reached it.
    pub(crate) async fn settle(&self) {
        let (medium, delay, mut held) = {
            let mut inner = self.inner.lock();
            let medium = inner.parts.medium.clone();
            if medium.queued() == 0 {
                return;
            }
            (medium, inner.delay(), inner.held.subscribe())
        };
        tokio::time::sleep(delay).await;
        // The sender is this disk's, which is there as long as it is waited for.
        let _ = held.wait_for(|held| !held).await;
        // The machine that asked, which may have crashed meanwhile.
        medium.settle();
    }

    /// Whose disk this is; the first to ask is who. A build must support the level that the disk is marked with.
    pub(crate) fn claim(&self, wanted: &Identity, level_max: FeatureLevel) -> Result<(), StartError> {
        let mut inner = self.inner.lock();
        let marked = inner.marked;
        let known = inner.identity.get_or_insert_with(|| wanted.clone());
        known.check_level(marked, level_max, "simulated".as_ref())?;
        wanted.compare(known, "simulated".as_ref())
    }

    /// Has the disk say which feature level it needs.
    pub(crate) fn mark(&self, level: FeatureLevel) {
        self.inner.lock().marked = level;
    }

    /// The feature level that the disk says it needs.
    #[must_use]
    pub fn marked(&self) -> FeatureLevel {
        self.inner.lock().marked
    }

    /// The directory of snapshots.
    pub(crate) fn snapshots(&self) -> Arc<dyn Files> {
        Arc::new(self.inner.lock().parts.snapshots.clone())
    }

    /// Opens, or creates, the journal.
    pub(crate) fn journal(&self, failure: Failure) -> Result<JournalDisk, DiskError> {
        let (files, home) = {
            let inner = self.inner.lock();
            (Arc::new(inner.parts.files.clone()), Box::new(inner.parts.home.clone()))
        };
        JournalDisk::open(files, home, OPTIONS, Hands::Inline, JournalId::random(), failure)
    }
}

impl Inner {
    /// Goes on with other content, as the same disk.
    fn put_in(&mut self, parts: Parts) {
        self.parts = parts;
        self.set_lying(self.lying);
        self.set_full(self.full);
    }

    fn set_lying(&mut self, lying: bool) {
        self.lying = lying;
        self.parts.medium.set_lying(lying);
    }

    fn set_full(&mut self, full: bool) {
        self.full = full;
        let room = full.then_some(0);
        self.parts.files.set_room(room);
        self.parts.snapshots.set_room(room);
    }

    /// How long the next sync takes.
    fn delay(&mut self) -> Duration {
        let [least, most] = SYNC_US;
        let [one_in, times] = SLOW;
        let mut us = least + self.dice.below(most - least);
        if self.dice.below(one_in) == 0 {
            us *= times;
        }
        Duration::from_micros(us) + self.stalled
    }
}
