//! Opening what a node has on disk, in whichever world.

use std::sync::Arc;

use tripod_state::ids::FeatureLevel;

use crate::apply::pin::PinNote;
use crate::base::advice;
use crate::base::error::StartError;
use crate::base::failure::Failure;
use crate::base::options::Options;
use crate::care::rejoin::Marker;
use crate::disk::identity::{self, Identity};
use crate::disk::journal::{self, SimulatedDisk, Space};
use crate::disk::skipped::Skipped;
use crate::disk::{Files, RealFiles, Work};
use crate::log::LogStore;
use crate::offline::repair;
use crate::snapshot::SnapshotStore;

/// What a node has on disk.
pub(crate) struct Storage {
    pub(crate) log: LogStore,
    pub(crate) snapshots: SnapshotStore,
    pub(crate) space: Space,
    pub(crate) marker: Marker,
    pub(crate) pin: PinNote,
    pub(crate) skipped: Skipped,
}

impl Storage {
    /// Opens what the world has for this node. Blocks.
    /// `level_max`: the highest feature level that this build is to support.
    pub(crate) fn open(
        work: Work,
        options: &Options,
        failure: Failure,
        level_max: FeatureLevel,
    ) -> Result<Self, StartError> {
        match work {
            Work::Threads => Self::open_directory(options, failure, level_max),
            Work::Inline(disk) => Self::open_simulated(&disk, options, failure, level_max),
        }
    }

    fn open_directory(
        options: &Options,
        failure: Failure,
        level_max: FeatureLevel,
    ) -> Result<Self, StartError> {
        let disk = identity::open_data(options, level_max)?;
        let snapshots = SnapshotStore::open_directory_for(&options.data.join("snapshots"), level_max);
        let snapshots = snapshots.map_err(|error| no_snapshots(options, &error))?;
        let disk = journal::open(&options.data.join("journal"), disk, failure.clone())?;
        let space = disk.space();
        let log = LogStore::open_in(disk, failure, Work::Threads)?;
        let notes = RealFiles::open(&options.data).map_err(|error| no_snapshots(options, &error))?;
        let notes = Arc::new(notes);
        let skipped = skipped(options, notes.as_ref())?;
        let (marker, pin) = (Marker::new(notes.clone()), PinNote::new(notes));
        let storage = Self { log, snapshots, space, marker, pin, skipped };
        if let Err(error) = check_reach(options, &storage).and_then(|()| check_vote(options, &storage)) {
            storage.log.close();
            return Err(error);
        }
        Ok(storage)
    }

    fn open_simulated(
        disk: &SimulatedDisk,
        options: &Options,
        failure: Failure,
        level_max: FeatureLevel,
    ) -> Result<Self, StartError> {
        disk.claim(&Identity::of(options), level_max)?;
        let work = Work::Inline(disk.clone());
        let snapshots = SnapshotStore::open_for(disk.snapshots(), work.clone(), level_max);
        let snapshots = snapshots.map_err(|error| no_snapshots(options, &error))?;
        let journal = disk.journal(failure.clone())?;
        let space = journal.space();
        let log = LogStore::open_in(journal, failure, work)?;
        let skipped = skipped(options, disk.snapshots().as_ref())?;
        let (marker, pin) = (Marker::new(disk.snapshots()), PinNote::new(disk.snapshots()));
        let storage = Self { log, snapshots, space, marker, pin, skipped };
        check_reach(options, &storage)?;
        check_vote(options, &storage)?;
        Ok(storage)
    }
}

fn no_snapshots(options: &Options, error: &std::io::Error) -> StartError {
    StartError::Storage(format!(
        "T3106 snapshot-io: cannot open the snapshots in {}: {error}; check the disk and permissions",
        options.data.display()
    ))
}

fn skipped(options: &Options, notes: &dyn Files) -> Result<Skipped, StartError> {
    Skipped::read(notes).map_err(|error| {
        StartError::Storage(format!(
            "T3102 log-io: the note of skipped entries in {} cannot be read: {error}",
            options.data.display()
        ))
    })
}

/// The engine would add to the term, and panic.
fn check_vote(options: &Options, storage: &Storage) -> Result<(), StartError> {
    let saved = storage.snapshots.current().and_then(|snapshot| snapshot.meta.last_log_id);
    let last_term = saved.max(storage.log.last()).map_or(0, |last| last.leader_id.term);
    let absurd = storage.log.vote().and_then(|vote| repair::absurd(&vote, last_term));
    let Some(problem) = absurd else { return Ok(()) };
    let data = options.data.display();
    Err(StartError::Storage(format!(
        "T3117 vote-absurd: in {data} {problem}. It came from something that is no node of ours; repair it with \
         `tripod repair vote {data}`, and let only nodes reach the peer port"
    )))
}

/// The state is the newest whole snapshot and what the log holds behind it. A log that begins further on
/// would leave a hole, which the engine does not look for.
fn check_reach(options: &Options, storage: &Storage) -> Result<(), StartError> {
    let saved = storage.snapshots.current().and_then(|snapshot| snapshot.meta.last_log_id);
    let purged = storage.log.purged();
    let Some(purged) = purged.filter(|purged| saved.is_none_or(|saved| saved.index < purged.index)) else {
        return Ok(());
    };
    let found = saved.map_or_else(
        || "there is no whole snapshot".to_owned(),
        |saved| format!("the newest whole snapshot ends at {}", saved.index),
    );
    let data = &options.data;
    Err(StartError::Storage(format!(
        "T3105 snapshot-damaged: the log in {} begins behind index {}, but {found} in {}. {}",
        data.display(),
        purged.index,
        data.join("snapshots").display(),
        advice::rejoin(data)
    )))
}
