//! The live controls of one process that runs with the preloaded library.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

/// Bytes of a control file; the library maps as many.
const FILE_BYTES: u64 = 4096;

/// The words of the file, in the order of `preload/faults.c`.
#[derive(Debug, Clone, Copy)]
enum Word {
    SyncDelayUs,
    SyncStalled,
    SyncError,
    SyncPasses,
    SyncSwallowed,
    WriteError,
    WallShiftMs,
    Attached,
    Syncs,
    SyncsFailed,
    SyncsWaiting,
    Writes,
    WritesFailed,
    WallReads,
}

/// What the library has counted since the file was made, over all lives of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Processes that the library was loaded into. 0 means that no fault reaches the node.
    pub attached: u64,
    /// Calls of fsync, fdatasync and sync_file_range.
    pub syncs: u64,
    /// Of these, failed by [`Controls::fail_syncs`].
    pub syncs_failed: u64,
    /// Calls that wait at this moment, for a delay or a stall.
    pub syncs_waiting: u64,
    /// Writes to regular files other than the log.
    pub writes: u64,
    /// Of these, failed by [`Controls::fail_writes`].
    pub writes_failed: u64,
    /// Reads of the wall clock.
    pub wall_reads: u64,
}

/// Steers the storage and the wall clock of one node while it runs. A change counts from the node's next call
/// on; faults stay over restarts of the node until they are healed.
#[derive(Debug)]
pub struct Controls {
    file: File,
}

impl Controls {
    /// Makes the file, without any fault.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn create(path: &Path) -> anyhow::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path);
        let file = file.with_context(|| format!("cannot make {}", path.display()))?;
        file.set_len(FILE_BYTES)?;
        Ok(Self { file })
    }

    /// Every flush takes this much longer; zero heals.
    pub fn delay_syncs(&self, delay: Duration) -> anyhow::Result<()> {
        self.set(Word::SyncDelayUs, u64::try_from(delay.as_micros())?)
    }

    /// Flushes do not return until this is called with `false`.
    pub fn stall_syncs(&self, stalled: bool) -> anyhow::Result<()> {
        self.set(Word::SyncStalled, stalled.into())
    }

    /// Flushes fail with `errno` once `passes` more have succeeded.
    pub fn fail_syncs(&self, errno: i32, passes: u64) -> anyhow::Result<()> {
        self.set(Word::SyncPasses, passes)?;
        self.set(Word::SyncError, u64::try_from(errno)?)
    }

    /// Flushes say that they have succeeded and do nothing: a disk that lies, and the planted mistake that
    /// shows that a power cut finds what is not durable.
    pub fn swallow_syncs(&self, swallowed: bool) -> anyhow::Result<()> {
        self.set(Word::SyncSwallowed, swallowed.into())
    }

    /// Writes to regular files fail with `errno`; with ENOSPC only those that make a file longer, as on a
    /// full disk. A disk that is really full, for which one needs root, is [`Disk::fill`](super::Disk::fill).
    /// 0 heals.
    pub fn fail_writes(&self, errno: i32) -> anyhow::Result<()> {
        self.set(Word::WriteError, u64::try_from(errno)?)
    }

    /// The wall clock goes this many milliseconds wrong; 0 heals. Monotonic clocks are not touched.
    pub fn shift_wall_clock(&self, shift_ms: i64) -> anyhow::Result<()> {
        self.set(Word::WallShiftMs, u64::from_ne_bytes(shift_ms.to_ne_bytes()))
    }

    /// Ends every fault.
    pub fn heal(&self) -> anyhow::Result<()> {
        // The error first, so that what a stall lets go does not fail.
        for word in [Word::SyncError, Word::SyncPasses, Word::WriteError, Word::SyncSwallowed] {
            self.set(word, 0)?;
        }
        for word in [Word::SyncDelayUs, Word::SyncStalled, Word::WallShiftMs] {
            self.set(word, 0)?;
        }
        Ok(())
    }

    /// What was counted so far. A killed process leaves what it waited for in [`Counts::syncs_waiting`]; call
    /// [`Self::forget_waiting`] before the next one.
    pub fn counts(&self) -> anyhow::Result<Counts> {
        Ok(Counts {
            attached: self.get(Word::Attached)?,
            syncs: self.get(Word::Syncs)?,
            syncs_failed: self.get(Word::SyncsFailed)?,
            syncs_waiting: self.get(Word::SyncsWaiting)?,
            writes: self.get(Word::Writes)?,
            writes_failed: self.get(Word::WritesFailed)?,
            wall_reads: self.get(Word::WallReads)?,
        })
    }

    /// Sets [`Counts::syncs_waiting`] to 0, for a node that does not run.
    pub fn forget_waiting(&self) -> anyhow::Result<()> {
        self.set(Word::SyncsWaiting, 0)
    }

    fn set(&self, word: Word, value: u64) -> anyhow::Result<()> {
        self.file.write_all_at(&value.to_ne_bytes(), offset(word)).context("cannot write a fault's controls")
    }

    fn get(&self, word: Word) -> anyhow::Result<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, offset(word)).context("cannot read a fault's controls")?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

fn offset(word: Word) -> u64 {
    word as u64 * 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn healing_leaves_the_counts() {
        let directory = tempfile::tempdir().unwrap();
        let controls = Controls::create(&directory.path().join("control")).unwrap();
        controls.set(Word::Syncs, 7).unwrap();
        controls.shift_wall_clock(-3_600_000).unwrap();
        controls.fail_syncs(5, 100).unwrap();
        controls.heal().unwrap();
        assert_eq!(controls.get(Word::WallShiftMs).unwrap(), 0);
        assert_eq!(controls.get(Word::SyncError).unwrap(), 0);
        assert_eq!(controls.counts().unwrap(), Counts { syncs: 7, ..Counts::default() });
    }
}
