//! `tripod.v1.RayPeerLine`: orders for workers of this machine that take them from the store.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::{Stream, StreamExt as _};
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Request, Response, Status, Streaming};
use tripod_proto::metadata::RAY_WORKER;
use tripod_proto::raw::RawCodec;

use super::followers::OrderDelivery;
use crate::callers::{Callers, Wish};
use crate::incarnation::Current;

const PATH: &str = "/tripod.v1.RayPeerLine/Orders";

/// The service of one store. Messages pass undecoded, so it is not the generated one.
#[derive(Debug, Clone)]
pub(crate) struct OrdersServer {
    current: Current,
    callers: Arc<Callers>,
}

impl OrdersServer {
    pub(crate) fn new(current: Current, callers: Arc<Callers>) -> Self {
        Self { current, callers }
    }

    /// The way to the worker that a call names.
    fn worker(&self, request: &Request<Streaming<Bytes>>) -> Result<mpsc::Sender<OrderDelivery>, Status> {
        let named = request.metadata().get(RAY_WORKER).and_then(|value| value.to_str().ok()?.parse().ok());
        let worker: u64 = named.ok_or_else(|| {
            Status::invalid_argument(format!(
                "{RAY_WORKER} names no worker; next: name the one that is meant"
            ))
        })?;
        let current = self.current.borrow().clone();
        current.and_then(|current| current.followers.to(worker)).ok_or_else(|| {
            Status::not_found(format!("worker {worker} takes no orders here; next: give them to it directly"))
        })
    }
}

type Answers = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;

impl StreamingService<Bytes> for OrdersServer {
    type Response = Bytes;
    type ResponseStream = Answers;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Answers>, Status>> + Send>>;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            service.callers.check(request.extensions(), Wish::Order).await?;
            let worker = service.worker(&request)?;
            let answers = request.into_inner().then(move |orders| told(worker.clone(), orders));
            Ok(Response::new(Box::pin(answers) as Answers))
        })
    }
}

/// Tells a worker orders, and gives its answer.
async fn told(worker: mpsc::Sender<OrderDelivery>, orders: Result<Bytes, Status>) -> Result<Bytes, Status> {
    let gone = || Status::unavailable("the worker takes no orders here any more");
    let (answer, answered) = oneshot::channel();
    worker.send(OrderDelivery { orders: orders?, answer }).await.map_err(|_| gone())?;
    answered.await.map_err(|_| gone())
}

impl NamedService for OrdersServer {
    const NAME: &'static str = "tripod.v1.RayPeerLine";
}

impl Service<http::Request<Body>> for OrdersServer {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            if request.uri().path() != PATH {
                return Ok(Status::unimplemented("there is no such call").into_http());
            }
            Ok(Grpc::new(RawCodec).streaming(service, request).await)
        })
    }
}
