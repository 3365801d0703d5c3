//! For `tripod-fuzz` alone: objects, calls and batches that nobody has checked.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use tokio_stream::StreamExt as _;
use tonic::transport::Channel;
use tonic::{Extensions, Request, Status};
use tripod_proto::mars::v1::worker_client::WorkerClient;
use tripod_proto::mars::v1::worker_server::Worker as _;
use tripod_proto::mars::v1::{
    ChunkData as Message, ChunkMeta, Column, ElementType, GetChunksDataRequest, MutableBatch, MutableChunk,
    MutableInfo, MutableState,
};

use crate::layout::Chunk;
use crate::mutable::{Engine, Playground};
use crate::request::Batch;
use crate::service::ChunkData;
use crate::store::{MutableStates, Object, ObjectError, Store, Usage, Whereabouts, Wish};
use crate::{putting, writing};

/// Bytes of an answer that are read; then its reader goes away.
const READ_BYTES_MAX: usize = 8 << 20;
/// Rows of the frame that is written: numbers `n` and texts `t`.
pub const ROWS: usize = 4;
/// Bytes of all that may be put.
const PUT_BYTES_MAX: u64 = 64 << 10;

/// A store in which each key is the same object, and is to be put as the same frame.
#[derive(Debug)]
struct Same {
    object: Bytes,
    metadata_offset: u64,
}

#[tonic::async_trait]
impl Store for Same {
    fn address(&self) -> &str {
        "10.0.0.1:1"
    }

    async fn admit(&self, _: &Extensions, _: Wish) -> Result<(), Status> {
        Ok(())
    }

    fn whereabouts(&self, _: u64) -> Whereabouts {
        Whereabouts::Here
    }

    async fn object(&self, _: u64) -> Result<Object, ObjectError> {
        let (bytes, metadata_offset) = (self.object.clone(), self.metadata_offset);
        Ok(Object { bytes, metadata_offset, keep: Box::new(()) })
    }

    async fn make(&self, _: u64, _: Vec<Bytes>, _: u64) -> Result<(), ObjectError> {
        Err(ObjectError::NoRoom("it has one object".to_owned()))
    }

    fn usage(&self) -> Usage {
        Usage::default()
    }

    async fn chunk_metas(&self, _: &str, keys: Vec<String>) -> Result<Vec<ChunkMeta>, Status> {
        let of = |key| ChunkMeta { found: true, key, object_id: Some(1), ..ChunkMeta::default() };
        Ok(keys.into_iter().map(of).collect())
    }

    async fn mutable_of(&self, _: &str, key: &str) -> Result<MutableInfo, Status> {
        let chunk = MutableChunk {
            key: key.to_owned(),
            shape: vec![ROWS as u64],
            workers: vec![self.address().to_owned()],
            ..MutableChunk::default()
        };
        let column = |name: &str, dtype: ElementType| Column { name: name.to_owned(), dtype: dtype.into() };
        Ok(MutableInfo {
            name: "put.x".to_owned(),
            id: 1,
            epoch: 1,
            chunks: vec![chunk],
            state: MutableState::Open.into(),
            columns: vec![column("n", ElementType::I32), column("t", ElementType::Text)],
            ..MutableInfo::default()
        })
    }

    async fn mutable_states(&self, _: Vec<u64>) -> Result<MutableStates, Status> {
        Err(Status::unavailable("there is no scheduler"))
    }

    async fn worker(&self, _: &str) -> Result<WorkerClient<Channel>, String> {
        Err("there is no other one".to_owned())
    }
}

/// An object, described at one of these places, is read by this call.
///
/// # Panics
/// An answer breaks a promise.
pub async fn read(object: &[u8], metadata_offset: u64, request: &[u8]) {
    let object = Bytes::copy_from_slice(object);
    if let Ok(chunk) = Chunk::read(&object, metadata_offset) {
        let again: Bytes = chunk.image().concat().into();
        assert_eq!(Chunk::read(&again, 0).as_ref(), Ok(&chunk), "what is written is read");
    }
    let Ok(request) = GetChunksDataRequest::decode(request) else { return };
    let keys = request.chunk_keys.len();
    let service = ChunkData::new(Arc::new(Same { object, metadata_offset }), None);
    let Ok(answer) = service.get_chunks_data(Request::new(request)).await else { return };
    let (mut answers, mut read, mut ended, mut seq) = (answer.into_inner(), 0, 0, 0);
    while let Some(message) = answers.next().await {
        let message = message.expect("it is read");
        assert_eq!(message.seq, seq, "messages of a chunk follow each other");
        assert!(
            message.error.is_some() || crc32c::crc32c(&message.bytes) == message.crc32c,
            "a checksum is wrong"
        );
        read += message.bytes.len();
        if read > READ_BYTES_MAX {
            return;
        }
        seq = if message.last { 0 } else { seq + 1 };
        ended += usize::from(message.last);
    }
    assert_eq!(ended, keys, "each key is answered once");
}

/// Batches for one chunk; those that are none of it are passed over.
///
/// # Panics
/// A batch that was refused changed something.
pub async fn write(messages: &[&[u8]]) {
    let mut chunk = Playground::new();
    let decoded: Vec<_> = messages.iter().filter_map(|message| MutableBatch::decode(*message).ok()).collect();
    for message in &decoded {
        if let Ok(batch) = Batch::of(message.clone()) {
            chunk.write(batch.stored);
        }
    }
    // A store that keeps none refuses all of them.
    let service = ChunkData::new(Arc::new(Same { object: Bytes::new(), metadata_offset: 0 }), None);
    let any = !decoded.is_empty();
    let put = writing::put(service.inner(), tokio_stream::iter(decoded.into_iter().map(Ok)), None).await;
    assert_eq!(put.is_err(), any);
}

/// Batches for one frame; those that are none of it are passed over.
///
/// # Panics
/// A batch that was refused changed something, or what was taken is not read.
pub fn write_frame(messages: &[&[u8]]) {
    let mut frame = Playground::frame(ROWS as u64);
    for message in messages {
        if let Ok(message) = MutableBatch::decode(*message)
            && let Ok(batch) = Batch::of(message)
        {
            frame.write(batch.stored);
        }
    }
}

/// The messages of one call that puts chunks, into a store with this directory. Then the store starts again.
///
/// # Panics
/// What was answered is not there after a start, more than that is, or it takes more than it may.
pub async fn put(directory: &Path, messages: &[&[u8]]) {
    let Ok(engine) = Engine::open(directory, PUT_BYTES_MAX) else { return };
    let engine = Arc::new(engine);
    let store = Arc::new(Same { object: Bytes::new(), metadata_offset: 0 });
    let service = ChunkData::new(store, Some(Arc::clone(&engine)));
    let decoded: Vec<_> = messages.iter().filter_map(|message| Message::decode(*message).ok()).collect();
    let put = putting::put(service.inner(), tokio_stream::iter(decoded.into_iter().map(Ok))).await;
    if let Ok(stored) = &put {
        assert!(engine.count() <= stored.len(), "a chunk is there that nobody was told of");
        assert_eq!(engine.count() == 0, stored.is_empty(), "who was told has it");
    }
    let before = (engine.count(), engine.held_bytes());
    assert!(before.1 <= PUT_BYTES_MAX, "{} bytes are more than there may be", before.1);
    drop(service);
    engine.close();
    drop(engine);
    let again = Engine::open(directory, PUT_BYTES_MAX);
    let after = again.map(|engine| (engine.count(), engine.held_bytes()));
    assert_eq!(after.ok(), Some(before), "a start changes nothing");
}

/// The content of a file of batches.
///
/// # Panics
/// What is whole of it is read otherwise the second time.
pub fn replay(file: &[u8]) {
    Playground::replay(file);
}
