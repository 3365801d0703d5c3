//! A node of the parameter server, as far as it asks.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use tripod_proto::mindspore::ps_core as pb;
use tripod_proto::mindspore::ps_core::NodeCommand;

use super::Failure;
use super::frames::{Ps, RAW};
use super::line::{Line, within};
use super::port::{Hear, Port};

/// What stands for no rank.
pub const UNRANKED: u32 = u32::MAX;

/// What a node does in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Worker,
    Server,
}

impl From<Role> for pb::NodeRole {
    fn from(role: Role) -> Self {
        match role {
            Role::Worker => Self::Worker,
            Role::Server => Self::Server,
        }
    }
}

/// One process of a node: it listens at an address of its own, and is connected to its scheduler.
#[derive(Debug)]
pub struct Node {
    id: String,
    role: Role,
    addresses: Arc<[String]>,
    place: usize,
    port: Port,
    line: Option<Line>,
    request_id: u64,
    rank: u32,
    limit: Duration,
}

impl Node {
    /// One that listens, and knows of nobody yet. It begins at the address of that place; an answer may take `limit`.
    ///
    /// # Errors
    /// It cannot listen.
    pub async fn begin(
        id: String,
        role: Role,
        (addresses, place): (Arc<[String]>, usize),
        limit: Duration,
        hear: Hear,
    ) -> anyhow::Result<Self> {
        let port = Port::open(hear).await?;
        Ok(Self { id, role, addresses, place, port, line: None, request_id: 0, rank: UNRANKED, limit })
    }

    /// What it is called.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where it listens, on loopback: each process of a node has another one.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Asks for a place in the cluster; its rank.
    ///
    /// # Errors
    /// As any message, and if there is no place. Asked once more, it has the same one.
    pub async fn register(&mut self) -> Result<u32, Failure> {
        let message = pb::RegisterMessage {
            ip: "127.0.0.1".to_owned(),
            port: self.port().into(),
            node_id: self.id.clone(),
            role: pb::NodeRole::from(self.role).into(),
            ..Default::default()
        };
        let told: pb::RegisterRespMessage = self.told(NodeCommand::Register, &message).await?;
        if told.rank_id == UNRANKED {
            return Err(Failure::Refused("there is no place for it".to_owned()));
        }
        self.rank = told.rank_id;
        Ok(told.rank_id)
    }

    /// Says that it lives; what it is told of the cluster.
    ///
    /// # Errors
    /// As any message.
    pub async fn beat(&mut self) -> Result<pb::HeartbeatRespMessage, Failure> {
        let message = pb::HeartbeatMessage { node_id: self.id.clone(), ..Default::default() };
        self.told(NodeCommand::Heartbeat, &message).await
    }

    /// Tells all nodes something.
    ///
    /// # Errors
    /// As any message. Sent once more it is another event.
    pub async fn event(&mut self, event: u32) -> Result<(), Failure> {
        let message = pb::EventMessage { event, node_id: self.id.clone() };
        self.report(NodeCommand::SendEvent, message.encode_to_vec().into()).await
    }

    /// Says that it has nothing left to do.
    ///
    /// # Errors
    /// As any message.
    pub async fn finish(&mut self) -> Result<(), Failure> {
        // The bare id, and raw: so real nodes write it.
        self.report(NodeCommand::Finish, Bytes::from(self.id.clone())).await
    }

    /// What is noted is said back; another answer says that it was not.
    async fn report(&mut self, command: NodeCommand, payload: Bytes) -> Result<(), Failure> {
        let answer = self.ask(command, payload.clone()).await?;
        if answer == payload { Ok(()) } else { Err(Failure::Refused("it was not noted".to_owned())) }
    }

    async fn told<M: Message + Default>(
        &mut self,
        command: NodeCommand,
        message: &impl Message,
    ) -> Result<M, Failure> {
        let payload = self.ask(command, message.encode_to_vec().into()).await?;
        M::decode(payload).map_err(|error| Failure::Unanswered(format!("an answer cannot be read: {error}")))
    }

    async fn ask(&mut self, command: NodeCommand, payload: Bytes) -> Result<Bytes, Failure> {
        self.request_id += 1;
        let mut frame = Ps::asking(command, self.request_id, payload);
        match command {
            NodeCommand::Register => frame.meta.rank_id = self.rank,
            NodeCommand::Finish => frame.format = RAW,
            _ => {}
        }
        let limit = self.limit;
        let line = match &mut self.line {
            Some(line) => line,
            None => match Line::open(&self.addresses[self.place % self.addresses.len()]).await {
                Ok(line) => self.line.insert(line),
                Err(failure) => {
                    self.move_on();
                    return Err(failure);
                }
            },
        };
        let answered = within(limit, async {
            line.send(&frame).await?;
            loop {
                let answer: Ps = line.hear().await?;
                if answer.meta.request_id == frame.meta.request_id && answer.meta.cmd == frame.meta.cmd {
                    return Ok(answer.payload);
                }
            }
        });
        let answered = answered.await;
        if answered.is_err() {
            self.move_on();
        }
        answered
    }

    /// To the next address.
    pub fn move_on(&mut self) {
        self.place = self.place.wrapping_add(1);
        self.line = None;
    }
}
