//! The journal in front of the log's home: what takes the one flush of the commit path.
//!
//! A change is durable when it is in the journal. Committed entries move on to the home, sled, when
//! the journal holds more than it should; entries that a snapshot has purged before never do. How it
//! lies on disk is in [`frame`], how it is opened, and what is refused then, in [`recovery`].
//!
//! | module | what |
//! |---|---|
//! | `disk` | journal, home and helpers as the log's [`Disk`](crate::disk::Disk) |
//! | `engine`, `staging` | the journal without threads: changes become durable frames |
//! | `pool`, `space` | segment files: made ahead, recycled, and what happens when the disk is full |
//! | `moves`, `mover`, `home` | what goes to the home, and when |
//! | `index`, `reader` | reading entries from any thread |
//! | `inspect` | what the files hold, for people |
//! | `frame`, `record`, `state` | the bytes |
//! | `helper` | the seam to threads |
//! | `fuzzing` | a start on hostile files |
//! | `simulated` | what stands behind this seam, and that to the file system, in a simulation |

mod disk;
mod engine;
mod frame;
mod fuzzing;
mod helper;
mod home;
mod home_check;
mod index;
mod inspect;
mod mover;
mod moves;
mod pool;
mod reader;
mod record;
mod recovery;
mod replay;
mod scan;
mod simulated;
mod space;
mod staging;
mod state;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use crate::base::failure::Failure;
use crate::disk::{DiskError, RealFiles, SledDisk};

use engine::JournalOptions;
use frame::JournalId;
use helper::Hands;

pub(crate) use disk::JournalDisk;
pub(crate) use fuzzing::recover_from;
pub(crate) use home::Home;
pub(crate) use inspect::inspect;
pub(crate) use record::Checkpoint as JournalCheckpoint;
pub(crate) use space::Space;
pub(crate) use state::LogValues as JournalValues;

pub use inspect::SegmentFacts;
pub use simulated::SimulatedDisk;
#[cfg(test)]
pub(crate) use simulated::{Loss, Medium, SimFiles};

/// The options of a node's journal.
///
/// 4 MiB is about 12,000 small entries: enough that the change of a segment does not count, little
/// enough that a node starts with two of them in a few milliseconds. 96 MiB of full segments are what a
/// log holds between two snapshots, which are 64 MiB of entries apart at most, and what comes while one is
/// written: so entries are purged before they would move, which would have each written once more.
const NODE_OPTIONS: JournalOptions = JournalOptions { segment_bytes: 4 << 20, held_max: 24 };

/// Opens, or creates, the journal of the log in `home` in a directory whose parent exists. Blocks.
///
/// # Errors
/// [`DiskError`]: the texts are for operators.
pub(crate) fn open(directory: &Path, home: SledDisk, failure: Failure) -> Result<JournalDisk, DiskError> {
    open_with(directory, home, NODE_OPTIONS, failure)
}

fn open_with(
    directory: &Path,
    home: SledDisk,
    options: JournalOptions,
    failure: Failure,
) -> Result<JournalDisk, DiskError> {
    let files = RealFiles::open(directory).map_err(|error| DiskError::Io {
        action: "open the journal of",
        directory: directory.display().to_string(),
        cause: error.to_string(),
    })?;
    let id = JournalId::random();
    JournalDisk::open(Arc::new(files), Box::new(home), options, Hands::Threads, id, failure)
}

/// [`open`], so small that entries go to sled soon.
#[cfg(test)]
pub(crate) fn open_small(
    directory: &Path,
    home: SledDisk,
    failure: Failure,
) -> Result<JournalDisk, DiskError> {
    open_with(directory, home, JournalOptions { segment_bytes: 16 << 10, held_max: 1 }, failure)
}
