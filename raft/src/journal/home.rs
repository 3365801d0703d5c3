//! Where the entries live in the end. The journal asks no more of it than this, so that a test can
//! put something in its place which loses what was not flushed.

use serde::{Deserialize, Serialize};

use crate::journal::frame::JournalId;
use crate::log_store::{Disk, DiskError, MetaKey, SledDisk};

/// A home of the log. It remembers which journal stands in front of it: from then on it is not the
/// whole log, and must not be taken for it.
pub(crate) trait Home: Disk {
    /// The journal that continues this log, if one was ever put in front of it.
    fn journal(&self) -> Result<Option<JournalId>, DiskError>;

    /// Remembers the journal, durably.
    fn adopt(&mut self, journal: JournalId) -> Result<(), DiskError>;
}

/// How the journal's id is stored.
#[derive(Serialize, Deserialize)]
struct Adopted {
    journal: u128,
}

impl Home for SledDisk {
    fn journal(&self) -> Result<Option<JournalId>, DiskError> {
        let adopted: Option<Adopted> = self.get(MetaKey::Journal)?;
        Ok(adopted.map(|adopted| JournalId(adopted.journal)))
    }

    fn adopt(&mut self, journal: JournalId) -> Result<(), DiskError> {
        self.put(MetaKey::Journal, &Adopted { journal: journal.0 })
    }
}
