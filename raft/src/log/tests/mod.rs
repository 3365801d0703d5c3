//! The store against openraft's own suite, and against restarts and damage.

mod model;
mod purge;
mod stall;

use std::path::Path;

use openraft::storage::{RaftLogReader as _, RaftLogStorage as _, RaftLogStorageExt as _};
use openraft::testing::log::{StoreBuilder, Suite};
use openraft::vote::RaftLeaderId as _;
use openraft::{StorageError, alias};
use tempfile::TempDir;

use super::*;
use crate::apply::state_machine::StateMachine;
use crate::base::test_entries::{entries, entry, id};
use crate::disk::home::chunk::{self, PART_BYTES};
use crate::disk::home::keyspace::ChunkKey;
use crate::disk::{Loaded, SledDisk};
use crate::snapshot::SnapshotStore;
use crate::test_support::quiet_hooks;

fn open(directory: &Path) -> Result<LogStore, DiskError> {
    SledDisk::open(&directory.join("log")).and_then(|disk| LogStore::open(disk, Failure::new()))
}

fn reopened(store: LogStore, directory: &Path) -> Result<LogStore, DiskError> {
    store.close();
    drop(store);
    open(directory)
}

/// What is stored, past the log store's checks. The log must be closed.
fn tree(directory: &Path) -> (SledDisk, sled::Tree) {
    let disk = SledDisk::open(&directory.join("log")).unwrap();
    let tree = disk.tree();
    (disk, tree)
}

fn chunk_keys(tree: &sled::Tree) -> Vec<ChunkKey> {
    tree.iter().filter_map(|record| ChunkKey::parse(&record.unwrap().0)).collect()
}

async fn append(store: &mut LogStore, entries: Vec<Entry>) {
    store.blocking_append(entries).await.unwrap();
}

async fn all(store: &mut LogStore) -> Vec<Entry> {
    store.try_get_log_entries(..).await.unwrap()
}

struct Builder;

impl StoreBuilder<Types, LogStore, StateMachine, TempDir> for Builder {
    async fn build(&self) -> Result<(TempDir, LogStore, StateMachine), StorageError<Types>> {
        let directory = TempDir::new().unwrap();
        let store = open(directory.path()).unwrap();
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

/// Simulation, seed 2348: a leader was replaced within its term, installed what the other one had committed, and
/// lost its power before its log was cut.
#[tokio::test]
async fn what_stands_beside_a_snapshot_is_cut_off() {
    let of_another = |index| LogId::new(alias::LeaderIdOf::<Types>::new(1, 2).to_committed(), index);
    for (snapshot, left) in [(of_another(7), 3..7), (of_another(3), 3..3), (of_another(9), 3..9)] {
        let directory = TempDir::new().unwrap();
        let mut store = open(directory.path()).unwrap();
        append(&mut store, entries(1, 0..10, 20)).await;
        store.purge(id(1, 2)).await.unwrap();
        assert!(store.cut_beside(snapshot).await.unwrap());
        assert_eq!(all(&mut store).await, entries(1, left.clone(), 20));
        let mut store = reopened(store, directory.path()).unwrap();
        assert_eq!(all(&mut store).await, entries(1, left, 20));
        store.close();
    }
}

#[tokio::test]
async fn what_belongs_to_a_snapshot_or_contradicts_it_is_left() {
    let directory = TempDir::new().unwrap();
    let mut store = open(directory.path()).unwrap();
    append(&mut store, entries(2, 0..10, 20)).await;
    store.purge(id(2, 2)).await.unwrap();
    // Its own, one of an older leader, one beyond the log, and one that was purged.
    for snapshot in [id(2, 7), id(1, 7), id(3, 10), id(3, 2)] {
        assert!(!store.cut_beside(snapshot).await.unwrap(), "{snapshot}");
        assert_eq!(all(&mut store).await, entries(2, 3..10, 20));
    }
    store.close();
}

#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let directory = TempDir::new().unwrap();
    let mut store = open(directory.path()).unwrap();
    assert!(store.is_pristine());
    let vote = Vote::new(3, 1);
    store.save_vote(&vote).await.unwrap();
    append(&mut store, entries(3, 0..100, 2000)).await;
    append(&mut store, entries(3, 100..101, 10)).await;
    store.save_committed(Some(id(3, 90))).await.unwrap();

    let mut store = reopened(store, directory.path()).unwrap();
    assert!(!store.is_pristine());
    assert_eq!(store.read_vote().await.unwrap(), Some(vote));
    assert_eq!(store.read_committed().await.unwrap(), Some(id(3, 90)));
    assert_eq!(store.get_log_state().await.unwrap().last_log_id, Some(id(3, 100)));
    let mut expected = entries(3, 0..100, 2000);
    expected.extend(entries(3, 100..101, 10));
    assert_eq!(all(&mut store).await, expected);
}

#[tokio::test]
async fn a_truncation_inside_a_chunk_keeps_its_beginning() {
    let directory = TempDir::new().unwrap();
    let mut store = open(directory.path()).unwrap();
    append(&mut store, entries(1, 0..50, 300)).await;
    append(&mut store, entries(1, 50..60, 300)).await;
    store.truncate_after(Some(id(1, 20))).await.unwrap();
    append(&mut store, entries(2, 21..25, 300)).await;

    let mut expected = entries(1, 0..21, 300);
    expected.extend(entries(2, 21..25, 300));
    assert_eq!(all(&mut store).await, expected);
    let mut store = reopened(store, directory.path()).unwrap();
    assert_eq!(all(&mut store).await, expected);
    assert_eq!(store.get_log_state().await.unwrap().last_log_id, Some(id(2, 24)));
}

#[tokio::test]
async fn a_truncation_of_everything_leaves_an_empty_log() {
    let directory = TempDir::new().unwrap();
    let mut store = open(directory.path()).unwrap();
    append(&mut store, entries(1, 0..50, 300)).await;
    store.truncate_after(None).await.unwrap();
    append(&mut store, entries(2, 0..1, 1)).await;
    let mut store = reopened(store, directory.path()).unwrap();
    assert_eq!(all(&mut store).await, entries(2, 0..1, 1));
}

#[tokio::test]
async fn a_purge_inside_a_chunk_hides_what_is_purged_and_frees_whole_chunks() {
    let directory = TempDir::new().unwrap();
    let mut store = open(directory.path()).unwrap();
    for start in [0, 10, 20] {
        append(&mut store, entries(1, start..start + 10, 300)).await;
    }
    store.purge(id(1, 14)).await.unwrap();
    assert_eq!(all(&mut store).await, entries(1, 15..30, 300));

    let mut store = reopened(store, directory.path()).unwrap();
    let state = store.get_log_state().await.unwrap();
    assert_eq!(state.last_purged_log_id, Some(id(1, 14)));
    assert_eq!(state.last_log_id, Some(id(1, 29)));
    assert_eq!(all(&mut store).await, entries(1, 15..30, 300));
    store.close();
    drop(store);
    let (_db, tree) = tree(directory.path());
    let firsts: Vec<u64> = chunk_keys(&tree).iter().map(|key| key.first).collect();
    assert_eq!(firsts, [10, 20]);
}

#[tokio::test]
async fn a_purge_beyond_the_end_starts_the_log_behind_it() {
    let directory = TempDir::new().unwrap();
    let mut store = open(directory.path()).unwrap();
    append(&mut store, entries(1, 0..10, 30)).await;
    store.purge(id(4, 1000)).await.unwrap();
    append(&mut store, entries(4, 1001..1003, 30)).await;
    let mut store = reopened(store, directory.path()).unwrap();
    assert_eq!(all(&mut store).await, entries(4, 1001..1003, 30));
}

#[tokio::test]
async fn a_large_entry_is_stored_in_parts_below_the_blob_threshold() {
    let directory = TempDir::new().unwrap();
    let mut store = open(directory.path()).unwrap();
    let large = entry(1, 0, 16 << 20);
    append(&mut store, vec![large.clone(), entry(1, 1, 10)]).await;
    let mut store = reopened(store, directory.path()).unwrap();
    assert_eq!(all(&mut store).await, [large, entry(1, 1, 10)]);
    store.close();
    drop(store);
    let (_db, tree) = tree(directory.path());
    let longest = tree.iter().map(|record| record.unwrap().1.len()).max().unwrap();
    assert!(longest <= PART_BYTES + 3, "a part has {longest} bytes");
    let blobs = std::fs::read_dir(directory.path().join("log").join("blobs")).unwrap().count();
    assert_eq!(blobs, 0, "sled does not make blob files durable");
}

#[tokio::test]
async fn entries_that_left_memory_are_read_from_disk() {
    let directory = TempDir::new().unwrap();
    let disk = SledDisk::open(&directory.path().join("log")).unwrap();
    let mut store = LogStore::open_bounded(disk, Failure::new(), 50_000).unwrap();
    for start in (0..300).step_by(10) {
        append(&mut store, entries(1, start..start + 10, 1000)).await;
    }
    assert!(matches!(store.tail.read().range(0, 300, usize::MAX), EntrySource::Storage { start: 0, .. }));
    assert_eq!(all(&mut store).await, entries(1, 0..300, 1000));
    let some = store.limited_get_log_entries(7, 300).await.unwrap();
    assert_eq!(some, entries(1, 7..7 + some.len() as u64, 1000));
    assert!(!some.is_empty());
}

#[tokio::test]
async fn one_message_is_bounded_by_bytes_but_never_empty() {
    let directory = TempDir::new().unwrap();
    let mut store = open(directory.path()).unwrap();
    append(&mut store, vec![entry(1, 0, 5 << 20)]).await;
    append(&mut store, entries(1, 1..100, 100_000)).await;
    assert_eq!(store.limited_get_log_entries(0, 100).await.unwrap().len(), 1);
    let count = store.limited_get_log_entries(1, 100).await.unwrap().len();
    assert!((10..=12).contains(&count), "{count} entries of 100 kB are about 1 MiB");
}

#[tokio::test]
async fn a_hole_is_refused() {
    let directory = TempDir::new().unwrap();
    let mut store = open(directory.path()).unwrap();
    append(&mut store, entries(1, 0..3, 10)).await;
    let refused = store.blocking_append(entries(1, 4..5, 10)).await.unwrap_err();
    assert!(refused.to_string().contains("index 3"), "{refused}");
}

/// Opens a log of two chunks after `damage` was done to it.
async fn opened_after(damage: impl FnOnce(&sled::Tree)) -> String {
    let directory = TempDir::new().unwrap();
    let mut store = open(directory.path()).unwrap();
    append(&mut store, entries(1, 0..10, 300)).await;
    append(&mut store, vec![entry(1, 10, 200_000)]).await;
    append(&mut store, entries(1, 11..20, 300)).await;
    store.close();
    drop(store);
    let (mut disk, tree) = tree(directory.path());
    damage(&tree);
    disk.sync().unwrap();
    disk.reader().close();
    drop((disk, tree));
    match open(directory.path()) {
        Ok(_) => "opened".into(),
        Err(error) => error.to_string(),
    }
}

fn flip(tree: &sled::Tree, first: u64, at: usize) {
    let key = ChunkKey { first, part: 0 }.bytes();
    let mut value = tree.get(key).unwrap().unwrap().to_vec();
    value[at] ^= 0x10;
    tree.insert(key, value).unwrap();
}

#[tokio::test]
async fn a_flipped_byte_anywhere_in_a_chunk_refuses_the_start() {
    // Every byte of the part's header and of the first entry's, and some behind.
    for at in (0..60).chain([1000, 2000]) {
        let refusal = opened_after(|tree| flip(tree, 0, at)).await;
        assert!(refusal.starts_with("T3101 log-damaged"), "byte {at}: {refusal}");
        assert!(refusal.contains("entry ") && refusal.contains("run `mv "), "byte {at}: {refusal}");
    }
}

#[tokio::test]
async fn the_damaged_index_is_named() {
    // Entries of one size: the fifth one's payload.
    let one = (chunk::pack(&entries(1, 0..10, 300)).remove(0).parts[0].len() - 3) / 10;
    let refusal = opened_after(|tree| flip(tree, 0, 3 + 4 * one + one / 2)).await;
    assert!(refusal.contains("entry 4 has checksum"), "{refusal}");
}

#[tokio::test]
async fn a_missing_part_refuses_the_start() {
    let refusal = opened_after(|tree| {
        tree.remove(ChunkKey { first: 10, part: 1 }.bytes()).unwrap();
    });
    let refusal = refusal.await;
    let parts = 200_000 / PART_BYTES + 1;
    assert!(refusal.contains(&format!("entry 10 has {} of {parts} parts", parts - 1)), "{refusal}");
}

#[tokio::test]
async fn a_missing_chunk_refuses_the_start() {
    let refusal = opened_after(|tree| {
        tree.remove(ChunkKey { first: 0, part: 0 }.bytes()).unwrap();
    });
    let refusal = refusal.await;
    assert!(refusal.contains("entry 0 is missing"), "{refusal}");
}

#[tokio::test]
async fn a_second_opener_is_told_what_to_do() {
    let directory = TempDir::new().unwrap();
    let _store = open(directory.path()).unwrap();
    let refusal = open(directory.path()).err().unwrap().to_string();
    assert!(refusal.starts_with("T3104 log-locked"), "{refusal}");
}

/// A disk that counts the flushes which ran where an async runtime could run tasks.
struct Watched {
    inner: SledDisk,
    in_runtime: Arc<std::sync::atomic::AtomicU64>,
    flushes: Arc<std::sync::atomic::AtomicU64>,
}

impl Disk for Watched {
    fn load(&mut self, each: &mut dyn FnMut(Entry)) -> Result<Loaded, DiskError> {
        self.inner.load(each)
    }

    fn write(&mut self, changes: &[Change]) -> Result<(), DiskError> {
        self.inner.write(changes)
    }

    fn sync(&mut self) -> Result<(), DiskError> {
        let inside = u64::from(tokio::runtime::Handle::try_current().is_ok());
        self.in_runtime.fetch_add(inside, std::sync::atomic::Ordering::Relaxed);
        self.flushes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.inner.sync()
    }

    fn reader(&self) -> Arc<dyn OldEntries> {
        self.inner.reader()
    }
}

#[tokio::test]
async fn nothing_is_flushed_in_a_worker_of_the_runtime() {
    let directory = TempDir::new().unwrap();
    let inner = SledDisk::open(&directory.path().join("log")).unwrap();
    let (in_runtime, flushes) = (Arc::default(), Arc::default());
    let disk = Watched { inner, in_runtime: Arc::clone(&in_runtime), flushes: Arc::clone(&flushes) };
    let mut store = LogStore::open(disk, Failure::new()).unwrap();
    append(&mut store, entries(1, 0..10, 100)).await;
    store.save_vote(&Vote::new(2, 1)).await.unwrap();
    store.close();
    assert!(flushes.load(std::sync::atomic::Ordering::Relaxed) >= 2);
    assert_eq!(in_runtime.load(std::sync::atomic::Ordering::Relaxed), 0);
}

/// A disk whose flushes fail from some moment on.
struct Failing {
    inner: SledDisk,
    fails: Arc<std::sync::atomic::AtomicBool>,
}

impl Disk for Failing {
    fn load(&mut self, each: &mut dyn FnMut(Entry)) -> Result<Loaded, DiskError> {
        self.inner.load(each)
    }

    fn write(&mut self, changes: &[Change]) -> Result<(), DiskError> {
        self.inner.write(changes)
    }

    fn sync(&mut self) -> Result<(), DiskError> {
        if self.fails.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(DiskError::Io { action: "sync", directory: "here".into(), cause: "planted".into() });
        }
        self.inner.sync()
    }

    fn reader(&self) -> Arc<dyn OldEntries> {
        self.inner.reader()
    }
}

#[tokio::test]
async fn the_first_failed_flush_is_final() {
    let directory = TempDir::new().unwrap();
    let inner = SledDisk::open(&directory.path().join("log")).unwrap();
    let fails = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let failure = Failure::new();
    let mut store = LogStore::open(Failing { inner, fails: fails.clone() }, failure.clone()).unwrap();
    append(&mut store, entries(1, 0..1, 10)).await;
    fails.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(store.blocking_append(entries(1, 1..2, 10)).await.is_err());
    fails.store(false, std::sync::atomic::Ordering::Relaxed);
    let vote = store.save_vote(&Vote::new(2, 1)).await.unwrap_err();
    assert!(vote.to_string().contains("planted"), "{vote}");
    let reason = tripod_wait::within("the failure", failure.wait()).await;
    assert!(reason.contains("planted"), "{reason}");
}

/// A leader's entries may be committed by the others before this node has stored them.
#[tokio::test]
async fn a_committed_index_is_not_stored_before_its_entry() {
    let directory = TempDir::new().unwrap();
    let mut store = open(directory.path()).unwrap();
    append(&mut store, entries(3, 0..10, 10)).await;
    store.save_committed(Some(id(3, 10))).await.unwrap();
    assert_eq!(store.read_committed().await.unwrap(), Some(id(3, 10)));

    let mut store = reopened(store, directory.path()).unwrap();
    assert_eq!(store.read_committed().await.unwrap(), None);
    append(&mut store, entries(3, 10..11, 10)).await;
    store.save_committed(Some(id(3, 10))).await.unwrap();
    let mut store = reopened(store, directory.path()).unwrap();
    assert_eq!(store.read_committed().await.unwrap(), Some(id(3, 10)));
}
