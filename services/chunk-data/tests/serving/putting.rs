//! `PutChunksData`: whole chunks, until their tileable is sealed.

use bytes::Bytes;
use tokio::time::Instant;
use tonic::{Code, Status};
use tripod_chunk_data::Element;
use tripod_chunk_data::layout::{Buffer, Chunk, Column, Values};
use tripod_proto::mars::v1::{
    ChunkData, ChunkObject, Column as WireColumn, Compression, ElementType, Encoding, MutableInfo,
    MutableState, SealMutableChunksRequest,
};

use crate::mutable::{batch, put as write, read};
use crate::support::{Scheduler, Served, bytes_of, numbers, request, tensor};

const VALUES: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

fn scheduler() -> Scheduler {
    let scheduler = Scheduler::default();
    scheduler.lock().unwrap().cluster = "cluster job".to_owned();
    scheduler
}

fn know(scheduler: &Scheduler, key: &str, change: impl FnOnce(&mut MutableInfo), workers: &[&str]) {
    let mut info = MutableInfo { name: "put.x".to_owned(), id: 7, ..tensor(key, workers) };
    change(&mut info);
    scheduler.lock().unwrap().mutables.insert(key.to_owned(), info);
}

fn npy() -> Bytes {
    let mut head =
        b"\x93NUMPY\x01\0\x76\0{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }".to_vec();
    head.resize(127, b' ');
    head.push(b'\n');
    [head, VALUES.iter().flat_map(|value| value.to_le_bytes()).collect()].concat().into()
}

fn frame() -> Chunk {
    let offsets: Vec<u8> = [0_u64, 3, 5].iter().flat_map(|offset| offset.to_le_bytes()).collect();
    let text = Values::Text { offsets: Buffer::of(offsets.into()), text: Buffer::of("abcde".into()) };
    let numbers = Values::Fixed(Element::I32, Buffer::of(vec![7; 8].into()));
    let validity = Some(Buffer::of(vec![1, 0].into()));
    let columns = vec![
        Column { name: "a".to_owned(), values: numbers, validity: None },
        Column { name: "b".to_owned(), values: text, validity },
    ];
    Chunk::Frame { rows: 2, columns }
}

/// The messages of one chunk.
fn messages(key: &str, encoding: Encoding, bytes: &Bytes, piece: usize, how: Compression) -> Vec<ChunkData> {
    let pieces: Vec<&[u8]> = bytes.chunks(piece).collect();
    let count = pieces.len() as u64;
    let message = |(seq, piece): (u64, &&[u8])| {
        let bytes = compressed(piece, how);
        ChunkData {
            session_id: "s".to_owned(),
            chunk_key: key.to_owned(),
            seq,
            compression: how.into(),
            encoding: encoding.into(),
            crc32c: crc32c::crc32c(&bytes),
            bytes,
            last: seq + 1 == count,
            ..ChunkData::default()
        }
    };
    (0..).zip(&pieces).map(message).collect()
}

fn compressed(bytes: &[u8], how: Compression) -> Bytes {
    use std::io::Write as _;
    match how {
        Compression::None => bytes.to_vec(),
        Compression::Lz4Frame => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        Compression::Zstd => {
            ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
        }
        Compression::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
    }
    .into()
}

async fn put(store: &mut Served, messages: Vec<ChunkData>) -> Result<Vec<String>, Status> {
    let answered = store.client.put_chunks_data(tokio_stream::iter(messages)).await;
    answered.map(|answer| answer.into_inner().stored)
}

/// The codes with which chunks are sealed as objects of these numbers.
async fn seal(scheduler: &Scheduler, store: &mut Served, chunks: &[(&str, u64)]) -> Vec<Option<u32>> {
    for (key, _) in chunks {
        scheduler.lock().unwrap().mutables.get_mut(*key).expect("known").state = MutableState::Sealing.into();
    }
    let chunks =
        chunks.iter().map(|(key, object)| ChunkObject { key: (*key).to_owned(), object_id: *object });
    let order = SealMutableChunksRequest { session_id: "s".to_owned(), epoch: 1, chunks: chunks.collect() };
    let told = store.client.seal_mutable_chunks(order).await.expect("told").into_inner();
    told.chunks.into_iter().map(|chunk| chunk.error.map(|error| error.code)).collect()
}

fn as_frame(info: &mut MutableInfo) {
    let column = |name: &str, dtype: ElementType| WireColumn { name: name.to_owned(), dtype: dtype.into() };
    info.columns = vec![column("a", ElementType::I32), column("b", ElementType::Text)];
    (info.chunks[0].shape, info.dtype) = (vec![2], 0);
}

#[tokio::test]
async fn chunks_that_were_put_are_objects_once_they_are_sealed_however_they_were_sent() {
    let scheduler = scheduler();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Served::with_mutable(&scheduler, directory.path(), 1 << 20).await;
    let address = store.address.clone();
    let image: Bytes = frame().image().concat().into();
    let whole =
        Chunk::Tensor { element: Element::F64, shape: vec![2, 3], values: Buffer::of(npy().slice(128..)) };
    let whole: Bytes = whole.image().concat().into();
    let ways = [Compression::None, Compression::Lz4Frame, Compression::Zstd, Compression::Gzip];
    let mut all = Vec::new();
    for (number, how) in ways.into_iter().enumerate() {
        let (array, frame, described) = (format!("a{number}"), format!("f{number}"), format!("t{number}"));
        know(&scheduler, &array, |_| (), &[&address]);
        know(&scheduler, &described, |_| (), &[&address]);
        know(&scheduler, &frame, as_frame, &[&address]);
        all.extend(messages(&array, Encoding::Npy, &npy(), 50, how));
        all.extend(messages(&frame, Encoding::Tpch, &image, 1000, how));
        all.extend(messages(&described, Encoding::Tpch, &whole, 7, how));
    }
    let stored = put(&mut store, all).await.expect("put");
    assert_eq!(stored.len(), 12);
    assert_eq!(read_code(&mut store, "a0").await, Code::InvalidArgument, "it is read once it is sealed");
    // What was answered is there after a start.
    let at = store.stop().await;
    store = Served::start_at(at, &scheduler, Some(directory.path()), 1 << 20).await;
    for (object, key) in (100..).zip(&stored) {
        for _ in 0..2 {
            assert_eq!(seal(&scheduler, &mut store, &[(key, object)]).await, [None], "{key}");
        }
        scheduler.lock().unwrap().chunks.insert(key.clone(), (Some(object), Vec::new()));
        let answer = store.get(request(&[key])).await.expect("read");
        let bytes = bytes_of(key, &answer).expect("there");
        if key.starts_with('f') {
            assert_eq!(Chunk::read(&bytes.into(), 0), Ok(frame()));
        } else {
            assert_eq!(numbers(&bytes), VALUES);
        }
    }
    let mut sweeper = store.sweeper();
    assert_eq!(
        sweeper.round(Instant::now()).await.unwrap(),
        0,
        "the log does not know yet that they are sealed"
    );
    scheduler.lock().unwrap().mutables.values_mut().for_each(|info| info.state = MutableState::Sealed.into());
    assert_eq!(sweeper.round(Instant::now()).await.unwrap(), 12);
    assert_eq!(store.kept().await, (0, 0));
}

async fn read_code(store: &mut Served, key: &str) -> Code {
    let chunks = Some(request(&[key]));
    let asked =
        tripod_proto::mars::v1::GetMutableChunksDataRequest { chunks, epoch: 1, ..Default::default() };
    let stream = store.client.get_mutable_chunks_data(asked).await.expect("answered").into_inner();
    let messages = crate::support::collect(stream).await.expect("answered");
    Code::from(bytes_of(key, &messages).expect_err("refused"))
}

#[tokio::test]
async fn the_same_chunk_again_takes_the_place_of_the_first_and_its_room() {
    let scheduler = scheduler();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Served::with_mutable(&scheduler, directory.path(), 600).await;
    know(&scheduler, "m", |_| (), &[&store.address]);
    let first = messages("m", Encoding::Npy, &npy(), 500, Compression::None);
    put(&mut store, first.clone()).await.expect("put");
    assert_eq!(store.kept().await, (1, 269));
    let mut second = npy().to_vec();
    second[128..136].copy_from_slice(&9.0_f64.to_le_bytes());
    put(&mut store, messages("m", Encoding::Npy, &second.into(), 500, Compression::None)).await.expect("put");
    assert_eq!(store.kept().await, (1, 269));
    know(&scheduler, "n", |info| info.id = 8, &[&store.address]);
    let other = messages("n", Encoding::Npy, &npy(), 500, Compression::None);
    put(&mut store, other.clone()).await.expect("there is room for two");
    know(&scheduler, "o", |info| info.id = 9, &[&store.address]);
    let third = messages("o", Encoding::Npy, &npy(), 500, Compression::None);
    let full = put(&mut store, third.clone()).await.expect_err("and for no third");
    assert_eq!(full.code(), Code::ResourceExhausted);
    assert_eq!(store.kept().await, (2, 538), "nothing of it stays");
    assert_eq!(seal(&scheduler, &mut store, &[("m", 1)]).await, [None]);
    scheduler.lock().unwrap().chunks.insert("sealed".to_owned(), (Some(1), Vec::new()));
    let answer = store.get(request(&["sealed"])).await.expect("read");
    assert_eq!(numbers(&bytes_of("sealed", &answer).unwrap())[0], 9.0);
    // It was deleted: then there is room.
    scheduler.lock().unwrap().mutables.remove("n");
    assert_eq!(store.sweeper().round(Instant::now()).await.unwrap(), 1);
    put(&mut store, third).await.expect("put");
}

#[tokio::test]
async fn all_that_a_put_takes_of_the_disk_is_within_the_bound_also_if_it_comes_byte_by_byte() {
    const QUOTA_BYTES: u64 = 2_000;
    let scheduler = scheduler();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Served::with_mutable(&scheduler, directory.path(), QUOTA_BYTES).await;
    know(&scheduler, "m", |_| (), &[&store.address]);
    let of = |piece| messages("m", Encoding::Npy, &npy(), piece, Compression::None);
    let full = put(&mut store, of(1)).await.expect_err("176 messages with a head each");
    assert_eq!(full.code(), Code::ResourceExhausted, "{full}");
    assert_eq!(store.kept().await, (0, 0));
    put(&mut store, of(10)).await.expect("18 fit");
    let files = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap());
    let puts = files.filter(|entry| entry.file_name().to_string_lossy().starts_with("tripod-put-"));
    let bytes: u64 = puts.map(|entry| entry.metadata().unwrap().len()).sum();
    assert_eq!(store.kept().await, (1, bytes));
    assert!(bytes <= QUOTA_BYTES);
    let at = store.stop().await;
    let mut store = Served::start_at(at, &scheduler, Some(directory.path()), QUOTA_BYTES).await;
    assert_eq!(store.kept().await, (1, bytes), "the same after a start");
}

#[tokio::test]
async fn a_put_without_room_for_its_values_is_refused_with_its_first_message() {
    let scheduler = scheduler();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Served::with_mutable(&scheduler, directory.path(), 1 << 10).await;
    know(&scheduler, "m", |info| info.chunks[0].shape = vec![2, 100], &[&store.address]);
    let mut first = messages("m", Encoding::Npy, &npy(), 50, Compression::None);
    first.truncate(1);
    let full = put(&mut store, first).await.expect_err("1,600 bytes do not fit");
    assert_eq!(full.code(), Code::ResourceExhausted, "{full}");
    assert!(full.message().contains("no room for 1600 bytes"), "{full}");
}

/// The only file of a chunk that was put.
fn put_file(directory: &std::path::Path) -> Option<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let mut puts = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("tripod-put-"));
    puts.next().map(|entry| entry.path())
}

/// Flips a bit of a file.
fn damage(path: &std::path::Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn a_damaged_put_is_not_sealed_and_goes_with_its_tileable_or_when_it_is_put_again() {
    let scheduler = scheduler();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Served::with_mutable(&scheduler, directory.path(), 1 << 20).await;
    know(&scheduler, "m", |_| (), &[&store.address]);
    let all = messages("m", Encoding::Npy, &npy(), 50, Compression::None);
    let again = async |store: &mut Served| put(store, all.clone()).await.expect("put");
    for ends in [true, false] {
        again(&mut store).await;
        let kept = store.kept().await;
        let at = store.stop().await;
        let file = put_file(directory.path()).expect("a file");
        damage(&file, 120);
        store = Served::start_at(at, &scheduler, Some(directory.path()), 1 << 20).await;
        assert_eq!(store.kept().await, kept, "somebody may have a copy of the file");
        assert_eq!(store.sweeper().round(Instant::now()).await.unwrap(), 0, "its tileable is open");
        assert_eq!(seal(&scheduler, &mut store, &[("m", 1)]).await, [Some(5)]);
        if ends {
            scheduler.lock().unwrap().mutables.clear();
            assert_eq!(store.sweeper().round(Instant::now()).await.unwrap(), 1);
            assert_eq!((store.kept().await, file.exists()), ((0, 0), false));
            know(&scheduler, "m", |info| info.id = 8, &[&store.address]);
        } else {
            know(&scheduler, "m", |info| (info.id, info.epoch) = (8, 2), &[&store.address]);
            again(&mut store).await;
            assert_eq!((store.kept().await, file.exists()), (kept, false));
        }
    }
    // One that does not say of which chunk it is goes at once.
    let at = store.stop().await;
    damage(&put_file(directory.path()).expect("a file"), 30);
    store = Served::start_at(at, &scheduler, Some(directory.path()), 1 << 20).await;
    assert_eq!((store.kept().await, put_file(directory.path())), ((0, 0), None));
}

#[tokio::test]
async fn a_chunk_that_was_not_put_or_not_to_its_end_is_not_sealed_as_anything() {
    let scheduler = scheduler();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Served::with_mutable(&scheduler, directory.path(), 1 << 20).await;
    know(&scheduler, "m", |_| (), &[&store.address]);
    let mut some = messages("m", Encoding::Npy, &npy(), 50, Compression::None);
    some.pop();
    assert_eq!(put(&mut store, some).await.expect_err("it ended").code(), Code::InvalidArgument);
    assert_eq!(store.kept().await, (0, 0));
    assert_eq!(seal(&scheduler, &mut store, &[("m", 1)]).await, [Some(5)]);
    let late = put(&mut store, messages("m", Encoding::Npy, &npy(), 50, Compression::None)).await;
    assert_eq!(late.expect_err("it is being sealed").code(), Code::Aborted);
    // The scheduler opens it again, and then it is put.
    know(&scheduler, "m", |_| (), &[&store.address]);
    put(&mut store, messages("m", Encoding::Npy, &npy(), 50, Compression::None)).await.expect("put");
    assert_eq!(seal(&scheduler, &mut store, &[("m", 1)]).await, [None]);
    // A file without its last frame, as a crash leaves it, is none.
    let at = store.stop().await;
    let of = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("tripod-put-");
    let entries = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap());
    let path = entries.map(|entry| entry.path()).find(|path| of(path.file_name().unwrap())).expect("a file");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    store = Served::start_at(at, &scheduler, Some(directory.path()), 1 << 20).await;
    assert_eq!((store.kept().await, path.exists()), ((0, 0), false));
    assert_eq!(seal(&scheduler, &mut store, &[("m", 2)]).await, [Some(5)]);
}

#[tokio::test]
async fn each_refusal_of_a_chunk_that_is_put_has_its_code_and_leaves_nothing() {
    let scheduler = scheduler();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Served::with_mutable(&scheduler, directory.path(), 1 << 20).await;
    know(&scheduler, "m", |_| (), &[&store.address]);
    know(&scheduler, "cells", |info| info.name = "t".to_owned(), &[&store.address]);
    know(&scheduler, "elsewhere", |_| (), &["10.0.0.9:1"]);
    know(&scheduler, "gone", |info| info.state = MutableState::Lost.into(), &[&store.address]);
    know(&scheduler, "truths", |info| info.dtype = ElementType::Bool.into(), &[&store.address]);
    know(&scheduler, "frame", as_frame, &[&store.address]);
    let of = |key: &str| messages(key, Encoding::Npy, &npy(), 50, Compression::None);
    let with = |change: &dyn Fn(&mut Vec<ChunkData>)| {
        let mut all = of("m");
        change(&mut all);
        all
    };
    let strange =
        Chunk::Tensor { element: Element::Bool, shape: vec![2, 3], values: Buffer::of(vec![2; 6].into()) };
    let strange: Bytes = strange.image().concat().into();
    let image: Bytes = frame().image().concat().into();
    let mut damaged = image.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    let tpch = |key: &str, bytes: &Bytes| messages(key, Encoding::Tpch, bytes, 5000, Compression::None);
    let cases = [
        ("unknown", of("unknown"), Code::NotFound),
        ("written in place", of("cells"), Code::FailedPrecondition),
        ("of another worker", of("elsewhere"), Code::FailedPrecondition),
        ("lost", of("gone"), Code::NotFound),
        ("another checksum", with(&|all| all[1].crc32c ^= 1), Code::DataLoss),
        ("a message is missing", with(&|all| drop(all.remove(1))), Code::InvalidArgument),
        ("a message twice", with(&|all| all.insert(1, all[0].clone())), Code::InvalidArgument),
        ("another chunk within", with(&|all| all[1].chunk_key = "frame".to_owned()), Code::InvalidArgument),
        ("another encoding within", with(&|all| all[1].encoding = 3), Code::InvalidArgument),
        (
            "an encoding that nobody has",
            messages("m", Encoding::ArrowIpc, &npy(), 50, Compression::None),
            Code::InvalidArgument,
        ),
        ("a compression that nobody has", with(&|all| all[0].compression = 9), Code::InvalidArgument),
        ("bytes that are not compressed", with(&|all| all[0].compression = 3), Code::InvalidArgument),
        ("no key", with(&|all| all[0].chunk_key.clear()), Code::InvalidArgument),
        (
            "another shape",
            messages("truths", Encoding::Npy, &npy(), 500, Compression::None),
            Code::InvalidArgument,
        ),
        (
            "too few elements",
            messages("m", Encoding::Npy, &npy().slice(..170), 500, Compression::None),
            Code::InvalidArgument,
        ),
        ("truths that are none", tpch("truths", &strange), Code::InvalidArgument),
        ("a frame for a tensor", tpch("m", &image), Code::InvalidArgument),
        (
            "a tensor for a frame",
            messages("frame", Encoding::Npy, &npy(), 500, Compression::None),
            Code::InvalidArgument,
        ),
        ("damaged", tpch("frame", &damaged.into()), Code::DataLoss),
        ("no chunk", tpch("frame", &Bytes::from_static(b"TPCH and so on")), Code::InvalidArgument),
    ];
    for (what, messages, code) in cases {
        let refused = put(&mut store, messages).await.expect_err(what);
        assert_eq!(refused.code(), code, "{what}: {refused}");
        assert_eq!(store.kept().await, (0, 0), "{what}");
    }
    let cells = write(&mut store, vec![batch(1, 5, 0, 1.0)]).await.expect_err("it is put as a whole");
    assert_eq!(cells.code(), Code::InvalidArgument, "{cells}");
    assert_eq!(read(&mut store, None, false).await, Err(Code::InvalidArgument.into()));
}

#[tokio::test]
async fn a_chunk_of_too_many_messages_is_refused_and_any_where_nothing_is_kept() {
    let scheduler = scheduler();
    let directory = tempfile::tempdir().unwrap();
    let mut store = Served::with_mutable(&scheduler, directory.path(), 1 << 20).await;
    know(&scheduler, "m", |_| (), &[&store.address]);
    let all = messages("m", Encoding::Npy, &npy(), 50, Compression::None);
    let mut without = Served::start(&scheduler).await;
    let refused = put(&mut without, all.clone()).await.expect_err("nowhere to keep it");
    assert!(refused.message().contains("--mutable-dir"), "{refused}");
    let many =
        (0..5000).map(|seq| ChunkData { last: false, seq, bytes: Bytes::new(), crc32c: 0, ..all[0].clone() });
    let refused = put(&mut store, many.collect()).await.expect_err("too many messages");
    assert!(refused.message().contains("4096 messages"), "{refused}");
}
