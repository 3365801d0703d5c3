//! Chunks: objects that any worker may have made, calls about them, and batches for those that are written in place.

use prost::Message as _;
use tripod_chunk_data::Element;
use tripod_chunk_data::fuzzing;
use tripod_chunk_data::layout::{Buffer, Chunk, Column, Values};
use tripod_proto::mars::v1::mutable_batch::What;
use tripod_proto::mars::v1::{GetChunksDataRequest, MutableBatch};

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
