//! Opening what a node has on disk, in whichever world.

use crate::StartError;
use crate::failure::Failure;
use crate::identity::{self, Identity};
use crate::journal::{self, SimulatedDisk, Space};
use crate::log_store::LogStore;
use crate::options::Options;
use crate::snapshot::SnapshotStore;
use crate::world::Work;

/// What a node has on disk.
pub(crate) struct Storage {
    pub(crate) log: LogStore,
    pub(crate) snapshots: SnapshotStore,
    pub(crate) space: Space,
}

impl Storage {
    /// Opens what the world has for this node. Blocks.
    pub(crate) fn open(work: Work, options: &Options, failure: Failure) -> Result<Self, StartError> {
        match work {
            Work::Threads => Self::open_directory(options, failure),
            Work::Inline(disk) => Self::open_simulated(&disk, options, failure),
        }
    }

    fn open_directory(options: &Options, failure: Failure) -> Result<Self, StartError> {
        let disk = identity::open_data(options)?;
        let snapshots = SnapshotStore::open_directory(&options.data.join("snapshots"));
        let snapshots = snapshots.map_err(|error| no_snapshots(options, &error))?;
        let disk = journal::open(&options.data.join("journal"), disk, failure.clone())?;
        let space = disk.space();
        let log = LogStore::open_in(disk, failure, Work::Threads)?;
        Ok(Self { log, snapshots, space })
    }

    fn open_simulated(disk: &SimulatedDisk, options: &Options, failure: Failure) -> Result<Self, StartError> {
        disk.claim(&Identity::of(options))?;
        let work = Work::Inline(disk.clone());
        let snapshots = SnapshotStore::open(disk.snapshots(), work.clone());
        let snapshots = snapshots.map_err(|error| no_snapshots(options, &error))?;
        let journal = disk.journal(failure.clone())?;
        let space = journal.space();
        let log = LogStore::open_in(journal, failure, work)?;
        Ok(Self { log, snapshots, space })
    }
}

fn no_snapshots(options: &Options, error: &std::io::Error) -> StartError {
    StartError::Storage(format!(
        "TRIPOD-SNAPSHOT-IO: cannot open the snapshots in {}: {error}; check the disk and permissions",
        options.data.display()
    ))
}
