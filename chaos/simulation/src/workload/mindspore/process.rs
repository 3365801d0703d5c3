//! One process of a node of the parameter server, as far as it asks.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use tripod_checkers::history::{ClientId, ClusterNode, ClusterRole, Job, LifeId, NodeName, Round};
use tripod_mindspore::wire::ps::{Format, Frame};
use tripod_proto::mindspore::ps_core as pb;
use tripod_proto::mindspore::ps_core::{MessageMeta, NodeCommand, NodeRole};
use tripod_state::mindspore::cluster::Scaling;

use super::ear::{Ear, Heard, UNRANKED};
use super::scribe::Scribe;
use super::server::{JOB, PORT};
use super::way::{Failure, Way};
use super::{HOST, Setting};

/// How long an answer may take: not so long that nothing is heard of the node meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);
/// The same of a heartbeat, which is answered by what a node of ours knows.
const BEAT_PATIENCE: Duration = Duration::from_millis(600);

/// Whose process it is.
#[derive(Clone)]
pub(super) struct Whose {
    pub(super) setting: Setting,
    pub(super) id: ClientId,
    pub(super) round: u64,
    pub(super) name: String,
    pub(super) role: ClusterRole,
}

/// It answers for as long as it is kept.
pub(super) struct Process {
    pub(super) scribe: Scribe,
    name: String,
    role: ClusterRole,
    ip: String,
    port: u16,
    ear: Ear,
    way: Way,
    request_id: u64,
    rank: u32,
}

impl Process {
    /// One that listens at that port, which no other process of the run has, and knows of nobody yet. It asks the node at
    /// that place first.
    ///
    /// # Errors
    /// It cannot listen.
    pub(super) async fn begin(whose: &Whose, port: u16, place: usize) -> io::Result<Self> {
        let Whose { setting, id, round, name, role } = whose;
        let node = ClusterNode {
            job: Job::from(JOB),
            round: Round(*round),
            name: NodeName::from(name.as_str()),
            role: *role,
            life: LifeId(port.into()),
        };
        let scribe = Scribe { witness: setting.witness.clone(), id: *id, node };
        let ear = Ear::open(&scribe, port).await?;
        Ok(Self {
            scribe,
            name: name.clone(),
            role: *role,
            ip: turmoil::lookup(HOST).to_string(),
            port,
            ear,
            way: Way::new(&setting.sites, PORT, place),
            request_id: 0,
            rank: UNRANKED,
        })
    }

    pub(super) fn heard(&self) -> Heard {
        self.ear.heard()
    }

    /// As it was answered last.
    pub(super) fn rank(&self) -> u32 {
        self.rank
    }

    /// Asks for a place in the cluster, or says that it has one; its rank.
    pub(super) async fn register(&mut self) -> Result<u32, Failure> {
        let role = match self.role {
            ClusterRole::Worker => NodeRole::Worker,
            ClusterRole::Server => NodeRole::Server,
        };
        let message = pb::RegisterMessage {
            ip: self.ip.clone(),
            port: self.port.into(),
            node_id: self.name.clone(),
            role: role.into(),
            ..Default::default()
        };
        let told = self.ask(PATIENCE, NodeCommand::Register, message.encode_to_vec().into()).await?;
        let told: pb::RegisterRespMessage = read(told)?;
        if told.rank_id == UNRANKED {
            return Err(Failure::Refused("there is no place for it".to_owned()));
        }
        self.rank = told.rank_id;
        Ok(told.rank_id)
    }

    /// Says that it lives, and where; what it is told of the cluster.
    pub(super) async fn beat(&mut self) -> Result<pb::HeartbeatRespMessage, Failure> {
        let message = pb::HeartbeatMessage {
            node_id: self.name.clone(),
            has_address: true,
            ip: self.ip.clone(),
            port: self.port.into(),
            ..Default::default()
        };
        let told = self.ask(BEAT_PATIENCE, NodeCommand::Heartbeat, message.encode_to_vec().into()).await?;
        read(told)
    }

    /// Tells all nodes something. Sent once more it is another event.
    pub(super) async fn event(&mut self, event: u32) -> Result<(), Failure> {
        let message = pb::EventMessage { event, node_id: self.name.clone() };
        self.report(NodeCommand::SendEvent, message.encode_to_vec().into()).await
    }

    /// Says that it has done what scaling asks of it.
    pub(super) async fn done(&mut self, scaling: Scaling) -> Result<(), Failure> {
        let node_id = self.name.clone();
        let (command, message) = match scaling {
            Scaling::Out => (NodeCommand::ScaleOutDone, pb::ScaleOutDoneMessage { node_id }.encode_to_vec()),
            Scaling::In => (NodeCommand::ScaleInDone, pb::ScaleInDoneMessage { node_id }.encode_to_vec()),
        };
        self.report(command, message.into()).await?;
        self.ear.has_done(scaling);
        Ok(())
    }

    /// Says that it has nothing left to do.
    pub(super) async fn finish(&mut self) -> Result<(), Failure> {
        // The bare id: so real nodes write it.
        self.report(NodeCommand::Finish, Bytes::from(self.name.clone())).await
    }

    /// What is noted is said back; another answer says that it was not.
    async fn report(&mut self, command: NodeCommand, payload: Bytes) -> Result<(), Failure> {
        let answer = self.ask(PATIENCE, command, payload.clone()).await?;
        if answer == payload { Ok(()) } else { Err(Failure::Refused("it was not noted".to_owned())) }
    }

    async fn ask(
        &mut self,
        patience: Duration,
        command: NodeCommand,
        payload: Bytes,
    ) -> Result<Bytes, Failure> {
        self.request_id += 1;
        let (request_id, cmd) = (self.request_id, i32::from(command));
        let rank_id = if command == NodeCommand::Register { self.rank } else { 0 };
        let meta = MessageMeta { cmd, request_id, rank_id, ..MessageMeta::default() };
        let format = if command == NodeCommand::Finish { Format::Raw } else { Format::Protobuf };
        let frame = Frame { format, meta, payload };
        let is_it = |answer: &Frame| answer.meta.request_id == request_id && answer.meta.cmd == cmd;
        let answer = self.way.ask(patience, &frame.encode(), is_it).await?;
        Ok(answer.payload)
    }
}

fn read<M: Message + Default>(told: Bytes) -> Result<M, Failure> {
    M::decode(told).map_err(|error| Failure::Unanswered(format!("an answer cannot be read: {error}")))
}
