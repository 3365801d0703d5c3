//! `tripod.v1.Diagnose`.

use std::time::Duration;

use tokio::time::timeout;
use tonic::{Request, Response, Status};
use tripod_gateway::{Consistency, Gateway};
use tripod_proto::tripod::v1::diagnose_server::Diagnose;
use tripod_proto::tripod::v1::{DiagnoseJobRequest, DiagnoseJobResponse};
use tripod_sight::{Facts, Memory, Patience, diagnose};
use tripod_state::State;
use tripod_state::ids::{JobId, LogIndex, NodeId};

use crate::facts::{self, Gathered};
use crate::{admitted, resolve, status};

/// How long each member may take to say what it knows.
const MEMBER_PATIENCE: Duration = Duration::from_millis(500);
/// How long nobody may lead before all is told from the memory of this node: longer than an election usually takes.
const LEADER_PATIENCE: Duration = Duration::from_secs(1);

pub(super) struct Service {
    gateway: Gateway,
}

impl Service {
    pub(super) fn new(gateway: Gateway) -> Self {
        Self { gateway }
    }

    /// Why this node's memory must do; `None`: its state holds all that was acknowledged before.
    async fn leaderless(&self) -> Option<String> {
        match timeout(LEADER_PATIENCE, self.gateway.read(Consistency::Linearizable, |_| ())).await {
            Ok(Ok(())) => None,
            Ok(Err(outage)) => Some(outage.to_string()),
            Err(_) => Some(format!("no leader has answered within {} s", LEADER_PATIENCE.as_secs())),
        }
    }

    async fn find(&self, name: &str) -> Result<JobId, Status> {
        let look = |state: &State| resolve::in_state(state, name);
        let found = self.gateway.read(Consistency::Local, look).await;
        found.map_err(|outage| status::of_outage(&outage))?.map_err(|fault| status::of_fault(&fault))
    }

    /// What all members know of the job.
    async fn gather(&self, name: &str) -> Result<Facts, Status> {
        // A job that was created a moment ago may not be here yet.
        let (mut leaderless, mut waited) = (None, false);
        let job = match self.find(name).await {
            Ok(job) => job,
            Err(_) => {
                (leaderless, waited) = (self.leaderless().await, true);
                self.find(name).await?
            }
        };
        let known = self.gateway.admin().status();
        let members: Vec<NodeId> = known.members.iter().map(|member| member.node).collect();
        let tasks = self.gateway.read(Consistency::Local, |state| state.tasks_of(job)).await;
        let tasks = tasks.map_err(|outage| status::of_outage(&outage))?;
        let (reason, sights, ages, now) = tokio::join!(
            async { if waited { None } else { self.leaderless().await } },
            self.gateway.sights(job, &members, MEMBER_PATIENCE),
            self.gateway.heartbeat_ages(job, tasks),
            self.gateway.log_time(),
        );
        let leaderless = leaderless.or(reason);
        let gathered = Gathered { told_by: known.node, members: known.members, sights, ages, now };
        let look = move |index: LogIndex, state: &State| {
            let mut facts = facts::of(state, job, gathered)?;
            facts.memory = leaderless.map(|why| Memory { index: index.0, at_ms: state.now_ms().0, why });
            Some(facts)
        };
        let facts = self.gateway.read_aside(Consistency::Local, look).await;
        let facts = facts.map_err(|outage| status::of_outage(&outage))?;
        facts.ok_or_else(|| status::of_fault(&resolve::unknown(name)))
    }
}

#[tonic::async_trait]
impl Diagnose for Service {
    async fn job(
        &self,
        request: Request<DiagnoseJobRequest>,
    ) -> Result<Response<DiagnoseJobResponse>, Status> {
        admitted::about_job(request.extensions(), &request.get_ref().name)?;
        let DiagnoseJobRequest { name, all, after_ms } = request.into_inner();
        let mut facts = self.gather(&name).await?;
        if let Some(after) = after_ms {
            facts.patience = Patience { wait_ms: after, busy_ms: after };
        }
        let found = diagnose(&facts);
        let (text, json) = (found.render(all), found.to_json());
        Ok(Response::new(DiagnoseJobResponse { found: found.found(), text, json }))
    }
}
