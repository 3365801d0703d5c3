//! What a store is told of chunks, and what a worker reads of a task that makes one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use prost::Message as _;
use tokio::time::timeout;
use tonic::{Code, Request, Response, Status, Streaming};
use tripod_proto::mars::v1 as pb;
use tripod_proto::mars::v1::worker_server::Worker;

use super::super::life::{Fate, Life};
use super::super::shelf::Shelf;
use super::super::value::Value;
use crate::witness::Witness;

/// An order that is lost is told so after this long: who gives it waits for two minutes, and no run lasts so long.
const LOST_AFTER: Duration = Duration::from_secs(5);

/// What is to be made, as the first argument of a task says. A node without a number fails.
pub(in super::super) fn chunk_of(node: &Bytes) -> Value {
    let node = pb::ChunkNode::decode(node.clone()).unwrap_or_default();
    let number = std::str::from_utf8(&node.payload).ok().and_then(|text| text.parse().ok());
    Value::Chunk { number: number.unwrap_or_default(), fails: node.op_type == "fail" || number.is_none() }
}

/// The service of one life of a store.
#[derive(Clone)]
pub(in super::super) struct Chunks {
    pub(in super::super) shelf: Arc<Shelf>,
    pub(in super::super) life: Life,
    pub(in super::super) witness: Witness,
}

impl Chunks {
    fn seal(&self, request: &pb::SealMutableChunksRequest) -> Vec<pb::SealedChunk> {
        let sealed = request.chunks.iter().map(|chunk| {
            let made = self.make(chunk.object_id, request.epoch);
            let code = |code: Code| u32::try_from(i32::from(code)).unwrap_or_default();
            let error =
                made.err().map(|why| pb::ChunkError { code: code(why), message: "not now".to_owned() });
            pb::SealedChunk { key: chunk.key.clone(), error }
        });
        sealed.collect()
    }

    fn make(&self, object: u64, epoch: u64) -> Result<(), Code> {
        if self.life.refuses() {
            self.witness.count("chunks that a store would not seal");
            return Err(Code::FailedPrecondition);
        }
        self.witness.count("chunks that a store sealed");
        self.shelf.put(object, Value::Number(epoch), None).map_err(|_| Code::Unavailable)
    }
}

/// Of calls that no store of a simulation takes.
fn not_here<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("stores of a simulation keep no cells"))
}

type Messages = BoxStream<'static, Result<pb::ChunkData, Status>>;

#[tonic::async_trait]
impl Worker for Chunks {
    type GetChunksDataStream = Messages;
    type GetMutableChunksDataStream = Messages;

    async fn get_chunks_data(
        &self,
        _: Request<pb::GetChunksDataRequest>,
    ) -> Result<Response<Messages>, Status> {
        not_here()
    }

    async fn get_mutable_chunks_data(
        &self,
        _: Request<pb::GetMutableChunksDataRequest>,
    ) -> Result<Response<Messages>, Status> {
        not_here()
    }

    async fn put_mutable_chunks_data(
        &self,
        _: Request<Streaming<pb::MutableBatch>>,
    ) -> Result<Response<pb::PutMutableChunksDataResponse>, Status> {
        not_here()
    }

    async fn put_chunks_data(
        &self,
        _: Request<Streaming<pb::ChunkData>>,
    ) -> Result<Response<pb::PutChunksDataResponse>, Status> {
        not_here()
    }

    async fn seal_mutable_chunks(
        &self,
        request: Request<pb::SealMutableChunksRequest>,
    ) -> Result<Response<pb::SealMutableChunksResponse>, Status> {
        let request = request.into_inner();
        let Ok(fate) = timeout(LOST_AFTER, self.life.receive()).await else {
            self.life.awake().await;
            return Err(Status::unavailable("it was lost on its way"));
        };
        if fate? == Fate::Twice {
            self.seal(&request);
        }
        Ok(Response::new(pb::SealMutableChunksResponse { chunks: self.seal(&request) }))
    }

    async fn drop_chunks(
        &self,
        _: Request<pb::DropChunksRequest>,
    ) -> Result<Response<pb::DropChunksResponse>, Status> {
        not_here()
    }

    async fn get_worker_status(
        &self,
        _: Request<pb::GetWorkerStatusRequest>,
    ) -> Result<Response<pb::GetWorkerStatusResponse>, Status> {
        not_here()
    }
}
