//! Orders to one worker over one stream, if it serves such: a call for each costs a worker in Python more than a short
//! task does.

use std::error::Error as _;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};
use tripod_proto::tripod::v1::ray_peer_line_client::RayPeerLineClient;
use tripod_proto::tripod::v1::{RayTellRequest, RayTellResponse};

use super::links::Links;
use super::order::{self, Ready};

/// How long a worker may take to answer over its stream, or to open one. Short, as the same orders are given another way
/// then, which has its own patience: the two must not add up for a worker that is away.
const PATIENCE: Duration = Duration::from_secs(1);

/// The stream of one lane.
#[derive(Debug, Default)]
pub(super) enum Line {
    /// There is none at present.
    #[default]
    Closed,
    Open(Box<Open>),
    /// The worker serves none.
    Unknown,
}

#[derive(Debug)]
pub(super) struct Open {
    orders: mpsc::Sender<RayTellRequest>,
    answers: Streaming<RayTellResponse>,
}

impl Line {
    /// Whether it is worth while to tell orders this way.
    pub(super) fn is_usable(&self) -> bool {
        !matches!(self, Self::Unknown)
    }

    /// Tells orders that all go to one address. Gives how many were taken, from the first on; the others are to be sent
    /// another way, which shows why.
    pub(super) async fn tell(&mut self, orders: &[Ready], links: &Links) -> usize {
        let Some(Ready { address, .. }) = orders.first() else { return 0 };
        let request = order::together(orders);
        let told = tokio::time::timeout(PATIENCE, async {
            match self {
                Self::Open(open) => open.tell(request).await,
                Self::Closed | Self::Unknown => {
                    let channel = links.to(address).await.map_err(Status::unavailable)?;
                    // The worker may begin its answer only when it has something to answer.
                    let (orders, waiting) = mpsc::channel(1);
                    orders.try_send(request).map_err(|error| Status::internal(error.to_string()))?;
                    let mut peer = RayPeerLineClient::new(channel);
                    let answers = peer.orders(ReceiverStream::new(waiting)).await?.into_inner();
                    let mut open = Open { orders, answers };
                    let answer = open.answer().await?;
                    *self = Self::Open(Box::new(open));
                    Ok(answer)
                }
            }
        });
        match told.await {
            Ok(Ok(answer)) => order::taken(&answer, orders.len()),
            Ok(Err(status)) if status.code() == Code::Unimplemented && status.source().is_none() => {
                *self = Self::Unknown;
                0
            }
            Ok(Err(_)) | Err(_) => {
                if matches!(self, Self::Open(_)) {
                    links.broken(address);
                }
                *self = Self::Closed;
                0
            }
        }
    }
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
