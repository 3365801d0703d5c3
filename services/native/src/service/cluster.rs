//! `tripod.v1.Cluster`.

use tokio::sync::watch;
use tonic::{Request, Response, Status};
use tripod_audit::{Auditor, Record};
use tripod_gate::{Admitted, Mode};
use tripod_gateway::{Consistency, Gateway};
use tripod_proto::tripod::v1::cluster_server::Cluster;
use tripod_proto::tripod::v1::{
    CancelChangeRequest, CancelChangeResponse, ChangeMembersRequest, ChangeMembersResponse, DrainNodeRequest,
    DrainNodeResponse, JoinRequest, JoinResponse, ListMembersRequest, ListMembersResponse, StatusRequest,
    StatusResponse, TransferLeaderRequest, TransferLeaderResponse,
};
use tripod_state::State;
use tripod_state::identity::Mode as Protection;
use tripod_state::ids::{NodeId, TimeMs};

use super::members;
use crate::audited::{audited, call};
use crate::{Backups, JobPorts, admitted, encode, status};

/// A job whose tasks have waited for others for so long is told of.
const WAITING_MS: u64 = 60_000;

pub(crate) struct Service {
    gateway: Gateway,
    job_ports: watch::Receiver<JobPorts>,
    backups: watch::Receiver<Option<Backups>>,
    auditor: Auditor,
    authorise: Mode,
    protection: Protection,
}

impl Service {
    pub(super) fn new(
        gateway: Gateway,
        job_ports: watch::Receiver<JobPorts>,
        backups: watch::Receiver<Option<Backups>>,
        auditor: Auditor,
        authorise: Mode,
    ) -> Self {
        Self { gateway, job_ports, backups, auditor, authorise, protection: Protection::Off }
    }

    /// The same of a node that is protected so.
    pub(super) fn protected(self, protection: Protection) -> Self {
        Self { protection, ..self }
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
        if request.get_ref().digest {
            admitted::asks_for_digest(request.extensions())?;
        }
        let caller = Admitted::of(request.extensions()).cloned();
        // First: whatever is said of the log is said later, so the log is never behind what was hashed.
        let hashed = if request.into_inner().digest { Some(self.digest().await?) } else { None };
        // By this node's clock: whoever asks for the status does not wait for the leader.
        let before = TimeMs(self.gateway.now().0.saturating_sub(WAITING_MS));
        let look = |state: &State| {
            let (count, longest) = state.jobs_waiting(before);
            let waiting = (count, longest.map(ToString::to_string));
            (state.jobs(), state.members(), waiting, (state.registry().open().is_some(), state.floor().mode))
        };
        let (jobs, addresses, waiting, (is_changing, floor)) = self.local(look).await?;
        let mut response = encode::status(&self.gateway.admin().status(), &jobs, &addresses);
        encode::job_ports(&mut response, &self.job_ports.borrow(), &jobs);
        encode::measured::add(&mut response, &self.gateway.admin().measures(), self.gateway.held_calls());
        response.backups = self.backups.borrow().as_ref().map(Backups::message);
        (response.jobs_waiting, response.waiting_job) = (waiting.0, waiting.1.unwrap_or_default());
        response.change_under_way = is_changing;
        if let Some(caller) = caller {
            hide_jobs(&mut response, |job| caller.may_hear_of(job));
        }
        response.waiting_calls = self.gateway.waiting_calls();
        response.authorise = self.authorise.word().to_owned();
        response.insecure = self.gateway.is_insecure();
        response.protection = self.protection.word().to_owned();
        response.floor = floor.word().to_owned();
        if let Some((applied, digest)) = hashed {
            (response.applied_index, response.digest) = (applied, digest);
        }
        Ok(Response::new(response))
    }

    async fn transfer_leader(
        &self,
        request: Request<TransferLeaderRequest>,
    ) -> Result<Response<TransferLeaderResponse>, Status> {
        let record = call(request.extensions(), "Cluster/TransferLeader");
        let to = Some(request.into_inner().to).filter(|to| *to != 0).map(NodeId);
        let whom = to.map_or_else(|| "whoever is furthest".to_owned(), |to| format!("node {to}"));
        let transfer = async {
            match self.gateway.admin().transfer_leadership(to).await {
                Ok(()) => Ok(Response::new(TransferLeaderResponse {})),
                Err(error) => Err(Status::failed_precondition(format!(
                    "leadership was not handed over: {error}; see who leads with `tripod status`"
                ))),
            }
        };
        audited(&self.auditor, Record { resource: whom.as_str().into(), ..record }, transfer).await
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
        let record = call(request.extensions(), "Cluster/ChangeMembers");
        let told = request.into_inner();
        let resource = changed_by(&told);
        let work = async { members::change(&self.gateway, told).await.map(Response::new) };
        audited(&self.auditor, Record { resource: resource.as_str().into(), ..record }, work).await
    }

    async fn cancel_change(
        &self,
        request: Request<CancelChangeRequest>,
    ) -> Result<Response<CancelChangeResponse>, Status> {
        let record = call(request.extensions(), "Cluster/CancelChange");
        let told = request.into_inner();
        let resource = format!("change {}", told.change_id);
        let work = async { members::cancel(&self.gateway, &told).await.map(Response::new) };
        audited(&self.auditor, Record { resource: resource.as_str().into(), ..record }, work).await
    }

    async fn drain_node(
        &self,
        request: Request<DrainNodeRequest>,
    ) -> Result<Response<DrainNodeResponse>, Status> {
        let record = call(request.extensions(), "Cluster/DrainNode");
        let told = request.into_inner();
        let resource =
            format!("node {}: {}", told.node_id, if told.drained { "drained" } else { "undrained" });
        let work = async { members::drain(&self.gateway, &told).await.map(Response::new) };
        audited(&self.auditor, Record { resource: resource.as_str().into(), ..record }, work).await
    }

    async fn join(&self, request: Request<JoinRequest>) -> Result<Response<JoinResponse>, Status> {
        let record = call(request.extensions(), "Cluster/Join");
        let told = request.into_inner();
        let resource = format!("peer {}", told.peer_address);
        let work = async { members::join(&self.gateway, told).await.map(Response::new) };
        audited(&self.auditor, Record { resource: resource.as_str().into(), ..record }, work).await
    }
}

/// Takes out what names jobs of which the caller may not hear.
fn hide_jobs(response: &mut StatusResponse, may_hear_of: impl Fn(&str) -> bool) {
    response.closed_job_ports.retain(|port| may_hear_of(&port.job));
    if !may_hear_of(&response.waiting_job) {
        (response.jobs_waiting, response.waiting_job) = (0, String::new());
    }
}

/// What is to change, and who says that.
fn changed_by(request: &ChangeMembersRequest) -> String {
    let ChangeMembersRequest { change, by, plan, .. } = request;
    let change = change.as_ref().map_or_else(String::new, |change| format!("{change:?}"));
    let plan = if *plan { " (plan only)" } else { "" };
    format!("{change}{plan}, says {by}")
}

#[cfg(test)]
mod tests {
    use tripod_proto::tripod::v1::ClosedJobPort;

    use super::*;

    #[test]
    fn a_status_names_no_job_of_which_its_caller_may_not_hear() {
        let port = |job: &str| ClosedJobPort { job: job.to_owned(), ..Default::default() };
        let waiting = |job: &str| StatusResponse {
            closed_job_ports: vec![port("own"), port("other")],
            jobs_waiting: 2,
            waiting_job: job.to_owned(),
            ..Default::default()
        };
        let mut told = waiting("other");
        hide_jobs(&mut told, |job| job == "own");
        assert_eq!(told.closed_job_ports, [port("own")]);
        assert_eq!((told.jobs_waiting, told.waiting_job.as_str()), (0, ""));
        let mut told = waiting("own");
        hide_jobs(&mut told, |job| job == "own");
        assert_eq!((told.jobs_waiting, told.waiting_job.as_str()), (2, "own"));
        let mut told = waiting("other");
        hide_jobs(&mut told, |_| true);
        assert_eq!(told, waiting("other"));
    }
}
