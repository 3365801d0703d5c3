//! What followers ask of the leader. A node that does not lead refuses: nothing is forwarded twice.

use tonic::{Request, Response, Status};
use tripod_proto::tripod::peer::v1::leader_server::Leader as LeaderApi;
use tripod_proto::tripod::peer::v1::{
    Blob, ProposeNewerResponse, ProposeRequest, ProposeResponse, ReadIndexRequest, ReadIndexResponse,
};
use tripod_state::ids::{FeatureLevel, NodeId};
use tripod_state::{Command, level};

use super::inspect::Inspector;
use super::seldom::Seldom;
use super::teller::Teller;
use crate::apply::hooks::Hooks;
use crate::base::codec;
use crate::care::divergence::{Comparer, Report};
use crate::care::level::LevelGate;
use crate::care::space::{DiskStatus, Reports};
use crate::lead::leadership::LeadershipWatch;
use crate::lead::outcome::Outcome;
use crate::lead::read_index::ReadRounds;
use crate::lead::submit::Submitter;
use crate::peers::proof::PeerConnection;
use crate::peers::succession::{Succession, Turn};
use crate::peers::{blob, unblob};

/// Answers while this node leads.
pub(crate) struct LeaderService {
    pub(crate) submitter: Submitter,
    pub(crate) rounds: ReadRounds,
    pub(crate) leadership: LeadershipWatch,
    pub(crate) hooks: Hooks,
    pub(crate) inspector: Inspector,
    pub(crate) reports: Reports,
    pub(crate) comparer: Comparer,
    pub(crate) level_gate: LevelGate,
    /// Of names of certificates.
    pub(crate) refusals: Seldom,
    /// Whether this build takes commands of every level in a batch.
    pub(crate) takes_newer: bool,
}

impl LeaderService {
    fn refusal(&self) -> Status {
        Status::failed_precondition(format!("node {} does not lead", self.leadership.node()))
    }

    async fn wait_for_first_look(&self) -> Result<(), Status> {
        self.level_gate
            .wait_for_first_look()
            .await
            .map_err(|error| Status::failed_precondition(error.to_string()))
    }
}

/// That of a batch among those of its connection.
async fn turn(succession: Option<Succession>, batch: &ProposeRequest) -> Option<Turn> {
    match succession {
        Some(succession) => Some(succession.turn(batch.batch_number, batch.oldest).await),
        None => None,
    }
}

#[tonic::async_trait]
impl LeaderApi for LeaderService {
    async fn propose(&self, request: Request<ProposeRequest>) -> Result<Response<ProposeResponse>, Status> {
        // What the first level has says nothing of certificates.
        let teller = match request.get_ref().needs_max {
            Some(_) => Teller::of(&request, &self.refusals),
            None => Teller::default(),
        };
        let connection = request.extensions().get::<PeerConnection>();
        let succession = connection.map(|connection| connection.succession.clone());
        let turn = turn(succession, request.get_ref()).await;
        if !self.leadership.leads_here() {
            return Err(self.refusal());
        }
        self.wait_for_first_look().await?;
        let ProposeRequest { commands, needs_max, .. } = request.into_inner();
        let needs_max = needs_max.filter(|_| self.takes_newer).map_or(level::FIRST, FeatureLevel);
        let passage = self.level_gate.enter(needs_max).await;
        let has_leave = |command: &Command| match &passage {
            Ok(passage) => self.level_gate.check(passage, command).and_then(|()| teller.may_bind(command)),
            Err(error) => Err(error.clone()),
        };
        let mut held = Vec::new();
        let refusals: Vec<Option<Outcome>> = commands
            .iter()
            .map(|command| {
                let admitted = self.inspector.inspect(command, needs_max, has_leave);
                admitted.map(|admitted| held.push(admitted)).err()
            })
            .collect();
        let admitted = commands.into_iter().zip(&refusals).filter(|(_, refusal)| refusal.is_none());
        let admitted = admitted.map(|(command, _)| command).collect();
        // The next batch may follow as soon as this one has its place in the log.
        let mut outcomes = self.submitter.submit_many(admitted, || drop(turn)).await.into_iter();
        drop((held, passage));
        let outcomes = refusals.into_iter().map(|refusal| match refusal {
            Some(refusal) => refusal,
            None => outcomes.next().expect("one outcome for every command").into(),
        });
        let replies = outcomes.map(|outcome| codec::encode(&outcome).into()).collect();
        Ok(Response::new(ProposeResponse { replies, takes_newer: self.takes_newer }))
    }

    async fn propose_newer(&self, request: Request<Blob>) -> Result<Response<ProposeNewerResponse>, Status> {
        if !self.leadership.leads_here() {
            return Err(self.refusal());
        }
        self.wait_for_first_look().await?;
        let teller = Teller::of(&request, &self.refusals);
        let command = request.into_inner().data;
        let outcome: Outcome = match self.level_gate.enter(level::NEWEST).await {
            Err(error) => Err(error).into(),
            Ok(passage) => {
                let has_leave = |command: &Command| {
                    self.level_gate.check(&passage, command).and_then(|()| teller.may_bind(command))
                };
                match self.inspector.inspect(&command, level::NEWEST, has_leave) {
                    Ok(_admitted) => self.submitter.submit(command).await.into(),
                    Err(refusal) => refusal,
                }
            }
        };
        let Blob { data } = blob(&outcome);
        Ok(Response::new(ProposeNewerResponse { data, takes_newer: self.takes_newer }))
    }

    async fn read_index(
        &self,
        _request: Request<ReadIndexRequest>,
    ) -> Result<Response<ReadIndexResponse>, Status> {
        if !self.leadership.leads_here() {
            return Err(self.refusal());
        }
        match self.rounds.join().await {
            Ok(index) => Ok(Response::new(ReadIndexResponse { index: index.0 })),
            Err(error) => Err(Status::failed_precondition(error.to_string())),
        }
    }

    async fn report_disk(&self, request: Request<Blob>) -> Result<Response<Blob>, Status> {
        if !self.leadership.leads_here() {
            return Err(self.refusal());
        }
        let (node, disk): (u64, DiskStatus) = unblob(request.get_ref())?;
        Ok(Response::new(blob(&self.reports.take(NodeId(node), disk))))
    }

    async fn compare(&self, request: Request<Blob>) -> Result<Response<Blob>, Status> {
        if !self.leadership.leads_here() {
            return Err(self.refusal());
        }
        let report: Report = unblob(request.get_ref())?;
        Ok(Response::new(blob(&self.comparer.answer(&report))))
    }

    async fn ask(&self, request: Request<Blob>) -> Result<Response<Blob>, Status> {
        if !self.leadership.get().ready_here {
            return Err(self.refusal());
        }
        match self.hooks.asks.ask(request.into_inner().data).await {
            Ok(data) => Ok(Response::new(Blob { data })),
            Err(reason) => Err(Status::failed_precondition(reason)),
        }
    }
}
