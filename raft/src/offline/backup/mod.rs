//! Snapshots as backups: taken from a running node, checked anywhere, and made the beginning of a new
//! cluster.
//!
//! A backup is a snapshot file as every node writes them for itself; the module `snapshot` has the layout. It
//! names its cluster and the last entry in it, and ends with a hash of everything before. Whoever keeps it sealed
//! opens it, and hands over the content.
//!
//! | module | what |
//! |---|---|
//! | `save` | a node's state as a stream of bytes, while it serves |
//! | `verify` | everything that a file promises, checked without a cluster |
//! | `restore` | the data directory of one node of a new cluster |
//! | `plan` | what is asked of `restore`, and the new cluster's id |
//! | `note` | the note that a directory was restored, for its first start |
//! | `pace` | how fast all that is done beside a node that serves |
//! | `file` | files outside of a data directory, which are read only, and contents that others opened |

mod file;
mod note;
mod pace;
mod plan;
mod restore;
mod save;
#[cfg(test)]
mod tests;
mod verify;

pub(crate) use file::ReadOnlyFile;
pub(crate) use note::RestoredNote;
pub(crate) use save::{Saves, SavesFull, save};

pub use file::Content;
pub use pace::{Pace, Walk};
pub use plan::Plan;
pub use restore::{INDEX_STEP, Restored, restore, restore_content};
pub use save::Saving;
pub use verify::{Contents, verify, verify_at, verify_content};

/// Header and state of a whole file, for those who build on them. Blocks.
pub(crate) fn read(file: &std::path::Path) -> Result<(crate::snapshot::Header, tripod_state::State), Error> {
    verify::read(file, Pace::unlimited()).map(|(_, header, state)| (header, state))
}

/// Why a snapshot is not begun.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SaveError {
    /// So many are sent to clients already.
    #[error("it sends {max} snapshots already")]
    Full { max: usize },
    /// The node is stopping, or has stopped.
    #[error("{0}")]
    Stopped(String),
}

/// Why a backup could not be checked or restored. Nothing was changed. The texts are for operators.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file is no whole snapshot.
    #[error("{0}")]
    Damaged(String),
    /// What was asked contradicts itself, or the file.
    #[error("{0}")]
    Plan(String),
    /// The data directory is not empty.
    #[error("{0}")]
    Used(String),
    /// A disk failed, or has no room.
    #[error("{0}")]
    Io(String),
}
