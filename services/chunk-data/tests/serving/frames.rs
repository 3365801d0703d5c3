//! Cells of frames: written, read as of a time, copied, sealed.

use bytes::Bytes;
use tonic::{Code, Status};
use tripod_chunk_data::Element;
use tripod_chunk_data::layout::{Buffer, Chunk, Column, Values};
use tripod_proto::mars::v1::mutable_batch::What;
use tripod_proto::mars::v1::{
    ChunkObject, Column as WireColumn, DimIndex, ElementType, GetMutableChunksDataRequest, Index,
    MutableBatch, MutableInfo, MutableRecords, MutableSlab, MutableState, Scalar, SealMutableChunksRequest,
    Slice, dim_index, scalar,
};

use crate::mutable::{batch as numbers_batch, put};
use crate::support::{Scheduler, Served, bytes_of, collect, request, tensor};

/// A frame of one chunk of four rows, with a column of numbers and one of texts.
fn frame(scheduler: &Scheduler, workers: &[&str]) {
    let column = |name: &str, dtype: ElementType| WireColumn { name: name.to_owned(), dtype: dtype.into() };
    let mut info: MutableInfo = tensor("m", workers);
    info.columns = vec![column("n", ElementType::I64), column("t", ElementType::Text)];
    info.default_values = vec![
        Scalar { value: Some(scalar::Value::Integer(-1)) },
        Scalar { value: Some(scalar::Value::Text("?".to_owned())) },
    ];
    (info.dtype, info.chunks[0].shape) = (0, vec![4]);
    scheduler.lock().unwrap().mutables.insert("m".to_owned(), info);
}

fn numbers(values: &[i64]) -> Column {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Column {
        name: "n".to_owned(),
        values: Values::Fixed(Element::I64, Buffer::of(bytes.into())),
        validity: None,
    }
}

/// `None` is missing.
fn texts(values: &[Option<&str>]) -> Column {
    let (mut offsets, mut text) = (0_u64.to_le_bytes().to_vec(), Vec::new());
    for value in values {
        text.extend_from_slice(value.unwrap_or_default().as_bytes());
        offsets.extend_from_slice(&(text.len() as u64).to_le_bytes());
    }
    let valid: Vec<u8> = values.iter().map(|value| u8::from(value.is_some())).collect();
    let validity = valid.contains(&0).then(|| Buffer::of(valid.into()));
    let values = Values::Text { offsets: Buffer::of(offsets.into()), text: Buffer::of(text.into()) };
    Column { name: "t".to_owned(), values, validity }
}

fn image(rows: u64, columns: Vec<Column>) -> Bytes {
    Chunk::Frame { rows, columns }.image().concat().into()
}

fn batch(batch_no: u64, timestamp_ns: i64, places: &[u64], columns: Vec<Column>) -> MutableBatch {
    let values = image(places.len() as u64, columns);
    MutableBatch {
        crc32c: crc32c::crc32c(&values),
        what: Some(What::Records(MutableRecords { places: places.to_vec(), values })),
        ..numbers_batch(batch_no, timestamp_ns, 0, 0.0)
    }
}

/// Rows from `first` on, each `step` behind the one before.
fn slab(batch_no: u64, first: i64, step: i64, rows: u64, columns: Vec<Column>) -> MutableBatch {
    let values = image(rows, columns);
    let slice = Slice { start: Some(first), stop: None, step: Some(step) };
    let index = Some(Index { dims: vec![DimIndex { index: Some(dim_index::Index::Slice(slice)) }] });
    MutableBatch {
        crc32c: crc32c::crc32c(&values),
        what: Some(What::Slab(MutableSlab { index, values })),
        ..numbers_batch(batch_no, 7, 0, 0.0)
    }
}

async fn read(store: &mut Served, timestamp_ns: Option<i64>, rows: Option<Slice>) -> Result<Chunk, i32> {
    let mut chunks = request(&["m"]);
    chunks.indexes.extend(
        rows.map(|rows| Index { dims: vec![DimIndex { index: Some(dim_index::Index::Slice(rows)) }] }),
    );
    let asked = GetMutableChunksDataRequest { chunks: Some(chunks), epoch: 1, timestamp_ns, seal: false };
    let stream =
        store.client.get_mutable_chunks_data(asked).await.map_err(|status| i32::from(status.code()))?;
    let messages = collect(stream.into_inner()).await.expect("answered");
    let bytes = bytes_of("m", &messages)?;
    Ok(Chunk::read(&bytes.into(), 0).expect("a chunk"))
}

fn whole(numbers_are: &[i64], texts_are: &[Option<&str>]) -> Chunk {
    Chunk::Frame { rows: numbers_are.len() as u64, columns: vec![numbers(numbers_are), texts(texts_are)] }
}

#[tokio::test]
async fn rows_of_columns_are_written_read_as_of_their_time_and_sealed_also_after_a_start() {
    let scheduler = Scheduler::default();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Served::with_mutable(&scheduler, directory.path(), 1 << 20).await;
    frame(&scheduler, &[&store.address]);
    let nothing = whole(&[-1; 4], &[Some("?"); 4]);
    assert_eq!(read(&mut store, None, None).await, Ok(nothing.clone()));
    let written = put(
        &mut store,
        vec![
            batch(1, 5, &[1, 3], vec![texts(&[Some("größe"), None]), numbers(&[10, 30])]),
            batch(2, 9, &[3], vec![numbers(&[31])]),
            slab(3, 2, -2, 2, vec![texts(&[Some("c"), Some("a")])]),
            batch(1, 5, &[1, 3], vec![texts(&[Some("größe"), None]), numbers(&[10, 30])]),
        ],
    )
    .await
    .expect("written");
    assert_eq!((written.accepted_batches, written.duplicate_batches), (3, 1));
    let last = whole(&[-1, 10, -1, 31], &[Some("a"), Some("größe"), Some("c"), None]);
    for round in 0..2 {
        assert_eq!(read(&mut store, Some(4), None).await, Ok(nothing.clone()), "{round}");
        let early = whole(&[-1, 10, -1, 30], &[Some("?"), Some("größe"), Some("?"), None]);
        assert_eq!(read(&mut store, Some(5), None).await, Ok(early));
        assert_eq!(read(&mut store, None, None).await, Ok(last.clone()));
        let rows = Slice { start: Some(1), stop: Some(3), step: None };
        // Whether values are missing is told of a column as long as one of its rows is.
        let there =
            Column { validity: Some(Buffer::of(vec![1, 1].into())), ..texts(&[Some("größe"), Some("c")]) };
        let some = Chunk::Frame { rows: 2, columns: vec![numbers(&[10, -1]), there] };
        assert_eq!(read(&mut store, None, Some(rows)).await, Ok(some));
        let at = store.stop().await;
        store = Served::start_at(at, &scheduler, Some(directory.path()), 1 << 20).await;
    }
    {
        let mut facts = scheduler.lock().unwrap();
        facts.mutables.get_mut("m").expect("known").state = MutableState::Sealing.into();
        facts.chunks.insert("sealed".to_owned(), (Some(77), Vec::new()));
    }
    let chunks = vec![ChunkObject { key: "m".to_owned(), object_id: 77 }];
    let order = SealMutableChunksRequest { session_id: "s".to_owned(), epoch: 1, chunks };
    let told = store.client.seal_mutable_chunks(order).await.expect("told").into_inner();
    assert_eq!(told.chunks[0].error, None);
    let messages = store.get(request(&["sealed"])).await.expect("read");
    assert_eq!(Chunk::read(&bytes_of("sealed", &messages).expect("there").into(), 0), Ok(last));
    let late = put(&mut store, vec![batch(4, 9, &[0], vec![numbers(&[1])])]).await.expect_err("sealed");
    assert_eq!(late.code(), Code::Aborted);
}

#[tokio::test]
async fn a_second_owner_has_what_the_first_one_answered() {
    let scheduler = Scheduler::default();
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut first = Served::with_mutable(&scheduler, here.path(), 1 << 20).await;
    let mut second = Served::with_mutable(&scheduler, there.path(), 1 << 20).await;
    frame(&scheduler, &[&first.address, &second.address]);
    put(&mut first, vec![batch(1, 5, &[2], vec![texts(&[Some("x")])])]).await.expect("written");
    first.stop().await;
    frame(&scheduler, &[&second.address]);
    let at = second.stop().await;
    second = Served::start_at(at, &scheduler, Some(there.path()), 1 << 20).await;
    let wanted = whole(&[-1; 4], &[Some("?"), Some("?"), Some("x"), Some("?")]);
    assert_eq!(read(&mut second, None, None).await, Ok(wanted));
}

#[tokio::test]
async fn what_is_no_part_of_a_frame_is_refused_and_changes_nothing() {
    let scheduler = Scheduler::default();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Served::with_mutable(&scheduler, directory.path(), 1 << 20).await;
    frame(&scheduler, &[&store.address]);
    let dropped = MutableBatch {
        what: match slab(1, 0, 1, 1, vec![numbers(&[1])]).what {
            Some(What::Slab(slab)) => {
                let dims = vec![DimIndex { index: Some(dim_index::Index::Integer(0)) }];
                Some(What::Slab(MutableSlab { index: Some(Index { dims }), ..slab }))
            }
            other => other,
        },
        ..slab(1, 0, 1, 1, vec![numbers(&[1])])
    };
    let cases: [(&str, MutableBatch, Code); 6] = [
        ("a row that is not there", batch(1, 5, &[4], vec![numbers(&[1])]), Code::OutOfRange),
        ("fewer rows than places", slab(1, 0, 1, 3, vec![numbers(&[1, 2, 3])]), Code::InvalidArgument),
        ("no frame", numbers_batch(1, 5, 0, 1.0), Code::InvalidArgument),
        ("a number for the rows", dropped, Code::OutOfRange),
        ("a column twice", batch(1, 5, &[0], vec![numbers(&[1]), numbers(&[2])]), Code::InvalidArgument),
        (
            "another column",
            batch(1, 5, &[0], vec![Column { name: "x".to_owned(), ..numbers(&[1]) }]),
            Code::InvalidArgument,
        ),
    ];
    for (what, batch, code) in cases {
        let refused: Status = put(&mut store, vec![batch]).await.expect_err(what);
        assert_eq!(refused.code(), code, "{what}: {refused}");
    }
    assert_eq!(read(&mut store, None, None).await, Ok(whole(&[-1; 4], &[Some("?"); 4])));
}
