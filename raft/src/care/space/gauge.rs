//! Measures this node's disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::DiskStatus;
use crate::disk::journal::Space;

/// Bytes kept besides room for a snapshot: two segments of the journal, one that is on its way to sled
/// with what sled needs for it, and what may be written between two looks at the disk.
const RESERVE_BYTES: u64 = 24 << 20;

/// This node's disk. Clones tell the same.
#[derive(Debug, Clone)]
pub(crate) struct Gauge {
    data: Arc<Path>,
    snapshots: PathBuf,
    space: Space,
    last: Arc<Mutex<DiskStatus>>,
}

impl Gauge {
    /// Measures the file system of a data directory; tells `space` what it finds.
    pub(crate) fn new(data: &Path, space: Space) -> Self {
        let last = DiskStatus {
            directory: data.display().to_string(),
            free_bytes: u64::MAX,
            ..DiskStatus::default()
        };
        let snapshots = data.join("snapshots");
        Self { data: data.into(), snapshots, space, last: Arc::new(Mutex::new(last)) }
    }

    /// What was found last.
    pub(crate) fn last(&self) -> DiskStatus {
        self.last.lock().clone()
    }

    /// Measures. `unsaved_bytes`: what was applied since the last snapshot, by which the next may be
    /// larger. Blocks.
    pub(crate) fn measure(&self, unsaved_bytes: u64) -> DiskStatus {
        let free_bytes = match free_bytes(&self.data) {
            Ok(free) => free,
            Err(error) => {
                tracing::debug!(%error, "the disk cannot be measured");
                u64::MAX
            }
        };
        let reserve_bytes = RESERVE_BYTES + largest_file(&self.snapshots) + unsaved_bytes;
        let mut last = self.last.lock();
        // Once full it takes a quarter more, so that a node on the brink does not change its mind at every
        // look.
        let wanted = if last.full { reserve_bytes + reserve_bytes / 4 } else { reserve_bytes };
        let full = free_bytes < wanted || self.space.is_out_of_segments();
        if full != last.full {
            tracing::info!(free_bytes, reserve_bytes, full, directory = %last.directory, "disk space");
        }
        self.space.set_tight(full);
        last.free_bytes = free_bytes;
        last.reserve_bytes = reserve_bytes;
        last.full = full;
        last.clone()
    }
}

fn free_bytes(directory: &Path) -> io::Result<u64> {
    let found = nix::sys::statvfs::statvfs(directory)?;
    Ok(found.blocks_available().saturating_mul(found.fragment_size()))
}

/// Bytes of the largest file in a directory; 0 if there is none, or it cannot be read.
fn largest_file(directory: &Path) -> u64 {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    files.filter_map(|file| Some(file.metadata().ok()?.len())).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn the_reserve_has_room_for_another_snapshot() {
        let directory = TempDir::new().unwrap();
        fs::create_dir(directory.path().join("snapshots")).unwrap();
        let gauge = Gauge::new(directory.path(), Space::default());
        let empty = gauge.measure(0);
        assert!(empty.free_bytes > 0 && empty.free_bytes < u64::MAX);
        assert_eq!(empty.reserve_bytes, RESERVE_BYTES);
        fs::write(directory.path().join("snapshots").join("one.snap"), [0; 5000]).unwrap();
        fs::write(directory.path().join("snapshots").join("two.snap"), [0; 3000]).unwrap();
        assert_eq!(gauge.measure(11).reserve_bytes, RESERVE_BYTES + 5011);
    }

    #[test]
    fn what_cannot_be_reserved_makes_a_disk_full_and_it_clears() {
        let directory = TempDir::new().unwrap();
        let space = Space::default();
        let gauge = Gauge::new(directory.path(), space.clone());
        assert!(gauge.measure(u64::MAX / 4).full);
        assert!(space.is_low());
        assert!(!gauge.measure(0).full);
        assert!(!space.is_low());
        space.set_out_of_segments(true);
        assert!(gauge.measure(0).full, "the journal knows better");
    }
}
