//! `tripod.v1.Cluster`.

use tokio::sync::watch;
use tonic::{Request, Response, Status};
use tripod_gateway::{Consistency, Gateway};
use tripod_proto::tripod::v1::cluster_server::Cluster;
use tripod_proto::tripod::v1::{
    CancelChangeRequest, CancelChangeResponse, ChangeMembersRequest, ChangeMembersResponse, DrainNodeRequest,
    DrainNodeResponse, JoinRequest, JoinResponse, ListMembersRequest, ListMembersResponse, StatusRequest,
    StatusResponse, TransferLeaderRequest, TransferLeaderResponse,
};
use tripod_state::State;
use tripod_state::ids::NodeId;

use super::members;
use crate::{Backups, JobPorts, encode, status};

pub(super) struct Service {
    gateway: Gateway,
    job_ports: watch::Receiver<JobPorts>,
    backups: watch::Receiver<Option<Backups>>,
}

impl Service {
    pub(super) fn new(
        gateway: Gateway,
        job_ports: watch::Receiver<JobPorts>,
        backups: watch::Receiver<Option<Backups>>,
    ) -> Self {
        Self { gateway, job_ports, backups }
    }

    /// The index of this node's state and the digest of exactly that state, a pair that can be compared with
    /// other nodes'.
    async fn digest(&self) -> Result<(u64, u64), Status> {
        let hashed =
            self.gateway.read_aside(Consistency::Local, |index, state| (index.0, state.digest())).await;
        hashed.map_err(|outage| status::of_outage(&outage))
    }

    async fn local<T>(&self, look: impl FnOnce(&State) -> T) -> Result<T, Status> {
        self.gateway.read(Consistency::Local, look).await.map_err(|outage| status::of_outage(&outage))
    }
}

#[tonic::async_trait]
impl Cluster for Service {
    async fn status(&self, request: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        // First: whatever is said of the log is said later, so the log is never behind what was hashed.
        let hashed = if request.into_inner().digest { Some(self.digest().await?) } else { None };
        let (jobs, addresses) = self.local(|state| (state.jobs(), state.members())).await?;
        let mut response = encode::status(&self.gateway.admin().status(), &jobs, &addresses);
        encode::job_ports(&mut response, &self.job_ports.borrow(), &jobs);
        encode::measured::add(&mut response, &self.gateway.admin().measures(), self.gateway.held_calls());
        response.backups = self.backups.borrow().as_ref().map(Backups::message);
        response.waiting_calls = self.gateway.waiting_calls();
        response.insecure = self.gateway.is_insecure();
        if let Some((applied, digest)) = hashed {
            (response.applied_index, response.digest) = (applied, digest);
        }
        Ok(Response::new(response))
    }

    async fn transfer_leader(
        &self,
        request: Request<TransferLeaderRequest>,
    ) -> Result<Response<TransferLeaderResponse>, Status> {
        let to = Some(request.into_inner().to).filter(|to| *to != 0).map(NodeId);
        match self.gateway.admin().transfer_leadership(to).await {
            Ok(()) => Ok(Response::new(TransferLeaderResponse {})),
            Err(error) => Err(Status::failed_precondition(format!(
                "leadership was not handed over: {error}; see who leads with `tripod status`"
            ))),
        }
    }

    async fn list_members(
        &self,
        _: Request<ListMembersRequest>,
    ) -> Result<Response<ListMembersResponse>, Status> {
        let addresses = self.local(State::members).await?;
        members::list(&self.gateway, &addresses).await.map(Response::new)
    }

    async fn change_members(
        &self,
        request: Request<ChangeMembersRequest>,
    ) -> Result<Response<ChangeMembersResponse>, Status> {
        members::change(&self.gateway, request.into_inner()).await.map(Response::new)
    }

    async fn cancel_change(
        &self,
        request: Request<CancelChangeRequest>,
    ) -> Result<Response<CancelChangeResponse>, Status> {
        members::cancel(&self.gateway, request.get_ref()).await.map(Response::new)
    }

    async fn drain_node(
        &self,
        request: Request<DrainNodeRequest>,
    ) -> Result<Response<DrainNodeResponse>, Status> {
        members::drain(&self.gateway, request.get_ref()).await.map(Response::new)
    }

    async fn join(&self, request: Request<JoinRequest>) -> Result<Response<JoinResponse>, Status> {
        members::join(&self.gateway, request.into_inner()).await.map(Response::new)
    }
}
