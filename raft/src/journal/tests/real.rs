//! On real files, with threads, in front of sled.

use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

use openraft::StorageError;
use openraft::storage::{RaftLogReader as _, RaftLogStorage as _, RaftLogStorageExt as _};
use openraft::testing::log::{StoreBuilder, Suite};
use tempfile::TempDir;

use crate::failure::Failure;
use crate::journal;
use crate::log_store::test_entries::{entries, entry, id};
use crate::log_store::{Change, Disk as _, DiskError, LogStore, SledDisk};
use crate::rejoin;
use crate::snapshot::SnapshotStore;
use crate::state_machine::StateMachine;
use crate::test_support::quiet_hooks;
use crate::types::{Entry, LogId, Types, Vote};

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

/// Appends and commits until sled has taken over a part of the log.
async fn grow(store: &mut LogStore, from: u64) -> LogId {
    let mut last = id(1, from);
    for first in (from..from + 400).step_by(10) {
        append(store, entries(1, first..first + 10, 200)).await;
        last = id(1, first + 9);
        store.save_committed(Some(last)).await.unwrap();
    }
    last
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
    let last = grow(&mut store, 0).await;
    store.purge(id(1, 20)).await.unwrap();
    assert_eq!(all(&mut store).await, entries(1, 21..400, 200));
    store.close();
    let moved = held(directory.path());
    assert!(moved.len() > 100, "sled holds {} entries", moved.len());

    let mut store = open(directory.path()).unwrap();
    assert_eq!(all(&mut store).await, entries(1, 21..400, 200));
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
    for round in 0..5 {
        let last = grow(&mut store, round * 400).await;
        store.purge(last).await.unwrap();
    }
    store.close();
    let files = std::fs::read_dir(directory.path().join("journal")).unwrap().count();
    assert!(files <= 12, "{files} segments of 16 KiB after 2,000 entries of 200 bytes");
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
    for first in (90..490).step_by(10) {
        append(&mut store, entries(2, first..first + 10, 200)).await;
        store.save_committed(Some(id(2, first + 9))).await.unwrap();
    }
    expected.extend(entries(2, 90..490, 200));
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
    grow(&mut store, 0).await;
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
        refusal.starts_with("TRIPOD-LOG-DAMAGED") && refusal.contains(&rejoin::advice(directory.path())),
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
    assert!(refusal.starts_with("TRIPOD-LOG-DAMAGED") && refusal.contains("journal/"), "{refusal}");
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
    assert!(refusal.starts_with("TRIPOD-LOG-DAMAGED"), "{refusal}");
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
    let reason = tokio::time::timeout(Duration::from_secs(20), failure.wait()).await.unwrap();
    assert!(reason.starts_with("TRIPOD-LOG-DAMAGED") && reason.contains(".segment"), "{reason}");
    store.close();
}
