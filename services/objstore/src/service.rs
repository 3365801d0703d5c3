//! `/ObjStore/*`: what the scheduler and other stores ask of this one.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio_stream::{Iter, Stream, StreamExt as _};
use tonic::{Request, Response, Status};
use tripod_proto::ray::obj_store_server::ObjStore;
use tripod_proto::ray::{
    AckReply, DeallocateObjectRequest, NotifyAliasRequest, ObjChunk, ObjStoreInfoReply, ObjStoreInfoRequest,
    StartDeliveryRequest, StreamObjToRequest,
};

use crate::callers::{Callers, Wish};
use crate::chunks::Chunks;
use crate::ids::ObjectId;
use crate::incarnation::{Current, Incarnation};
use crate::shelf::GetError;

/// How long an object that a peer asks for may take to be read from disk.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long who asks for the store's socket is kept waiting for its registration, which the scheduler tells to others
/// as soon as it is made, perhaps before the store has heard of it. Clients give up after 10 s.
const REGISTRATION_PATIENCE: Duration = Duration::from_secs(5);

/// The service of one store.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    current: Current,
    /// Where processes of this machine connect, if the path can be told.
    socket: Arc<PathBuf>,
    pub(crate) callers: Arc<Callers>,
}

impl Service {
    pub(crate) fn new(current: Current, socket: PathBuf, callers: Arc<Callers>) -> Self {
        Self { current, socket: Arc::new(socket), callers }
    }

    fn any(&self) -> Result<Arc<Incarnation>, Status> {
        let current = self.current.borrow().clone();
        current
            .ok_or_else(|| Status::unavailable("the store is not registered with a scheduler yet; try again"))
    }

    /// The same, soon.
    async fn once_registered(&self) -> Result<Arc<Incarnation>, Status> {
        let mut current = self.current.clone();
        // One that does not come is told of by the refusal.
        let _ = tokio::time::timeout(REGISTRATION_PATIENCE, current.wait_for(Option::is_some)).await;
        self.any()
    }

    /// The store that a call is meant for. Calls of seed schedulers do not say, so any is.
    fn meant(&self, told: Option<u64>) -> Result<Arc<Incarnation>, Status> {
        let current = self.any()?;
        match told {
            Some(told) if told != current.id.0 => Err(Status::failed_precondition(format!(
                "this is object store {}, and the call is for {told}; next: look whether that one has expired",
                current.id
            ))),
            _ => Ok(current),
        }
    }
}

#[tonic::async_trait]
impl ObjStore for Service {
    async fn start_delivery(
        &self,
        request: Request<StartDeliveryRequest>,
    ) -> Result<Response<AckReply>, Status> {
        self.callers.check(request.extensions(), Wish::Order).await?;
        let request = request.into_inner();
        let current = self.meant(request.objstoreid)?;
        if request.objstore_address.is_empty() {
            return Err(Status::invalid_argument(
                "objstore_address is empty; name the store that has the object",
            ));
        }
        current.deliveries.order(ObjectId(request.objectid), &request.objstore_address);
        Ok(Response::new(AckReply {}))
    }

    type StreamObjToStream = Pin<Box<dyn Stream<Item = Result<ObjChunk, Status>> + Send>>;

    async fn stream_obj_to(
        &self,
        request: Request<StreamObjToRequest>,
    ) -> Result<Response<Self::StreamObjToStream>, Status> {
        self.callers.check(request.extensions(), Wish::Object).await?;
        let request = request.into_inner();
        let current = self.any()?;
        let id = ObjectId(request.objectid);
        let chunks = chunks(&current, id, request.offset, request.chunk_bytes).await?;
        let stream: Iter<Chunks> = tokio_stream::iter(chunks);
        Ok(Response::new(Box::pin(stream.map(Ok))))
    }

    async fn notify_alias(&self, request: Request<NotifyAliasRequest>) -> Result<Response<AckReply>, Status> {
        self.callers.check(request.extensions(), Wish::Order).await?;
        let request = request.into_inner();
        let current = self.meant(request.objstoreid)?;
        let (alias, canonical) = (ObjectId(request.alias_objectid), ObjectId(request.canonical_objectid));
        let refused = |refusal: crate::table::Refusal| Status::failed_precondition(refusal.to_string());
        current.shelf.alias(alias, canonical).map_err(refused)?;
        Ok(Response::new(AckReply {}))
    }

    async fn deallocate_object(
        &self,
        request: Request<DeallocateObjectRequest>,
    ) -> Result<Response<AckReply>, Status> {
        self.callers.check(request.extensions(), Wish::Order).await?;
        let request = request.into_inner();
        let current = self.meant(request.objstoreid)?;
        let id = ObjectId(request.canonical_objectid);
        current.shelf.deallocate(id);
        current.deliveries.cancel(id);
        Ok(Response::new(AckReply {}))
    }

    async fn obj_store_info(
        &self,
        _: Request<ObjStoreInfoRequest>,
    ) -> Result<Response<ObjStoreInfoReply>, Status> {
        let current = self.once_registered().await?;
        let usage = current.shelf.usage();
        Ok(Response::new(ObjStoreInfoReply {
            objectid: current.shelf.ready().into_iter().map(|id| id.0).collect(),
            obj: Vec::new(),
            objstoreid: Some(current.id.0),
            used_bytes: usage.used_bytes,
            capacity_bytes: usage.capacity_bytes,
            spilled_bytes: usage.spilled_bytes,
            local_socket: self.socket.to_string_lossy().into_owned(),
        }))
    }
}

/// The chunks of an object that is here. One that is not is not waited for: the peer has other sources.
async fn chunks(
    current: &Incarnation,
    id: ObjectId,
    offset: u64,
    chunk_bytes: u64,
) -> Result<Chunks, Status> {
    if !current.shelf.is_ready(id) {
        return Err(match current.shelf.get_now(id) {
            Some(Err(error)) => refused(&error),
            _ => Status::not_found(format!("object {id} is not in store {}", current.id)),
        });
    }
    let value = match tokio::time::timeout(RESTORE_TIMEOUT, current.shelf.get(id)).await {
        Ok(got) => got.map_err(|error| refused(&error))?,
        Err(_) => {
            return Err(Status::unavailable(format!("object {id} could not be read from disk in time")));
        }
    };
    let pinned = value
        .bytes()
        .map_err(|error| Status::resource_exhausted(format!("object {id} cannot be mapped: {error}")))?;
    Chunks::new(pinned, value.metadata_offset, offset, chunk_bytes).map_err(|_| {
        let size = value.size_bytes;
        Status::out_of_range(format!("object {id} has {size} bytes, so none from {offset} on"))
    })
}

fn refused(error: &GetError) -> Status {
    let text = error.to_string();
    match error {
        GetError::Deallocated(_) => Status::not_found(text),
        GetError::Lost(_) => Status::data_loss(text),
        GetError::Reserve(_) => Status::resource_exhausted(text),
        GetError::TooLarge { .. } | GetError::GivenUp { .. } => Status::not_found(text),
        GetError::Ended => Status::unavailable(text),
    }
}
