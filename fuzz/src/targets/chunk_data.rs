//! Chunks: objects that any worker may have made, calls about them, batches for those that are written in place, and those that
//! clients put as wholes.

use bytes::Bytes;
use prost::Message as _;
use tripod_chunk_data::Element;
use tripod_chunk_data::fuzzing;
use tripod_chunk_data::layout::{Buffer, Chunk, Column, Values};
use tripod_proto::mars::v1::mutable_batch::What;
use tripod_proto::mars::v1::{ChunkData, Encoding, GetChunksDataRequest, MutableBatch, MutableRecords};

use crate::source::Source;
use crate::target::Target;
use crate::{message, mutate, pieces, runtime};

/// An object, and calls about it. The first byte says where its description is looked for, in words of 8 bytes.
pub(crate) const READS: Target = Target {
    name: "chunk-reads",
    what: "objects of workers as chunks, and calls of clients for parts of them",
    generate: |source| {
        let mut parts = vec![object(source)];
        for _ in 0..1 + source.below(3) {
            parts.push(call(source));
        }
        if source.one_in(3) {
            let at = source.below(parts.len());
            mutate::mutate(source, &mut parts[at]);
        }
        let place = if source.one_in(8) { u8::try_from(source.below(9)).unwrap_or(0) } else { 0 };
        pieces::join(place, &parts)
    },
    run: |input| {
        let (place, parts) = pieces::split(input);
        let Some((object, calls)) = parts.split_first() else { return };
        runtime::run(async {
            for call in calls {
                fuzzing::read(object, 8 * u64::from(place), call).await;
            }
        });
    },
};

/// Batches of clients, and the same bytes as a file of batches.
pub(crate) const WRITES: Target = Target {
    name: "chunk-writes",
    what: "batches of clients for mutable chunks, and files of batches",
    generate: |source| {
        let mut parts = Vec::new();
        for _ in 0..1 + source.below(6) {
            let mut batch = batch(source);
            if source.one_in(4) {
                mutate::mutate(source, &mut batch);
            }
            parts.push(batch);
        }
        pieces::join(0, &parts)
    },
    run: |input| {
        let (_, parts) = pieces::split(input);
        runtime::run(fuzzing::write(&parts));
        fuzzing::replay(&parts.concat());
        fuzzing::replay(input);
    },
};

/// Batches of clients for rows of a frame; with an odd first byte the messages of a frame that is put as a whole.
pub(crate) const FRAMES: Target = Target {
    name: "chunk-frames",
    what: "batches of clients for mutable frames, and frames that clients put as wholes",
    generate: |source| {
        let is_put = source.one_in(2);
        let mut parts: Vec<Vec<u8>> = if is_put {
            put(source).iter().map(ChunkData::encode_to_vec).collect()
        } else {
            (0..1 + source.below(6)).map(|_| rows(source).encode_to_vec()).collect()
        };
        if source.one_in(4) {
            let at = source.below(parts.len());
            mutate::mutate(source, &mut parts[at]);
        }
        pieces::join(u8::from(is_put), &parts)
    },
    run: |input| {
        let (kind, parts) = pieces::split(input);
        if kind % 2 == 0 {
            fuzzing::write_frame(&parts);
            return;
        }
        let directory = tempfile::tempdir().expect("a directory");
        runtime::run(fuzzing::put(directory.path(), &parts));
    },
};

/// A batch that mostly is some rows of the frame that is written to.
fn rows(source: &mut Source) -> MutableBatch {
    let count = source.below(4);
    let values: Bytes = frame(source, count).into();
    MutableBatch {
        session_id: "s".to_owned(),
        chunk_key: "k".to_owned(),
        epoch: 1,
        client_id: "c".to_owned(),
        batch_no: source.below(4) as u64,
        timestamp_ns: i64::try_from(source.below(4)).unwrap_or(0),
        compression: 0,
        crc32c: crc32c::crc32c(&values),
        what: Some(What::Records(MutableRecords {
            places: (0..count).map(|_| source.below(5) as u64).collect(),
            values,
        })),
    }
}

/// The messages of a chunk that mostly is the one that is wanted.
fn put(source: &mut Source) -> Vec<ChunkData> {
    let count = if source.one_in(8) { source.below(6) } else { fuzzing::ROWS };
    let image = frame(source, count);
    let cut = source.below(image.len() + 1);
    let (first, last) = image.split_at(cut);
    let message = |(seq, bytes): (u64, &[u8])| ChunkData {
        session_id: "s".to_owned(),
        chunk_key: "k".to_owned(),
        seq,
        encoding: Encoding::Tpch.into(),
        crc32c: crc32c::crc32c(bytes),
        bytes: Bytes::copy_from_slice(bytes),
        last: seq == 1,
        ..ChunkData::default()
    };
    (0..).zip([first, last]).map(message).collect()
}

/// Rows of numbers and of texts, mostly as `fuzzing` has them.
fn frame(source: &mut Source, rows: usize) -> Vec<u8> {
    let offsets: Vec<u8> = (0..=rows as u64).flat_map(u64::to_le_bytes).collect();
    let buffer = |bytes: Vec<u8>| Buffer::of(bytes.into());
    let validity = source.one_in(2).then(|| buffer((0..rows).map(|row| u8::from(row % 2 == 0)).collect()));
    let texts = Values::Text { offsets: buffer(offsets), text: buffer(vec![b'x'; rows]) };
    let mut columns = vec![
        Column {
            name: "n".to_owned(),
            values: Values::Fixed(Element::I32, buffer(vec![7; 4 * rows])),
            validity: None,
        },
        Column { name: "t".to_owned(), values: texts, validity },
    ];
    if source.one_in(6) {
        columns.remove(source.below(2));
    }
    if source.one_in(6) {
        columns.reverse();
    }
    let mut image = Chunk::Frame { rows: rows as u64, columns }.image().concat();
    if source.one_in(3) {
        mutate::mutate(source, &mut image);
    }
    image
}

/// A call that is mostly for this worker.
fn call(source: &mut Source) -> Vec<u8> {
    let bytes = message::message(source, "mars.v1.GetChunksDataRequest");
    let Ok(mut call) = GetChunksDataRequest::decode(&bytes[..]) else { return bytes };
    if !source.one_in(4) {
        call.worker_id.clear();
        call.session_id = "s".to_owned();
        call.indexes.truncate(1);
    }
    call.encode_to_vec()
}

/// A batch that mostly fits a chunk of four numbers.
fn batch(source: &mut Source) -> Vec<u8> {
    let bytes = message::message(source, "mars.v1.MutableBatch");
    let Ok(mut batch) = MutableBatch::decode(&bytes[..]) else { return bytes };
    if source.one_in(4) {
        return bytes;
    }
    (batch.session_id, batch.chunk_key, batch.client_id) = ("s".to_owned(), "k".to_owned(), "c".to_owned());
    (batch.compression, batch.batch_no) = (0, source.below(4) as u64);
    let count = source.below(5);
    let values = match &mut batch.what {
        Some(What::Records(records)) => {
            records.places = (0..count).map(|_| source.below(5) as u64).collect();
            &mut records.values
        }
        Some(What::Slab(slab)) => &mut slab.values,
        None => return bytes,
    };
    *values = vec![7; 8 * count].into();
    batch.crc32c = crc32c::crc32c(values);
    batch.encode_to_vec()
}

/// A chunk that is nearly right.
fn object(source: &mut Source) -> Vec<u8> {
    let rows = source.below(6);
    let values = |width: usize| Buffer::of(vec![1; rows * width].into());
    let chunk = match source.below(3) {
        0 => {
            let shape = vec![rows as u64, 1];
            Chunk::Tensor { element: Element::F64, shape, values: values(8) }
        }
        1 => {
            let offsets: Vec<u8> = (0..=rows as u64).flat_map(u64::to_le_bytes).collect();
            let text = Values::Text { offsets: Buffer::of(offsets.into()), text: values(1) };
            let fixed = Values::Fixed(Element::I32, values(4));
            let columns = vec![
                Column { name: "a".to_owned(), values: text, validity: Some(values(1)) },
                Column { name: "b".to_owned(), values: fixed, validity: None },
            ];
            Chunk::Frame { rows: rows as u64, columns }
        }
        _ => Chunk::Partial { shape: vec![], bytes: values(3) },
    };
    let mut object = chunk.image().concat();
    if source.one_in(2) {
        mutate::mutate(source, &mut object);
    }
    object
}
