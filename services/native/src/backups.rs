//! What a node tells about the backups that it makes by itself. Whoever makes them writes it; `Cluster.Status`
//! passes it on.

use tripod_proto::tripod::v1 as wire;

/// The scheduled backups of one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backups {
    /// The directory that they are kept in.
    pub directory: String,
    /// Time from one to the next, in milliseconds.
    pub every_ms: u64,
    /// How many are kept at most, and how many there are.
    pub keep: u32,
    pub kept: u32,
    /// The newest one.
    pub newest: Option<Newest>,
    /// Why the last attempt made none; it is tried again.
    pub failure: Option<String>,
}

/// A backup that was read again from its beginning to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Newest {
    /// Its file's name.
    pub file: String,
    /// The last log index in it.
    pub index: u64,
    /// When it was written, by the node's clock, in milliseconds since the Unix epoch.
    pub saved_ms: u64,
    /// When it was last read and found to be whole, likewise.
    pub verified_ms: u64,
}

impl Backups {
    /// For people and programs elsewhere.
    pub(crate) fn message(&self) -> wire::Backups {
        let newest = self.newest.clone().unwrap_or_default();
        wire::Backups {
            directory: self.directory.clone(),
            every_ms: self.every_ms,
            keep: self.keep,
            kept: self.kept,
            newest_file: newest.file,
            newest_index: newest.index,
            saved_ms: newest.saved_ms,
            verified_ms: newest.verified_ms,
            failure: self.failure.clone().unwrap_or_default(),
        }
    }
}
