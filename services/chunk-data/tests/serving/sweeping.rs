//! Records go when the scheduler does not need them, and no sooner.

use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;
use tonic::Code;
use tripod_proto::mars::v1::{
    ChunkObject, MutableBatch, MutableInfo, MutableState, SealMutableChunksRequest,
};

use crate::mutable::{batch, put, read};
use crate::support::{Scheduler, Served, bytes_of, numbers, request, tensor};

/// For so long it must not have been needed.
const SETTLED: Duration = Duration::from_secs(20);

fn scheduler() -> Scheduler {
    let scheduler = Scheduler::default();
    scheduler.lock().unwrap().cluster = "cluster job".to_owned();
    scheduler
}

fn know(scheduler: &Scheduler, store: &Served, key: &str, id: u64) {
    let info = MutableInfo { id, ..tensor(key, &[&store.address]) };
    scheduler.lock().unwrap().mutables.insert(key.to_owned(), info);
}

fn change(scheduler: &Scheduler, key: &str, state: MutableState) {
    scheduler.lock().unwrap().mutables.get_mut(key).expect("known").state = state.into();
}

fn of(key: &str, batch: MutableBatch) -> MutableBatch {
    MutableBatch { chunk_key: key.to_owned(), ..batch }
}

/// Files of records and of chunks that were put.
fn files(directory: &Path) -> usize {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| !name.to_string_lossy().starts_with("tripod-mutable.")).count()
}

#[tokio::test]
async fn a_store_that_sealed_a_thousand_small_mutables_has_no_bytes_of_them() {
    const COUNT: u64 = 1_000;
    let scheduler = scheduler();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Served::with_mutable(&scheduler, directory.path(), 1 << 20).await;
    let key = |number: u64| format!("m{number}");
    for number in 0..COUNT {
        know(&scheduler, &store, &key(number), 100 + number);
    }
    let batches = (0..COUNT).map(|number| of(&key(number), batch(number, 5, 0, number as f64))).collect();
    put(&mut store, batches).await.expect("written");
    assert_eq!(files(directory.path()), 1_000);
    for state in [MutableState::Sealing, MutableState::Sealed] {
        (0..COUNT).for_each(|number| change(&scheduler, &key(number), state));
        if state == MutableState::Sealing {
            let chunks = (0..COUNT).map(|number| ChunkObject { key: key(number), object_id: number });
            let order =
                SealMutableChunksRequest { session_id: "s".to_owned(), epoch: 1, chunks: chunks.collect() };
            let told = store.client.seal_mutable_chunks(order).await.expect("told").into_inner();
            assert!(told.chunks.iter().all(|chunk| chunk.error.is_none()), "{told:?}");
        }
    }
    let (mut sweeper, begun) = (store.sweeper(), Instant::now());
    assert_eq!(sweeper.round(begun).await.unwrap(), 0, "somebody may have been told that they are open");
    assert_eq!(sweeper.round(begun + SETTLED - Duration::from_secs(1)).await.unwrap(), 0);
    assert_eq!(store.kept().await.0, COUNT);
    assert_eq!(sweeper.round(begun + SETTLED).await.unwrap(), 1_000);
    assert_eq!((store.kept().await, files(directory.path())), ((0, 0), 0));
    scheduler.lock().unwrap().chunks.insert("sealed".to_owned(), (Some(7), Vec::new()));
    let messages = store.get(request(&["sealed"])).await.expect("read");
    assert_eq!(numbers(&bytes_of("sealed", &messages).unwrap())[0], 7.0, "the object is the chunk");
    assert_eq!(sweeper.round(begun + 2 * SETTLED).await.unwrap(), 0);
}

#[tokio::test]
async fn a_start_in_the_middle_loses_nothing_that_is_needed_and_keeps_nothing_that_is_not() {
    let scheduler = scheduler();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Served::with_mutable(&scheduler, directory.path(), 1 << 20).await;
    let states = [
        ("m", MutableState::Open),
        ("sealing", MutableState::Sealing),
        ("lost", MutableState::Lost),
        ("sealed", MutableState::Sealed),
        ("deleted", MutableState::Deleted),
    ];
    for (id, (key, _)) in (10..).zip(states) {
        know(&scheduler, &store, key, id);
        put(&mut store, vec![of(key, batch(id, 5, 0, 3.0))]).await.expect("written");
    }
    for (key, state) in states {
        change(&scheduler, key, state);
    }
    scheduler.lock().unwrap().mutables.remove("deleted");
    assert_eq!(store.sweeper().round(Instant::now()).await.unwrap(), 0);
    let at = store.stop().await;
    store = Served::start_at(at, &scheduler, Some(directory.path()), 1 << 20).await;
    assert_eq!(files(directory.path()), 5, "it was not so long ago");
    let (mut sweeper, begun) = (store.sweeper(), Instant::now());
    assert_eq!(sweeper.round(begun).await.unwrap(), 0);
    assert_eq!(sweeper.round(begun + SETTLED).await.unwrap(), 2);
    let at = store.stop().await;
    store = Served::start_at(at, &scheduler, Some(directory.path()), 1 << 20).await;
    assert_eq!((store.kept().await.0, files(directory.path())), (3, 3));
    assert_eq!(read(&mut store, None, false).await.expect("read")[0], 3.0);
    let chunks = vec![ChunkObject { key: "sealing".to_owned(), object_id: 7 }];
    let order = SealMutableChunksRequest { session_id: "s".to_owned(), epoch: 1, chunks };
    let told = store.client.seal_mutable_chunks(order).await.expect("told").into_inner();
    assert_eq!(told.chunks[0].error, None);
}

#[tokio::test]
async fn one_that_was_taken_back_in_time_is_as_long_needed_as_before() {
    let scheduler = scheduler();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Served::with_mutable(&scheduler, directory.path(), 1 << 20).await;
    know(&scheduler, &store, "m", 10);
    put(&mut store, vec![batch(1, 5, 0, 3.0)]).await.expect("written");
    let (mut sweeper, begun) = (store.sweeper(), Instant::now());
    for (after, state) in [(0, MutableState::Sealed), (1, MutableState::Open), (2, MutableState::Sealed)] {
        change(&scheduler, "m", state);
        assert_eq!(sweeper.round(begun + after * SETTLED).await.unwrap(), 0, "{after}");
    }
    assert_eq!(sweeper.round(begun + 3 * SETTLED).await.unwrap(), 1);
}

#[tokio::test]
async fn who_cannot_know_has_nothing_removed() {
    let scheduler = scheduler();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Served::with_mutable(&scheduler, directory.path(), 1 << 20).await;
    know(&scheduler, &store, "m", 10);
    put(&mut store, vec![batch(1, 5, 0, 3.0)]).await.expect("written");
    let (mut sweeper, begun) = (store.sweeper(), Instant::now());
    assert_eq!(sweeper.round(begun).await.unwrap(), 0, "it is open, and the directory is this cluster's");
    scheduler.lock().unwrap().mutables.clear();
    let mut late = begun;
    let mut never = async |change: &dyn Fn(&mut crate::support::Facts)| {
        let mut swept = Vec::new();
        for _ in 0..3 {
            change(&mut scheduler.lock().unwrap());
            late += SETTLED;
            swept.push(sweeper.round(late).await.map_err(|status| status.code()));
        }
        swept
    };
    assert_eq!(never(&|facts| facts.is_away = true).await, [Err(Code::Unavailable); 3]);
    let behind = never(&|facts| (facts.is_away, facts.is_behind) = (false, true)).await;
    assert_eq!(behind, [Ok(0); 3], "a node that has not seen it made cannot say that it is gone");
    let other = never(&|facts| (facts.is_behind, facts.cluster) = (false, "other job".to_owned())).await;
    assert_eq!(other, [Ok(0); 3], "another cluster never had it");
    let nobody = never(&|facts| facts.cluster.clear()).await;
    assert_eq!(nobody, [Ok(0); 3]);
    assert_eq!(store.kept().await.0, 1);
    let ours = never(&|facts| facts.cluster = "cluster job".to_owned()).await;
    assert_eq!(ours, [Ok(0), Ok(1), Ok(0)]);
}

#[tokio::test]
async fn who_comes_for_records_that_are_gone_is_not_told_of_defaults() {
    let scheduler = scheduler();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Served::with_mutable(&scheduler, directory.path(), 1 << 20).await;
    know(&scheduler, &store, "m", 10);
    put(&mut store, vec![batch(1, 5, 0, 3.0)]).await.expect("written");
    change(&scheduler, "m", MutableState::Sealed);
    let (mut sweeper, begun) = (store.sweeper(), Instant::now());
    sweeper.round(begun).await.unwrap();
    assert_eq!(sweeper.round(begun + SETTLED).await.unwrap(), 1);
    assert_eq!(read(&mut store, None, false).await, Err(Code::FailedPrecondition.into()));
    let late = put(&mut store, vec![batch(2, 5, 0, 4.0)]).await.expect_err("sealed");
    assert_eq!(late.code(), Code::Aborted);
    assert_eq!(files(directory.path()), 0);
}
