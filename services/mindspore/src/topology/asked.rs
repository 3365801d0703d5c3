//! What a worker asks.

use bytes::Bytes;
use prost::{DecodeError, Message};
use tripod_proto::mindspore::topology::{
    HeartbeatMessage, MetadataMessage, RegistrationMessage, UnregistrationMessage,
};
use tripod_state::mindspore::topology::{Dialect, Request, Role};

use crate::wire::Name;
use crate::wire::rpc0::Frame;

/// One message, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// What changes the state.
    Change(Request),
    Beat {
        node: String,
    },
    Read {
        name: String,
    },
    HostNames {
        role: String,
    },
}

/// One that is not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotUnderstood {
    /// There is no handler for a message of that name.
    Unknown,
    /// What is in the body is not what the name says.
    Unreadable { what: &'static str, error: DecodeError },
    /// A node of no role that takes part.
    Role { role: String },
}

impl Asked {
    pub(crate) fn of(frame: &Frame) -> Result<Self, NotUnderstood> {
        let body = || frame.body.clone();
        Ok(match Name::asked(&frame.name).ok_or(NotUnderstood::Unknown)? {
            Name::Registration => Self::Change(registration(read("registration", body())?)?),
            Name::Unregistration => {
                let UnregistrationMessage { node_id } = read("unregistration", body())?;
                Self::Change(Request::Unregister { node: node_id })
            }
            Name::Heartbeat => {
                let HeartbeatMessage { node_id } = read("heartbeat", body())?;
                Self::Beat { node: node_id }
            }
            Name::WriteMetadata => {
                let MetadataMessage { name, value } = read("metadata", body())?;
                Self::Change(Request::Write { name, value })
            }
            Name::ReadMetadata => {
                let MetadataMessage { name, .. } = read("name of metadata", body())?;
                Self::Read { name }
            }
            Name::DeleteMetadata => {
                let MetadataMessage { name, .. } = read("name of metadata", body())?;
                Self::Change(Request::Delete { name })
            }
            Name::GetHostNames => Self::HostNames { role: String::from_utf8_lossy(&frame.body).into_owned() },
            Name::Success
            | Name::InvalidNode
            | Name::UninitTopo
            | Name::ValidMetadata
            | Name::InvalidMetadata => {
                return Err(NotUnderstood::Unknown);
            }
        })
    }
}

fn read<M: Message + Default>(what: &'static str, body: Bytes) -> Result<M, NotUnderstood> {
    M::decode(body).map_err(|error| NotUnderstood::Unreadable { what, error })
}

fn registration(message: RegistrationMessage) -> Result<Request, NotUnderstood> {
    let dialect = dialect(&message);
    let RegistrationMessage { node_id, host_name, role, host_ip, allocated_rank_id, .. } = message;
    let Some(role) = Role::named(&role) else { return Err(NotUnderstood::Role { role }) };
    // What is no number is what no release sends, and says nothing of a rank.
    let wanted_rank = allocated_rank_id.parse().ok();
    Ok(Request::Register { node: node_id, host_name, host_ip, role, wanted_rank, dialect })
}

/// Releases up to 2.0 say nothing of the fields that came later. One of 2.2 sends the first of them and numbers its messages
/// as 2.0 does; it cannot be told from a 2.10 whose device is number 0, and counts as that.
fn dialect(message: &RegistrationMessage) -> Dialect {
    let later =
        !message.host_ip.is_empty() || message.device_id.is_some() || !message.allocated_rank_id.is_empty();
    if later { Dialect::V2_10 } else { Dialect::V2_0 }
}
