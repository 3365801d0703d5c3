//! What a node asks.

use bytes::Bytes;
use prost::{DecodeError, Message};
use tripod_proto::mindspore::ps_core::{
    EventMessage, HeartbeatMessage, NodeCommand, NodeRole, RegisterMessage, ScaleInDoneMessage,
    ScaleOutDoneMessage,
};
use tripod_state::mindspore::Role;
use tripod_state::mindspore::cluster::{Incarnation, Request, Scaling};

use crate::wire::Command;
use crate::wire::ps::Frame;

/// The rank of a node that has none.
pub(crate) const NO_RANK: u32 = u32::MAX;

/// One message, understood.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Asked {
    Register(RegisterMessage),
    Beat(HeartbeatMessage),
    /// Who there is.
    Fetch,
    /// Something that a node says of itself.
    Report {
        node: String,
        report: Report,
    },
    /// Something that nodes of 2.0 ask, and that is not done here.
    Undone,
    /// Nobody sends it, and nobody waits for an answer.
    Terminate,
}

/// What a node says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    Finished,
    Done(Scaling),
    Event(u32),
}

/// One that is not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotUnderstood {
    /// No node gives that command to its scheduler.
    Unknown { command: i32 },
    /// What is in the payload is not what the command says.
    Unreadable { what: &'static str, error: DecodeError },
}

impl Asked {
    pub(crate) fn of(frame: &Frame) -> Result<Self, NotUnderstood> {
        let payload = || frame.payload.clone();
        let unknown = NotUnderstood::Unknown { command: frame.meta.cmd };
        let Command::Known(command) = frame.command() else { return Err(unknown) };
        Ok(match command {
            NodeCommand::Register => Self::Register(read("registration", payload())?),
            NodeCommand::Heartbeat => Self::Beat(read("heartbeat", payload())?),
            NodeCommand::FetchMetadata => Self::Fetch,
            // The id as it is, and no message.
            NodeCommand::Finish => {
                let node = String::from_utf8_lossy(&frame.payload).into_owned();
                Self::Report { node, report: Report::Finished }
            }
            NodeCommand::ScaleOutDone => {
                let ScaleOutDoneMessage { node_id: node } = read("report on scaling out", payload())?;
                Self::Report { node, report: Report::Done(Scaling::Out) }
            }
            NodeCommand::ScaleInDone => {
                let ScaleInDoneMessage { node_id: node } = read("report on scaling in", payload())?;
                Self::Report { node, report: Report::Done(Scaling::In) }
            }
            NodeCommand::SendEvent => {
                let EventMessage { event, node_id: node } = read("event", payload())?;
                Self::Report { node, report: Report::Event(event) }
            }
            NodeCommand::RegisterActorRoute
            | NodeCommand::DeleteActorRoute
            | NodeCommand::LookupActorRoute
            | NodeCommand::SendHostName
            | NodeCommand::QueryHostNames
            | NodeCommand::SendUniqueId
            | NodeCommand::QueryUniqueId
            | NodeCommand::SendFinishTransform
            | NodeCommand::QueryFinishTransform
            | NodeCommand::FailureEventInfo => Self::Undone,
            NodeCommand::Terminate => Self::Terminate,
            NodeCommand::SendData
            | NodeCommand::CollectiveSendData
            | NodeCommand::SendMetadata
            | NodeCommand::ScaleOut
            | NodeCommand::ScaleIn
            | NodeCommand::SchedulerRecovery
            | NodeCommand::PrepareBuildingNetwork
            | NodeCommand::ScaleOutRollback => return Err(unknown),
        })
    }
}

fn read<M: Message + Default>(what: &'static str, payload: Bytes) -> Result<M, NotUnderstood> {
    M::decode(payload).map_err(|error| NotUnderstood::Unreadable { what, error })
}

/// Whether a message is given up a while after its node has gone: it takes a place of the cluster, which may be the next
/// process's by then, or it only asks. What a node has said of itself is done.
pub(crate) fn ends_with_node(command: Command) -> bool {
    matches!(command, Command::Known(NodeCommand::Register | NodeCommand::FetchMetadata))
}

/// What a registration asks of the domain; `None`: a node of no role that takes part.
pub(crate) fn registration(frame: &Frame, message: RegisterMessage) -> Option<Request> {
    let role = match message.role() {
        NodeRole::Server if message.role == i32::from(NodeRole::Server) => Role::Server,
        NodeRole::Worker => Role::Worker,
        NodeRole::Server | NodeRole::Scheduler => return None,
    };
    let RegisterMessage { ip, port, node_id: node, is_recover: recovering, .. } = message;
    let rank = frame.meta.rank_id;
    let offered_rank = (rank != NO_RANK).then_some(rank);
    Some(Request::Register { node, role, ip, port, offered_rank, recovering })
}

impl Report {
    /// What it asks of the domain, for the process that says it.
    pub(crate) fn request(self, node: &str, incarnation: Option<Incarnation>) -> Request {
        let node = node.to_owned();
        match self {
            Self::Finished => Request::Finish { node, incarnation },
            Self::Done(scaling) => Request::Done { node, incarnation, scaling },
            Self::Event(event) => Request::Event { node, incarnation, event },
        }
    }

    /// Whether to say it twice is the same as to say it once.
    pub(crate) fn is_repeatable(self) -> bool {
        match self {
            Self::Finished | Self::Done(_) => true,
            Self::Event(_) => false,
        }
    }
}
