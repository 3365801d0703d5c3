//! A purge of many chunks, which may end anywhere.

use super::*;

/// With one chunk for each, enough for three batches.
const ENTRIES: u64 = 600;
const BATCHES: usize = 3;

/// A log of many chunks.
async fn filled(directory: &Path) -> LogStore {
    let mut store = open(directory).unwrap();
    append(&mut store, entries(1, 0..ENTRIES, 14 << 10)).await;
    store
}

/// Purges in so many batches, and then the process ends.
fn purge_partly(directory: &Path, upto: &LogId, batches: usize) -> bool {
    let mut disk = SledDisk::open(&directory.join("log")).unwrap();
    disk.load(&mut |_| {}).unwrap();
    let mut more = true;
    for _ in 0..batches {
        let mut batch = sled::Batch::default();
        more = disk.purge_some(&mut batch, upto);
        disk.apply(batch, true).unwrap();
    }
    disk.reader().close();
    more
}

fn firsts(directory: &Path) -> Vec<u64> {
    let (disk, tree) = tree(directory);
    let firsts = chunk_keys(&tree).iter().map(|key| key.first).collect();
    disk.reader().close();
    firsts
}

async fn closed(store: LogStore) {
    store.close();
}

#[tokio::test]
async fn a_purge_that_was_cut_short_has_purged_all_the_same_and_the_next_one_ends_it() {
    for batches in 1..=BATCHES {
        let directory = TempDir::new().unwrap();
        closed(filled(directory.path()).await).await;
        let upto = id(1, ENTRIES - 11);
        assert_eq!(purge_partly(directory.path(), &upto, batches), batches < BATCHES);

        let mut store = open(directory.path()).unwrap();
        let state = store.get_log_state().await.unwrap();
        assert_eq!(state.last_purged_log_id, Some(upto), "after {batches} batches");
        assert_eq!(all(&mut store).await, entries(1, ENTRIES - 10..ENTRIES, 14 << 10));
        append(&mut store, entries(2, ENTRIES..ENTRIES + 2, 10)).await;
        store.purge(id(1, ENTRIES - 2)).await.unwrap();
        closed(store).await;
        assert_eq!(firsts(directory.path()), [ENTRIES - 1, ENTRIES], "after {batches} batches");
    }
}

/// A snapshot that was installed has purged more than there was.
#[tokio::test]
async fn a_log_goes_on_far_behind_what_a_purge_has_left() {
    for batches in 1..=BATCHES {
        let directory = TempDir::new().unwrap();
        closed(filled(directory.path()).await).await;
        let upto = id(4, 10 * ENTRIES);
        purge_partly(directory.path(), &upto, batches);

        let mut store = open(directory.path()).unwrap();
        let new = entries(4, upto.index + 1..upto.index + 3, 30);
        append(&mut store, new.clone()).await;
        let mut store = reopened(store, directory.path()).unwrap();
        assert_eq!(all(&mut store).await, new, "after {batches} batches");
        store.truncate_after(Some(id(4, upto.index + 1))).await.unwrap();
        append(&mut store, entries(5, upto.index + 2..upto.index + 3, 30)).await;
        store.purge(id(4, upto.index + 1)).await.unwrap();
        let mut store = reopened(store, directory.path()).unwrap();
        assert_eq!(all(&mut store).await, entries(5, upto.index + 2..upto.index + 3, 30));
        closed(store).await;
        assert_eq!(firsts(directory.path()), [upto.index + 2], "after {batches} batches");
    }
}
