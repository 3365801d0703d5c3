//! Chunks that are written in place, on one store.

use bytes::Bytes;
use tonic::{Code, Status};
use tripod_proto::mars::v1::mutable_batch::What;
use tripod_proto::mars::v1::{
    ChunkObject, DimIndex, DropChunksRequest, GetMutableChunksDataRequest, Index, MutableBatch,
    MutableRecords, MutableSlab, MutableState, PutMutableChunksDataResponse, SealMutableChunksRequest,
    dim_index,
};
use tripod_proto::metadata::RETRY_AFTER_MS;

use crate::support::{Scheduler, Served, bytes_of, collect, numbers, request, tensor};

pub(crate) fn batch(batch_no: u64, timestamp_ns: i64, place: u64, value: f64) -> MutableBatch {
    let values = Bytes::copy_from_slice(&value.to_le_bytes());
    MutableBatch {
        session_id: "s".to_owned(),
        chunk_key: "m".to_owned(),
        epoch: 1,
        client_id: "c".to_owned(),
        batch_no,
        timestamp_ns,
        crc32c: crc32c::crc32c(&values),
        what: Some(What::Records(MutableRecords { places: vec![place], values })),
        ..MutableBatch::default()
    }
}

pub(crate) async fn put(
    store: &mut Served,
    batches: Vec<MutableBatch>,
) -> Result<PutMutableChunksDataResponse, Status> {
    let answered = store.client.put_mutable_chunks_data(tokio_stream::iter(batches)).await;
    answered.map(tonic::Response::into_inner)
}

pub(crate) async fn read(store: &mut Served, timestamp_ns: Option<i64>, seal: bool) -> Result<Vec<f64>, i32> {
    let chunks = Some(request(&["m"]));
    let asked = GetMutableChunksDataRequest { chunks, epoch: 1, timestamp_ns, seal };
    let stream =
        store.client.get_mutable_chunks_data(asked).await.map_err(|status| i32::from(status.code()))?;
    let messages = collect(stream.into_inner()).await.expect("answered");
    bytes_of("m", &messages).map(|bytes| numbers(&bytes))
}

fn know(scheduler: &Scheduler, store: &Served) {
    let info = tensor("m", &[&store.address]);
    scheduler.lock().unwrap().mutables.insert("m".to_owned(), info);
}

fn change(scheduler: &Scheduler, state: MutableState, epoch: u64) {
    let mut facts = scheduler.lock().unwrap();
    let info = facts.mutables.get_mut("m").expect("known");
    (info.state, info.epoch, info.seal_timestamp_ns) = (state.into(), epoch, Some(6));
}

#[tokio::test]
async fn what_was_answered_is_read_as_of_its_time_also_after_a_start() {
    let scheduler = Scheduler::default();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Served::with_mutable(&scheduler, directory.path(), 1 << 20).await;
    know(&scheduler, &store);
    assert_eq!(read(&mut store, None, false).await, Ok(vec![0.5; 6]));
    let written = put(&mut store, vec![batch(1, 5, 0, 1.0), batch(2, 9, 0, 2.0), batch(1, 5, 0, 1.0)]).await;
    assert_eq!(written.unwrap(), PutMutableChunksDataResponse { accepted_batches: 2, duplicate_batches: 1 });
    let dims = vec![DimIndex { index: Some(dim_index::Index::Integer(1)) }];
    let values = Bytes::from([7.0_f64, 8.0, 9.0].map(f64::to_le_bytes).concat());
    let slab = MutableBatch {
        crc32c: crc32c::crc32c(&values),
        what: Some(What::Slab(MutableSlab { index: Some(Index { dims }), values })),
        ..batch(3, 7, 0, 0.0)
    };
    put(&mut store, vec![slab]).await.expect("written");
    for round in 0..2 {
        assert_eq!(read(&mut store, Some(4), false).await, Ok(vec![0.5; 6]), "{round}");
        assert_eq!(read(&mut store, Some(5), false).await, Ok(vec![1.0, 0.5, 0.5, 0.5, 0.5, 0.5]));
        assert_eq!(read(&mut store, None, false).await, Ok(vec![2.0, 0.5, 0.5, 7.0, 8.0, 9.0]));
        let at = store.stop().await;
        store = Served::start_at(at, &scheduler, Some(directory.path()), 1 << 20).await;
    }
    let again = put(&mut store, vec![batch(2, 9, 0, 2.0)]).await.unwrap();
    assert_eq!((again.accepted_batches, again.duplicate_batches), (0, 1));
}

#[tokio::test]
async fn a_sealed_epoch_is_read_as_it_was_sealed_and_takes_nothing() {
    let scheduler = Scheduler::default();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Served::with_mutable(&scheduler, directory.path(), 1 << 20).await;
    know(&scheduler, &store);
    put(&mut store, vec![batch(1, 5, 0, 1.0), batch(2, 9, 0, 2.0)]).await.expect("written");
    assert_eq!(
        read(&mut store, None, true).await,
        Err(Code::Aborted.into()),
        "the scheduler says nothing of it"
    );
    put(&mut store, vec![batch(3, 5, 1, 3.0)]).await.expect("so it is open");
    change(&scheduler, MutableState::Sealing, 1);
    let sealed = Ok(vec![1.0, 3.0, 0.5, 0.5, 0.5, 0.5]);
    assert_eq!(read(&mut store, None, true).await, sealed);
    assert_eq!(read(&mut store, None, true).await, sealed, "twice is once");
    let late = put(&mut store, vec![batch(4, 5, 1, 4.0)]).await.expect_err("sealed");
    assert_eq!(late.code(), Code::Aborted);
    // The seal was taken back.
    change(&scheduler, MutableState::Open, 2);
    let old = put(&mut store, vec![batch(4, 5, 1, 4.0)]).await.expect_err("of the epoch before");
    assert_eq!(old.code(), Code::Aborted);
    put(&mut store, vec![MutableBatch { epoch: 2, ..batch(4, 9, 1, 4.0) }]).await.expect("open");
}

#[tokio::test]
async fn a_store_that_has_heard_of_a_later_epoch_or_a_seal_takes_nothing_of_before_for_any_chunk() {
    let scheduler = Scheduler::default();
    let directory = tempfile::tempdir().unwrap();
    let store = Served::with_mutable(&scheduler, directory.path(), 1 << 20).await;
    let all = |state: MutableState, epoch: u64| {
        for key in ["m", "n"] {
            let mut info = tensor(key, &[&store.address]);
            (info.state, info.epoch) = (state.into(), epoch);
            scheduler.lock().unwrap().mutables.insert(key.to_owned(), info);
        }
    };
    let of = |key: &str, epoch: u64, number: u64| {
        vec![MutableBatch { chunk_key: key.to_owned(), epoch, ..batch(number, 5, 0, 1.0) }]
    };
    let mut client = store.client.clone();
    let mut put = async |batches: Vec<MutableBatch>| {
        let answered = client.put_mutable_chunks_data(tokio_stream::iter(batches)).await;
        answered.map(drop).map_err(|status| status.code())
    };
    all(MutableState::Open, 1);
    assert_eq!((put(of("m", 1, 1)).await, put(of("n", 1, 1)).await), (Ok(()), Ok(())));
    // A seal failed. Nobody has told the store: what it was told a moment ago counts, and nothing of it is lost.
    all(MutableState::Open, 2);
    assert_eq!(put(of("n", 1, 2)).await, Ok(()));
    // A client of the new epoch writes to another chunk.
    assert_eq!(put(of("m", 2, 2)).await, Ok(()));
    assert_eq!(put(of("n", 1, 3)).await, Err(Code::Aborted));
    assert_eq!(put(of("n", 2, 3)).await, Ok(()));
    // The same of an epoch that is being sealed, of which one chunk is.
    all(MutableState::Sealing, 2);
    let chunks = vec![ChunkObject { key: "m".to_owned(), object_id: 77 }];
    let order = SealMutableChunksRequest { session_id: "s".to_owned(), epoch: 2, chunks };
    let told = store.client.clone().seal_mutable_chunks(order).await.unwrap().into_inner();
    assert_eq!(told.chunks[0].error, None);
    assert_eq!(put(of("n", 2, 4)).await, Err(Code::Aborted));
}

#[tokio::test]
async fn what_is_sealed_becomes_an_object_under_the_id_that_it_is_told() {
    let scheduler = Scheduler::default();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Served::with_mutable(&scheduler, directory.path(), 1 << 20).await;
    know(&scheduler, &store);
    put(&mut store, vec![batch(1, 5, 0, 1.0), batch(2, 9, 0, 2.0)]).await.expect("written");
    let chunk = |key: &str| ChunkObject { key: key.to_owned(), object_id: 77 };
    let order = SealMutableChunksRequest {
        session_id: "s".to_owned(),
        epoch: 1,
        chunks: vec![chunk("m"), chunk("unknown")],
    };
    let early = store.client.seal_mutable_chunks(order.clone()).await.unwrap().into_inner();
    assert_eq!(
        early.chunks[0].error.as_ref().map(|error| error.code),
        Some(10),
        "the scheduler says nothing of it"
    );
    change(&scheduler, MutableState::Sealing, 1);
    for _ in 0..2 {
        let told = store.client.seal_mutable_chunks(order.clone()).await.unwrap().into_inner();
        let codes: Vec<_> =
            told.chunks.iter().map(|chunk| chunk.error.as_ref().map(|error| error.code)).collect();
        assert_eq!(codes, [None, Some(5)]);
    }
    scheduler.lock().unwrap().chunks.insert("sealed".to_owned(), (Some(77), Vec::new()));
    let messages = store.get(request(&["sealed"])).await.expect("read");
    assert_eq!(numbers(&bytes_of("sealed", &messages).unwrap()), [1.0, 0.5, 0.5, 0.5, 0.5, 0.5]);
    let late = put(&mut store, vec![batch(4, 5, 1, 4.0)]).await.expect_err("sealed");
    assert_eq!(late.code(), Code::Aborted);
}

#[tokio::test]
async fn each_refusal_has_its_code_and_says_what_to_do() {
    let scheduler = Scheduler::default();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Served::with_mutable(&scheduler, directory.path(), 1000).await;
    assert_eq!(put(&mut store, vec![batch(1, 5, 0, 1.0)]).await.expect_err("unknown").code(), Code::NotFound);
    know(&scheduler, &store);
    put(&mut store, vec![batch(1, 5, 0, 1.0)]).await.expect("written");
    let mut code =
        async |batch: MutableBatch| put(&mut store, vec![batch]).await.expect_err("refused").code();
    assert_eq!(code(MutableBatch { epoch: 2, ..batch(2, 5, 0, 1.0) }).await, Code::Aborted);
    assert_eq!(code(MutableBatch { crc32c: 1, ..batch(2, 5, 0, 1.0) }).await, Code::DataLoss);
    assert_eq!(code(batch(2, 5, 6, 1.0)).await, Code::OutOfRange);
    assert_eq!(code(batch(1, 5, 0, 2.0)).await, Code::InvalidArgument);
    for number in 2..4 {
        put(&mut store, vec![batch(number, 5, 0, 1.0)]).await.expect("written");
    }
    let full = put(&mut store, vec![batch(4, 5, 0, 1.0)]).await.expect_err("full");
    assert_eq!(full.code(), Code::ResourceExhausted);
    assert!(
        full.message().contains("--mutable-mib") && full.metadata().get(RETRY_AFTER_MS).is_some(),
        "{full}"
    );
    scheduler.lock().unwrap().mutables.insert("m".to_owned(), tensor("m", &["10.0.0.9:1"]));
    // What was remembered of the chunk is old; another epoch is asked for anew.
    let other = put(&mut store, vec![MutableBatch { epoch: 2, ..batch(5, 5, 0, 1.0) }]).await;
    assert_eq!(other.expect_err("another epoch").code(), Code::Aborted);
    let other = put(&mut store, vec![batch(5, 5, 0, 1.0)]).await.expect_err("another owner");
    assert_eq!(other.code(), Code::FailedPrecondition);
    assert!(other.message().contains("at worker 10.0.0.9:1"), "{other}");
    let mut without = Served::start(&scheduler).await;
    let refused = put(&mut without, vec![batch(1, 5, 0, 1.0)]).await.expect_err("nowhere to keep it");
    assert!(refused.message().contains("--mutable-dir"), "{refused}");
}

#[tokio::test]
async fn records_are_dropped_when_the_scheduler_does_not_need_them_and_by_whom_it_allows() {
    let scheduler = Scheduler::default();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Served::with_mutable(&scheduler, directory.path(), 1 << 20).await;
    know(&scheduler, &store);
    put(&mut store, vec![batch(1, 5, 0, 1.0)]).await.expect("written");
    let order = DropChunksRequest { session_id: "s".to_owned(), keys: vec!["m".to_owned(), "x".to_owned()] };
    let mut client = store.client.clone();
    let mut dropped = async || client.drop_chunks(order.clone()).await.map(|told| told.into_inner().dropped);
    scheduler.lock().unwrap().no_orders = true;
    assert_eq!(dropped().await.expect_err("a stranger").code(), Code::PermissionDenied);
    scheduler.lock().unwrap().no_orders = false;
    assert_eq!(dropped().await.unwrap(), 0, "it is open");
    scheduler.lock().unwrap().mutables.clear();
    assert_eq!((dropped().await.unwrap(), dropped().await.unwrap()), (1, 0));
    know(&scheduler, &store);
    assert_eq!(read(&mut store, None, false).await, Ok(vec![0.5; 6]));
}
