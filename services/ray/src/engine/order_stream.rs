//! Orders to one worker over one stream, if it serves such: a call for each costs a worker in Python more than a short
//! task does.

use std::error::Error as _;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Status, Streaming};
use tripod_proto::metadata::RAY_WORKER;
use tripod_proto::tripod::v1::ray_peer_line_client::RayPeerLineClient;
use tripod_proto::tripod::v1::{RayTellRequest, RayTellResponse};
use tripod_state::ray::ids::WorkerId;

use super::links::Links;
use super::order::{self, Ready};

/// How long a worker may take to answer over its stream, or to open one. Short, as the same orders are given another way
/// then, which has its own patience: the two must not add up for a worker that is away.
const PATIENCE: Duration = Duration::from_secs(1);

/// The stream of one queue of orders.
#[derive(Debug)]
pub(super) struct OrderStream {
    worker: WorkerId,
    state: State,
    /// Whether the worker's object store may pass orders on to it, which costs a worker in Python less still. It is asked
    /// each time a stream is opened: a worker may say that it wants them there after the first orders.
    by_store: bool,
}

#[derive(Debug)]
enum State {
    /// There is none at present.
    Closed,
    Open(Box<Open>),
    /// The worker serves none.
    Unknown,
}

#[derive(Debug)]
struct Open {
    /// Who takes the orders: the worker, or its store.
    address: String,
    orders: mpsc::Sender<RayTellRequest>,
    answers: Streaming<RayTellResponse>,
}

impl OrderStream {
    /// A worker's, not open yet.
    pub(super) fn to(worker: WorkerId) -> Self {
        Self { worker, state: State::Closed, by_store: true }
    }

    /// Whether it is worth while to tell orders this way.
    pub(super) fn is_usable(&self) -> bool {
        !matches!(self.state, State::Unknown)
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Tells orders for the worker, whose object store is at the address `store`, which counts if the stream is to be opened. Gives how many were taken, from the first
    /// on; the others are to be sent another way, which shows why.
    pub(super) async fn tell(&mut self, orders: &[Ready], store: Option<&str>, links: &Links) -> usize {
        let Some(Ready { address, .. }) = orders.first() else { return 0 };
        let request = order::together(orders);
        let told = match &mut self.state {
            State::Open(open) => {
                let told = in_time(open.tell(request)).await;
                if told.is_err() {
                    links.broken(&open.address);
                    self.state = State::Closed;
                }
                told
            }
            State::Closed => match self.open_by_store(store, &request, links).await {
                Some(told) => told,
                None => {
                    let told = self.open(address, request, links).await;
                    if told.as_ref().is_err_and(|status| is_word(status, Code::Unimplemented)) {
                        self.state = State::Unknown;
                    }
                    told
                }
            },
            State::Unknown => return 0,
        };
        told.map_or(0, |answer| order::taken(&answer, orders.len()))
    }

    /// `None` if they are to be told to the worker itself.
    async fn open_by_store(
        &mut self,
        store: Option<&str>,
        request: &RayTellRequest,
        links: &Links,
    ) -> Option<Result<RayTellResponse, Status>> {
        let store = store.filter(|_| self.by_store)?;
        let told = self.open(store, request.clone(), links).await;
        match &told {
            // The worker has not said so, or not yet.
            Err(status) if is_word(status, Code::NotFound) => None,
            // It passes none on, or is in trouble of its own, which is no reason to try it again and again.
            Err(_) => {
                self.by_store = false;
                None
            }
            Ok(_) => Some(told),
        }
    }

    async fn open(
        &mut self,
        address: &str,
        first: RayTellRequest,
        links: &Links,
    ) -> Result<RayTellResponse, Status> {
        let (open, answer) = in_time(async {
            let channel = links.to(address).await.map_err(Status::unavailable)?;
            // The worker may begin its answer only when it has something to answer.
            let (orders, waiting) = mpsc::channel(1);
            orders.try_send(first).map_err(|error| Status::internal(error.to_string()))?;
            let mut request = Request::new(ReceiverStream::new(waiting));
            _ = request.metadata_mut().insert(RAY_WORKER, self.worker.0.into());
            let answers = RayPeerLineClient::new(channel).orders(request).await?.into_inner();
            let mut open = Open { address: address.to_owned(), orders, answers };
            let answer = open.answer().await?;
            Ok((open, answer))
        })
        .await?;
        self.state = State::Open(Box::new(open));
        Ok(answer)
    }
}

/// Whether the peer itself said so. A status that this side made up comes with the transport's error.
fn is_word(status: &Status, code: Code) -> bool {
    status.code() == code && status.source().is_none()
}

async fn in_time<T>(call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    tokio::time::timeout(PATIENCE, call).await.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer")))
}

impl Open {
    async fn tell(&mut self, request: RayTellRequest) -> Result<RayTellResponse, Status> {
        self.orders.send(request).await.map_err(|_| Status::unavailable("the stream has ended"))?;
        self.answer().await
    }

    async fn answer(&mut self) -> Result<RayTellResponse, Status> {
        self.answers.message().await?.ok_or_else(|| Status::unavailable("the stream has ended"))
    }
}
