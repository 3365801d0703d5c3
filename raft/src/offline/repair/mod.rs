//! Repairs of the data directory of a stopped node, for what a hostile or mad peer has left there. Each changes one thing,
//! which is said, and nothing else; what cannot be repaired so is refused with nothing changed.
//!
//! | module | what |
//! |---|---|
//! | `vote` | a vote in a term that no election of this cluster can have reached |
//! | `entry` | a committed entry that no build can read |

mod entry;
mod plant;
#[cfg(test)]
mod tests;
mod vote;

use std::path::Path;

use crate::base::failure::Failure;
use crate::base::types::Entry;
use crate::disk::identity::Identity;
use crate::disk::{Disk as _, DiskError, Loaded, MetaKey, SledDisk, journal};

pub use entry::{PassedOver, pass_over};
#[doc(hidden)]
pub use plant::plant;
pub(crate) use vote::absurd;
pub use vote::{RepairedVote, vote};

/// Why nothing was repaired. The texts are for operators.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is nothing to repair, or it is not what was named.
    #[error("{0}")]
    Refused(String),
    /// It is no data directory, a node uses it, or it cannot be read or written.
    #[error("{0}")]
    Storage(String),
}

impl From<DiskError> for Error {
    fn from(error: DiskError) -> Self {
        Self::Storage(error.to_string())
    }
}

/// The log of a stopped node, open to be changed: no node can start meanwhile.
struct OpenLog {
    disk: journal::JournalDisk,
    loaded: Loaded,
    node: u64,
}

impl OpenLog {
    /// Opens the log as a node would; gives each entry to `each`.
    fn open(data: &Path, each: &mut dyn FnMut(Entry)) -> Result<Self, Error> {
        let place = data.join("log");
        if !place.join("db").exists() {
            return Err(Error::Storage(format!(
                "T5302 doctor-no-data: there is no log in {}; name the directory that the node has as --data",
                data.display()
            )));
        }
        let home = SledDisk::open(&place)?;
        let identity = home.get::<Identity>(MetaKey::Identity)?;
        let node = identity.map(|identity| identity.node()).ok_or_else(|| {
            Error::Storage(format!(
                "T4101 identity-unreadable: the log in {} does not say whose it is",
                data.display()
            ))
        })?;
        let mut disk = journal::open(&data.join("journal"), home, Failure::new())?;
        let loaded = disk.load(each)?;
        Ok(Self { disk, loaded, node })
    }

    fn close(self) {
        self.disk.reader().close();
    }
}
