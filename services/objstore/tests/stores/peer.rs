//! Another store, as the test wants it: one that lies, breaks off, or sends nothing.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_stream::Stream;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status};
use tripod_proto::ray::obj_store_server::{ObjStore, ObjStoreServer};
use tripod_proto::ray::{
    AckReply, DeallocateObjectRequest, NotifyAliasRequest, ObjChunk, ObjStoreInfoReply, ObjStoreInfoRequest,
    StartDeliveryRequest, StreamObjToRequest,
};

/// What the peer does after its chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Ends,
    Breaks,
    Hangs,
}

/// What it answers to a request.
type Script = dyn Fn(&StreamObjToRequest) -> Result<(Vec<ObjChunk>, Then), Status> + Send + Sync;

/// A store that does as it is told.
#[derive(Clone)]
pub(crate) struct Peer {
    script: Arc<Script>,
    asked: Arc<Mutex<Vec<StreamObjToRequest>>>,
}

/// A peer that listens, until this is dropped.
pub(crate) struct ListeningPeer {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<StreamObjToRequest>>>,
    task: JoinHandle<()>,
}

impl Drop for ListeningPeer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ListeningPeer {
    pub(crate) fn asked(&self) -> Vec<StreamObjToRequest> {
        self.asked.lock().expect("not poisoned").clone()
    }
}

/// A peer that answers by the script.
pub(crate) async fn peer(
    script: impl Fn(&StreamObjToRequest) -> Result<(Vec<ObjChunk>, Then), Status> + Send + Sync + 'static,
) -> ListeningPeer {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let asked = Arc::default();
    let peer = Peer { script: Arc::new(script), asked: Arc::clone(&asked) };
    let router = tonic::transport::Server::builder().add_service(ObjStoreServer::new(peer));
    let serving = router.serve_with_incoming(TcpListenerStream::new(listener));
    let task = tokio::spawn(async move { serving.await.expect("served") });
    ListeningPeer { address, asked, task }
}

/// A chunk as a store of ours sends it.
pub(crate) fn chunk(total: usize, data: &[u8]) -> ObjChunk {
    ObjChunk {
        total_size: total as u64,
        metadata_offset: 0,
        data: data.to_vec().into(),
        data_crc32c: Some(crc32c::crc32c(data)),
        before_crc32c: None,
    }
}

#[tonic::async_trait]
impl ObjStore for Peer {
    type StreamObjToStream = Pin<Box<dyn Stream<Item = Result<ObjChunk, Status>> + Send>>;

    async fn stream_obj_to(
        &self,
        request: Request<StreamObjToRequest>,
    ) -> Result<Response<Self::StreamObjToStream>, Status> {
        let request = request.into_inner();
        self.asked.lock().expect("not poisoned").push(request);
        let (chunks, then) = (self.script)(&request)?;
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move {
            for chunk in chunks {
                if sender.send(Ok(chunk)).await.is_err() {
                    return;
                }
            }
            match then {
                Then::Ends => {}
                Then::Breaks => _ = sender.send(Err(Status::unavailable("it breaks off"))).await,
                Then::Hangs => sender.closed().await,
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn start_delivery(&self, _: Request<StartDeliveryRequest>) -> Result<Response<AckReply>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn notify_alias(&self, _: Request<NotifyAliasRequest>) -> Result<Response<AckReply>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn deallocate_object(
        &self,
        _: Request<DeallocateObjectRequest>,
    ) -> Result<Response<AckReply>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn obj_store_info(
        &self,
        _: Request<ObjStoreInfoRequest>,
    ) -> Result<Response<ObjStoreInfoReply>, Status> {
        Err(Status::unimplemented(""))
    }
}
