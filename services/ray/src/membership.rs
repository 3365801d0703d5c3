//! `tripod.v1.Membership`: heartbeats of our own workers, drivers and stores.

use tonic::{Request, Response, Status};
use tripod_gateway::Consistency;
use tripod_proto::tripod::v1::heartbeat_request::Kind;
use tripod_proto::tripod::v1::heartbeat_response::Order;
use tripod_proto::tripod::v1::membership_server::Membership;
use tripod_proto::tripod::v1::{HeartbeatRequest, HeartbeatResponse};
use tripod_state::ids::JobId;
use tripod_state::ray::ids::{StoreId, WorkerId};
use tripod_state::ray::view::WorkerLife;
use tripod_state::ray::{Peer, Ray};

use crate::front::Front;
use crate::pulse::{Beat, Usage};
use crate::status;

/// Heartbeats at one port.
pub(crate) struct Service {
    front: Front,
}

impl Service {
    pub(crate) fn new(front: Front) -> Self {
        Self { front }
    }

    /// What to tell a peer. Who is dead by this node's state is dead for ever; who is unknown here may be known to
    /// the leader.
    async fn order(&self, job: JobId, peer: Peer, watched: bool) -> Result<Order, Status> {
        if self.lives(job, peer, Consistency::Local).await? == Some(false) {
            return Ok(Order::Reregister);
        }
        if watched || self.lives(job, peer, Consistency::Linearizable).await? == Some(true) {
            return Ok(Order::None);
        }
        Ok(Order::Reregister)
    }

    /// Whether the peer is alive; `None`: there is none of that id.
    async fn lives(&self, job: JobId, peer: Peer, freshness: Consistency) -> Result<Option<bool>, Status> {
        let look = |ray: &Ray| match peer {
            Peer::Worker(worker) => {
                ray.worker(worker).map(|worker| !matches!(worker.life, WorkerLife::Dead(_)))
            }
            Peer::Store(store) => ray.store(store).map(|store| store.alive),
        };
        self.front.read(freshness, job, look).await
    }
}

#[tonic::async_trait]
impl Membership for Service {
    async fn heartbeat(
        &self,
        request: Request<HeartbeatRequest>,
    ) -> Result<Response<HeartbeatResponse>, Status> {
        let (metadata, _, beat) = request.into_parts();
        let job = self.front.job(&metadata).await?;
        let (peer, usage) = match beat.kind() {
            Kind::Worker | Kind::Driver => (Peer::Worker(WorkerId(beat.id)), None),
            Kind::Store => (Peer::Store(StoreId(beat.id)), Some(Usage::of(&beat))),
            Kind::Unspecified => return Err(status::invalid("kind: it is not said who beats")),
        };
        let told = self.front.pulse.beat(Beat { job, peer, usage }).await;
        let told = told.map_err(|outage| status::of_outage(&outage))?;
        let order = self.order(job, peer, told.watched).await?;
        let leader = self.front.leader.borrow().clone();
        Ok(Response::new(HeartbeatResponse {
            ttl_ms: told.ttl_ms,
            term: leader.term,
            leader_address: leader.address.unwrap_or_default(),
            order: order.into(),
        }))
    }
}
