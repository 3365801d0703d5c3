//! `mars.v1.Worker` of one object store.

use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::{Notify, Semaphore};
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};
use tripod_proto::mars::v1::worker_server::Worker;
use tripod_proto::mars::v1::{
    ChunkData as Message, DropChunksRequest, DropChunksResponse, GetChunksDataRequest,
    GetMutableChunksDataRequest, GetWorkerStatusRequest, GetWorkerStatusResponse, MutableBatch,
    PutChunksDataResponse, PutMutableChunksDataResponse, SealMutableChunksRequest, SealMutableChunksResponse,
};
use tripod_proto::metadata::MARS_COPY_FIRST;

use crate::limits::{
    MATERIALISED_MAX, READ_PATIENCE, STREAMS_MAX, STREAMS_OF_ONE_MAX, UPLOADS_MAX, UPLOADS_OF_ONE_MAX,
    WRITERS_MAX, WRITERS_OF_ONE_MAX,
};
use crate::look_up::LookUps;
use crate::mutable::Engine;
use crate::reading::{self, AsOf};
use crate::request::Wanted;
use crate::store::{Store, Wish};
use crate::stream::{self, Answers, Streams};
use crate::sweeping::Sweeper;
use crate::{dropping, putting, sealing, writing};

/// The chunks of a store, as they are served.
#[derive(Debug, Clone)]
pub struct ChunkData {
    inner: Arc<Inner>,
}

/// What all calls share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) look_ups: LookUps,
    /// Without one nothing mutable is kept here.
    engine: Option<Arc<Engine>>,
    pub(crate) materialised: Arc<Semaphore>,
    answers: Streams,
    writers: Streams,
    /// What other owners write has places of its own: two stores may be writing to each other.
    copies: Streams,
    uploads: Streams,
    /// Chunks that were put were sealed: their files are needed no more, soon.
    pub(crate) sealed: Notify,
}

impl Inner {
    /// # Errors
    /// `FAILED_PRECONDITION` with what the operator has to do.
    pub(crate) fn engine(&self) -> Result<&Arc<Engine>, Status> {
        self.engine.as_ref().ok_or_else(|| {
            Status::failed_precondition(
                "this store keeps no mutable chunks; next: start it with --mutable-dir, or on one that does",
            )
        })
    }
}

impl ChunkData {
    /// Serves the chunks of a store, and with an engine mutable ones.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, engine: Option<Arc<Engine>>) -> Self {
        let inner = Inner {
            look_ups: LookUps::new(Arc::clone(&store)),
            store,
            engine,
            materialised: Arc::new(Semaphore::new(MATERIALISED_MAX)),
            answers: Streams::new(STREAMS_OF_ONE_MAX, STREAMS_MAX),
            writers: Streams::new(WRITERS_OF_ONE_MAX, WRITERS_MAX),
            copies: Streams::new(WRITERS_OF_ONE_MAX, WRITERS_MAX),
            uploads: Streams::new(UPLOADS_OF_ONE_MAX, UPLOADS_MAX),
            sealed: Notify::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// What removes records that nobody needs. One of a store is run.
    #[must_use]
    pub fn sweeper(&self) -> Sweeper {
        Sweeper::new(Arc::clone(&self.inner))
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }
}

type Data = Pin<Box<dyn Stream<Item = Result<Message, Status>> + Send>>;

#[tonic::async_trait]
impl Worker for ChunkData {
    type GetChunksDataStream = Data;
    type GetMutableChunksDataStream = Data;

    async fn get_chunks_data(
        &self,
        request: Request<GetChunksDataRequest>,
    ) -> Result<Response<Self::GetChunksDataStream>, Status> {
        let inner = &self.inner;
        inner.store.admit(request.extensions(), Wish::Data).await?;
        let permit = inner.answers.admit(stream::caller(request.extensions()))?;
        let wanted = Wanted::of(request.into_inner(), inner.store.address())?;
        let told = inner.look_ups.chunks(&wanted.session, &wanted.keys).await?;
        let (writer, answers) = stream::stream(permit, READ_PATIENCE);
        tokio::spawn(reading::chunks(Arc::clone(inner), wanted, told, writer));
        Ok(boxed(answers))
    }

    async fn get_mutable_chunks_data(
        &self,
        request: Request<GetMutableChunksDataRequest>,
    ) -> Result<Response<Self::GetMutableChunksDataStream>, Status> {
        let inner = &self.inner;
        let wish = if request.get_ref().seal { Wish::Order } else { Wish::Data };
        inner.store.admit(request.extensions(), wish).await?;
        let permit = inner.answers.admit(stream::caller(request.extensions()))?;
        let GetMutableChunksDataRequest { chunks, epoch, timestamp_ns, seal } = request.into_inner();
        let wanted = Wanted::of(chunks.unwrap_or_default(), inner.store.address())?;
        inner.engine()?;
        let (writer, answers) = stream::stream(permit, READ_PATIENCE);
        let as_of = AsOf { epoch, timestamp_ns, seal, any_owner: false };
        tokio::spawn(reading::mutable_chunks(Arc::clone(inner), wanted, as_of, writer));
        Ok(boxed(answers))
    }

    async fn put_mutable_chunks_data(
        &self,
        request: Request<Streaming<MutableBatch>>,
    ) -> Result<Response<PutMutableChunksDataResponse>, Status> {
        let inner = &self.inner;
        inner.store.admit(request.extensions(), Wish::Data).await?;
        let caller = stream::caller(request.extensions());
        let first = request.metadata().get(MARS_COPY_FIRST).map(|first| {
            let first = first.to_str().ok().and_then(|first| first.parse().ok());
            first.ok_or_else(|| Status::invalid_argument(format!("{MARS_COPY_FIRST} is no number")))
        });
        let first = first.transpose()?;
        let _permit = if first.is_some() { &inner.copies } else { &inner.writers }.admit(caller)?;
        let put = writing::put(inner, request.into_inner(), first).await?;
        Ok(Response::new(PutMutableChunksDataResponse {
            accepted_batches: put.accepted,
            duplicate_batches: put.duplicates,
        }))
    }

    async fn put_chunks_data(
        &self,
        request: Request<Streaming<Message>>,
    ) -> Result<Response<PutChunksDataResponse>, Status> {
        let inner = &self.inner;
        inner.store.admit(request.extensions(), Wish::Data).await?;
        let _permit = inner.uploads.admit(stream::caller(request.extensions()))?;
        let stored = putting::put(inner, request.into_inner()).await?;
        Ok(Response::new(PutChunksDataResponse { stored }))
    }

    async fn seal_mutable_chunks(
        &self,
        request: Request<SealMutableChunksRequest>,
    ) -> Result<Response<SealMutableChunksResponse>, Status> {
        self.inner.store.admit(request.extensions(), Wish::Order).await?;
        let chunks = sealing::seal(&self.inner, request.into_inner()).await?;
        Ok(Response::new(SealMutableChunksResponse { chunks }))
    }

    async fn drop_chunks(
        &self,
        request: Request<DropChunksRequest>,
    ) -> Result<Response<DropChunksResponse>, Status> {
        self.inner.store.admit(request.extensions(), Wish::Order).await?;
        let DropChunksRequest { session_id, keys } = request.into_inner();
        let dropped = dropping::drop_chunks(&self.inner, &session_id, &keys).await?;
        Ok(Response::new(DropChunksResponse { dropped }))
    }

    async fn get_worker_status(
        &self,
        request: Request<GetWorkerStatusRequest>,
    ) -> Result<Response<GetWorkerStatusResponse>, Status> {
        self.inner.store.admit(request.extensions(), Wish::Data).await?;
        let usage = self.inner.store.usage();
        let (mutable, mutable_bytes) =
            self.inner.engine.as_ref().map_or((0, 0), |engine| (engine.count(), engine.held_bytes()));
        Ok(Response::new(GetWorkerStatusResponse {
            worker_id: self.inner.store.address().to_owned(),
            slots: u32::try_from(usage.workers).unwrap_or(u32::MAX),
            // Which of them are busy the scheduler knows.
            slots_used: 0,
            memory_bytes: usage.capacity_bytes,
            memory_used_bytes: usage.used_bytes,
            disk_used_bytes: usage.spilled_bytes.saturating_add(mutable_bytes),
            chunks: (usage.objects + mutable) as u64,
        }))
    }
}

fn boxed(answers: Answers) -> Response<Data> {
    Response::new(Box::pin(answers))
}
