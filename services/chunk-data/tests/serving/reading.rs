//! `GetChunksData`.

use std::time::Instant;

use bytes::Bytes;
use tonic::Code;
use tripod_chunk_data::Element;
use tripod_chunk_data::layout::{Buffer, Chunk, Column, Values};
use tripod_proto::mars::v1::{
    Compression, DimIndex, Encoding, GetChunksDataRequest, GetWorkerStatusRequest, Index, Slice, dim_index,
};

use crate::support::{Scheduler, Served, bytes_of, numbers, request};

/// For so long a store believes what the nodes said of a chunk.
const BELIEVED_S: u64 = 5;

fn tensor(rows: u64, columns: u64) -> Chunk {
    let values: Vec<u8> = (0..rows * columns).flat_map(|at| (at as f64).to_le_bytes()).collect();
    Chunk::Tensor { element: Element::F64, shape: vec![rows, columns], values: Buffer::of(values.into()) }
}

fn frame() -> Chunk {
    let values = Values::Fixed(Element::I32, Buffer::of(vec![1, 0, 0, 0, 2, 0, 0, 0].into()));
    Chunk::Frame { rows: 2, columns: vec![Column { name: "a".to_owned(), values, validity: None }] }
}

fn know(scheduler: &Scheduler, key: &str, object: Option<u64>, workers: &[&str]) {
    let workers = workers.iter().map(|worker| (*worker).to_owned()).collect();
    scheduler.lock().unwrap().chunks.insert(key.to_owned(), (object, workers));
}

#[tokio::test]
async fn a_chunk_is_read_whole_in_part_and_compressed() {
    let scheduler = Scheduler::default();
    let mut store = Served::start(&scheduler).await;
    store.put(1, &tensor(600, 500));
    know(&scheduler, "a", Some(1), &[]);
    let expected: Vec<f64> = (0..300_000).map(f64::from).collect();
    let begun = Instant::now();
    for how in [Compression::None, Compression::Lz4Frame, Compression::Zstd, Compression::Gzip] {
        let compression_types = vec![99, how.into(), Compression::None.into()];
        let messages =
            store.get(GetChunksDataRequest { compression_types, ..request(&["a"]) }).await.unwrap();
        assert!(messages.len() > 2, "in several messages");
        for message in &messages {
            assert_eq!((message.compression(), message.encoding()), (how, Encoding::Npy));
            assert_eq!((&message.shape[..], message.dtype), (&[600, 500][..], 5));
        }
        assert_eq!(numbers(&bytes_of("a", &messages).unwrap()), expected, "{how:?}");
    }
    let column = DimIndex { index: Some(dim_index::Index::Integer(-1)) };
    let slice = Slice { start: None, stop: None, step: Some(-200) };
    let indexes =
        vec![Index { dims: vec![DimIndex { index: Some(dim_index::Index::Slice(slice)) }, column] }];
    let messages = store.get(GetChunksDataRequest { indexes, ..request(&["a"]) }).await.unwrap();
    assert_eq!(messages[0].shape, [3]);
    assert_eq!(numbers(&bytes_of("a", &messages).unwrap()), [299_999.0, 199_999.0, 99_999.0]);
    let most = 1 + usize::try_from(begun.elapsed().as_secs() / BELIEVED_S).unwrap();
    let asked = scheduler.lock().unwrap().asked;
    assert!((1..=most).contains(&asked), "what the nodes said is remembered: asked {asked} times");
}

#[tokio::test]
async fn what_is_wrong_with_a_key_is_told_of_it_and_the_others_go_on() {
    let scheduler = Scheduler::default();
    let mut store = Served::start(&scheduler).await;
    store.put(1, &tensor(2, 2));
    store.put(2, &frame());
    let mut damaged = tensor(2, 2).image().concat();
    *damaged.last_mut().unwrap() ^= 1;
    store.put_bytes(3, damaged.into());
    store.put_bytes(4, Bytes::from_static(b"no chunk at all"));
    know(&scheduler, "tensor", Some(1), &[]);
    know(&scheduler, "frame", Some(2), &[]);
    know(&scheduler, "damaged", Some(3), &[]);
    know(&scheduler, "none", Some(4), &[]);
    know(&scheduler, "unmade", None, &[]);
    know(&scheduler, "elsewhere", Some(5), &["10.0.0.9:7750"]);
    let keys = ["unknown", "unmade", "elsewhere", "damaged", "none", "tensor", "frame"];
    let messages = store.get(request(&keys)).await.unwrap();
    let codes: Vec<_> = keys.iter().map(|key| bytes_of(key, &messages).map(drop)).collect();
    let not_found = Err(i32::from(Code::NotFound));
    let wrong = [Err(i32::from(Code::DataLoss)), Err(i32::from(Code::FailedPrecondition))];
    assert_eq!(codes, [not_found, not_found, not_found, wrong[0], wrong[1], Ok(()), Ok(())]);
    let elsewhere = messages.iter().find(|message| message.chunk_key == "elsewhere").unwrap();
    assert!(elsewhere.error.as_ref().unwrap().message.contains("it is at: 10.0.0.9:7750"));
    let read = bytes_of("frame", &messages).unwrap();
    assert_eq!(Chunk::read(&read.into(), 0), Ok(frame()));
    let one = DimIndex { index: Some(dim_index::Index::Integer(2)) };
    let indexes = vec![Index { dims: vec![one] }];
    let messages =
        store.get(GetChunksDataRequest { indexes, ..request(&["tensor", "frame"]) }).await.unwrap();
    assert_eq!(bytes_of("tensor", &messages), Err(Code::OutOfRange.into()));
    assert_eq!(bytes_of("frame", &messages), Err(Code::OutOfRange.into()));
}

#[tokio::test]
async fn calls_for_another_worker_or_an_unknown_session_are_refused() {
    let scheduler = Scheduler::default();
    let mut store = Served::start(&scheduler).await;
    let mine = GetChunksDataRequest { worker_id: store.address.clone(), ..request(&[]) };
    assert_eq!(store.get(mine).await.expect("of no key"), vec![]);
    let other = GetChunksDataRequest { worker_id: "10.0.0.9:1".to_owned(), ..request(&["a"]) };
    assert_eq!(store.get(other).await.expect_err("another").code(), Code::FailedPrecondition);
    let unknown = GetChunksDataRequest { session_id: "other".to_owned(), ..request(&["a"]) };
    assert_eq!(store.get(unknown).await.expect_err("unknown").code(), Code::NotFound);
}

#[tokio::test]
async fn an_object_on_its_way_is_waited_for_and_one_that_was_made_again_is_found() {
    let scheduler = Scheduler::default();
    let mut store = Served::start(&scheduler).await;
    store.expect(1);
    know(&scheduler, "a", Some(1), &[]);
    let mut client = store.client.clone();
    let waiting = tokio::spawn(async move {
        crate::support::collect(client.get_chunks_data(request(&["a"])).await?.into_inner()).await
    });
    tripod_wait::until("the question", || (scheduler.lock().unwrap().asked > 0).then_some(())).await;
    store.put(1, &tensor(1, 2));
    let messages = waiting.await.expect("no panic").expect("read");
    assert_eq!(numbers(&bytes_of("a", &messages).unwrap()), [0.0, 1.0]);
    // What is remembered of the key is an object that is not there any more.
    know(&scheduler, "b", Some(8), &["10.0.0.9:1"]);
    assert!(bytes_of("b", &store.get(request(&["b"])).await.unwrap()).is_err());
    store.put(9, &tensor(1, 1));
    know(&scheduler, "b", Some(9), &[]);
    let messages = store.get(request(&["b"])).await.unwrap();
    assert_eq!(numbers(&bytes_of("b", &messages).unwrap()), [0.0]);
}

#[tokio::test]
async fn a_worker_tells_what_it_has() {
    let scheduler = Scheduler::default();
    let mut store = Served::start(&scheduler).await;
    store.put(1, &tensor(1, 1));
    let status =
        store.client.get_worker_status(GetWorkerStatusRequest::default()).await.unwrap().into_inner();
    assert_eq!((status.worker_id, status.slots, status.chunks), (store.address.clone(), 3, 1));
    assert_eq!((status.memory_bytes, status.memory_used_bytes, status.disk_used_bytes), (100, 10, 5));
}
