//! On real files, with threads, in front of sled.

use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Instant;

use openraft::StorageError;
use openraft::storage::{RaftLogReader as _, RaftLogStorage as _, RaftLogStorageExt as _};
use openraft::testing::log::{StoreBuilder, Suite};
use tempfile::TempDir;
use tripod_wait::deadline;

use crate::apply::state_machine::StateMachine;
use crate::base::advice;
use crate::base::failure::Failure;
use crate::base::test_entries::{entries, entry, id};
use crate::base::types::{Entry, LogId, Types, Vote};
use crate::disk::{Change, Disk as _, DiskError, SledDisk, journal};
use crate::log::LogStore;
use crate::snapshot::SnapshotStore;
use crate::test_support::quiet_hooks;

fn sled(directory: &Path) -> SledDisk {
    SledDisk::open(&directory.join("log")).unwrap()
}

fn open(directory: &Path) -> Result<LogStore, DiskError> {
    let failure = Failure::new();
    let disk = journal::open_small(&directory.join("journal"), sled(directory), failure.clone())?;
    LogStore::open_bounded(disk, failure, 20_000)
}

fn refusal(directory: &Path) -> String {
    open(directory).err().expect("a damaged log is refused").to_string()
}

async fn append(store: &mut LogStore, entries: Vec<Entry>) {
    store.blocking_append(entries).await.unwrap();
}

async fn all(store: &mut LogStore) -> Vec<Entry> {
    store.try_get_log_entries(..).await.unwrap()
}

/// What sled holds. The log must be closed.
fn held(directory: &Path) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut disk = sled(directory);
    disk.load(&mut |entry| entries.push(entry)).unwrap();
    disk.reader().close();
    entries
}

/// The numbers of the segment files, in order. A file that is renamed meanwhile may be missing.
fn segments(directory: &Path) -> Vec<u64> {
    let files = std::fs::read_dir(directory.join("journal")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut numbers: Vec<u64> =
        names.filter_map(|name| name.strip_suffix(".segment")?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Appends and commits ten entries at a time until sled has taken over four segments, which hold more than
/// 50 entries each. The mover is a thread: how far it is behind the writer is the machine's affair.
async fn grow(store: &mut LogStore, directory: &Path, term: u64, from: u64) -> LogId {
    let lowest = || segments(directory).first().copied().unwrap_or(0);
    let goal = lowest() + 4;
    let began = Instant::now();
    for first in (from..).step_by(10) {
        append(store, entries(term, first..first + 10, 200)).await;
        let last = id(term, first + 9);
        store.save_committed(Some(last)).await.unwrap();
        // A file that is needed no more gets another number, or is deleted.
        if lowest() >= goal {
            return last;
        }
        assert!(began.elapsed() < deadline(), "sled took nothing over until {last}");
    }
    unreachable!("the range has no end")
}

struct Builder;

impl StoreBuilder<Types, LogStore, StateMachine, TempDir> for Builder {
    async fn build(&self) -> Result<(TempDir, LogStore, StateMachine), StorageError<Types>> {
        let directory = TempDir::new().unwrap();
        let failure = Failure::new();
        let disk = journal::open(&directory.path().join("journal"), sled(directory.path()), failure.clone());
        let store = LogStore::open(disk.unwrap(), failure).unwrap();
        let snapshots = SnapshotStore::open_directory(&directory.path().join("snapshots")).unwrap();
        let machine = StateMachine::new(snapshots, "test".into(), quiet_hooks(), Failure::new());
        Ok((directory, store, machine))
    }
}

#[test]
fn openrafts_own_suite_passes() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(Suite::test_all(Builder)).unwrap();
}

#[tokio::test]
async fn a_log_that_went_through_sled_is_whole_after_a_restart() {
    let directory = TempDir::new().unwrap();
    let mut store = open(directory.path()).unwrap();
    store.save_vote(&Vote::new(3, 1)).await.unwrap();
    let last = grow(&mut store, directory.path(), 1, 0).await;
    let expected = entries(1, 21..last.index + 1, 200);
    store.purge(id(1, 20)).await.unwrap();
    assert_eq!(all(&mut store).await, expected);
    store.close();
    let moved = held(directory.path());
    assert!(moved.len() > 100, "sled holds {} entries", moved.len());

    let mut store = open(directory.path()).unwrap();
    assert_eq!(all(&mut store).await, expected);
    assert_eq!(store.read_vote().await.unwrap(), Some(Vote::new(3, 1)));
    assert_eq!(store.read_committed().await.unwrap(), Some(last));
    let state = store.get_log_state().await.unwrap();
    assert_eq!((state.last_purged_log_id, state.last_log_id), (Some(id(1, 20)), Some(last)));
    store.close();
}

#[tokio::test]
async fn files_are_used_again_and_do_not_grow_in_number() {
    let directory = TempDir::new().unwrap();
    let mut store = open(directory.path()).unwrap();
    let mut next = 0;
    for _ in 0..5 {
        let last = grow(&mut store, directory.path(), 1, next).await;
        store.purge(last).await.unwrap();
        next = last.index + 1;
    }
    assert!(*segments(directory.path()).last().unwrap() > 20, "more than 20 segments were begun");
    // A mover that was far behind leaves many, which go one by one.
    let began = Instant::now();
    while segments(directory.path()).len() > 5 {
        append(&mut store, entries(1, next..next + 1, 200)).await;
        store.purge(id(1, next)).await.unwrap();
        next += 1;
        assert!(
            began.elapsed() < deadline(),
            "segments {:?} after {next} entries",
            segments(directory.path())
        );
    }
    store.close();
}

/// The layout before there was a journal: everything in sled, what is not committed as well.
#[tokio::test]
async fn a_log_without_a_journal_is_continued() {
    let directory = TempDir::new().unwrap();
    let mut store = LogStore::open(sled(directory.path()), Failure::new()).unwrap();
    store.save_vote(&Vote::new(1, 1)).await.unwrap();
    append(&mut store, entries(1, 0..100, 50)).await;
    store.save_committed(Some(id(1, 80))).await.unwrap();
    store.purge(id(1, 9)).await.unwrap();
    store.close();

    let mut store = open(directory.path()).unwrap();
    assert_eq!(all(&mut store).await, entries(1, 10..100, 50));
    assert_eq!(store.read_vote().await.unwrap(), Some(Vote::new(1, 1)));
    // A new leader cuts what sled holds but was never committed.
    store.truncate_after(Some(id(1, 84))).await.unwrap();
    append(&mut store, entries(2, 85..90, 50)).await;
    let mut expected = entries(1, 10..85, 50);
    expected.extend(entries(2, 85..90, 50));
    assert_eq!(all(&mut store).await, expected);
    store.close();

    let mut store = open(directory.path()).unwrap();
    assert_eq!(all(&mut store).await, expected);
    let last = grow(&mut store, directory.path(), 2, 90).await;
    expected.extend(entries(2, 90..last.index + 1, 200));
    assert_eq!(all(&mut store).await, expected);
    store.close();
    assert!(held(directory.path()).iter().any(|entry| entry.log_id == id(2, 95)), "the move goes on");
    let mut store = open(directory.path()).unwrap();
    assert_eq!(all(&mut store).await, expected);
    store.close();
}

#[tokio::test]
async fn an_entry_larger_than_a_segment_is_kept() {
    let directory = TempDir::new().unwrap();
    let mut store = open(directory.path()).unwrap();
    let mut expected = entries(1, 0..3, 100);
    expected.push(entry(1, 3, 3 << 20));
    expected.extend(entries(1, 4..6, 100));
    append(&mut store, expected.clone()).await;
    store.save_committed(Some(id(1, 5))).await.unwrap();
    assert_eq!(all(&mut store).await, expected);
    store.close();
    let mut store = open(directory.path()).unwrap();
    assert_eq!(all(&mut store).await, expected);
    append(&mut store, entries(1, 6..200, 200)).await;
    store.save_committed(Some(id(1, 199))).await.unwrap();
    append(&mut store, entries(1, 200..400, 200)).await;
    store.close();
    let mut store = open(directory.path()).unwrap();
    expected.extend(entries(1, 6..400, 200));
    assert_eq!(all(&mut store).await, expected);
    store.close();
}

#[tokio::test]
async fn a_sled_that_forgot_the_end_of_the_log_refuses_the_start() {
    let directory = TempDir::new().unwrap();
    let mut store = open(directory.path()).unwrap();
    grow(&mut store, directory.path(), 1, 0).await;
    store.close();
    let moved = held(directory.path());
    let mut disk = sled(directory.path());
    disk.load(&mut |_| ()).unwrap();
    disk.write(&[Change::TruncateAfter(Some(moved[0].log_id))]).unwrap();
    disk.sync().unwrap();
    disk.reader().close();
    drop(disk);
    let refusal = refusal(directory.path());
    assert!(
        refusal.starts_with("T3101 log-damaged") && refusal.contains(&advice::rejoin(directory.path())),
        "{refusal}"
    );
}

#[tokio::test]
async fn a_missing_journal_refuses_the_start() {
    let directory = TempDir::new().unwrap();
    let mut store = open(directory.path()).unwrap();
    append(&mut store, entries(1, 0..3, 10)).await;
    store.close();
    std::fs::remove_dir_all(directory.path().join("journal")).unwrap();
    let refusal = refusal(directory.path());
    assert!(refusal.starts_with("T3101 log-damaged") && refusal.contains("journal/"), "{refusal}");
}

#[tokio::test]
async fn a_journal_of_another_node_refuses_the_start() {
    let (mine, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    for directory in [&mine, &other] {
        let mut store = open(directory.path()).unwrap();
        append(&mut store, entries(1, 0..3, 10)).await;
        store.close();
    }
    let journal = mine.path().join("journal");
    std::fs::remove_dir_all(&journal).unwrap();
    std::fs::rename(other.path().join("journal"), &journal).unwrap();
    let refusal = refusal(mine.path());
    assert!(refusal.starts_with("T3101 log-damaged"), "{refusal}");
}

/// Nobody waits for the mover, so its failure must end the node by itself.
#[tokio::test]
async fn a_journal_that_cannot_be_read_back_ends_the_node() {
    let directory = TempDir::new().unwrap();
    let failure = Failure::new();
    let files = directory.path().join("journal");
    let disk = journal::open_small(&files, sled(directory.path()), failure.clone()).unwrap();
    let mut store = LogStore::open(disk, failure.clone()).unwrap();
    append(&mut store, entries(1, 0..150, 200)).await;
    let oldest =
        std::fs::OpenOptions::new().write(true).open(files.join("0000000000000001.segment")).unwrap();
    oldest.write_all_at(b"damage", 500).unwrap();
    store.save_committed(Some(id(1, 149))).await.unwrap();
    // The node may fail while this is still being written.
    let _ = store.blocking_append(entries(1, 150..151, 10)).await;
    let reason = tripod_wait::within("the end of the node", failure.wait()).await;
    assert!(reason.starts_with("T3101 log-damaged") && reason.contains(".segment"), "{reason}");
    store.close();
}
