//! Reading entries that are in sled, from any thread.

use parking_lot::RwLock;

use crate::base::types::{Entry, entry_bytes};
use crate::disk::home::chunk;
use crate::disk::home::keyspace::ChunkKey;
use crate::disk::home::sled_disk::sled_error;
use crate::disk::{DiskError, OldEntries};

/// Reads chunks from any thread.
pub(super) struct SledReader {
    pub(super) directory: String,
    /// `None` after the close: a tree that is held anywhere keeps sled's lock.
    pub(super) tree: RwLock<Option<sled::Tree>>,
}

impl SledReader {
    /// The entries of the chunk that would hold `index`; it may end before it.
    fn chunk_with(&self, index: u64) -> Result<Option<Vec<Entry>>, DiskError> {
        let guard = self.tree.read();
        let tree = guard.as_ref().ok_or(DiskError::Closed)?;
        let upper = ChunkKey { first: index, part: u16::MAX };
        let [low, _] = ChunkKey::ALL;
        let Some(record) = tree.range(low.bytes()..=upper.bytes()).next_back() else { return Ok(None) };
        let (key, _) = record.map_err(|error| sled_error(&self.directory, "read", &error))?;
        let last_part = ChunkKey::parse(&key).expect("the range holds chunk keys only");
        read_chunk(tree, &self.directory, last_part.first, last_part.part.saturating_add(1)).map(Some)
    }
}

impl OldEntries for SledReader {
    fn read(&self, start: u64, end: u64, bytes_max: usize) -> Result<Vec<Entry>, DiskError> {
        let mut found = Vec::new();
        let mut bytes = 0;
        let mut index = start;
        while index < end && bytes < bytes_max {
            let Some(entries) = self.chunk_with(index)? else { break };
            let wanted = entries.into_iter().filter(|e| (index..end).contains(&e.log_id.index));
            let before = found.len();
            for entry in wanted {
                if bytes >= bytes_max {
                    break;
                }
                bytes += entry_bytes(&entry);
                found.push(entry);
            }
            let read = (found.len() - before) as u64;
            if read == 0 {
                break;
            }
            index += read;
        }
        Ok(found)
    }

    fn close(&self) {
        *self.tree.write() = None;
    }
}

/// The entries of the chunk that begins at `first` and has so many parts.
pub(super) fn read_chunk(
    tree: &sled::Tree,
    directory: &str,
    first: u64,
    count: u16,
) -> Result<Vec<Entry>, DiskError> {
    let mut parts = Vec::with_capacity(usize::from(count));
    for part in 0..count {
        let value = tree.get(ChunkKey { first, part }.bytes());
        parts.extend(value.map_err(|error| sled_error(directory, "read", &error))?);
    }
    chunk::unpack(first, &parts).map_err(|damage| DiskError::damaged(directory, damage))
}
