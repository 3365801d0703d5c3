//! Why a command about members was refused.

use serde::{Deserialize, Serialize};

use crate::ids::{CertificateName, ChangeId, NodeId};
use crate::member::Open;

/// A refusal; the registry is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Refusal {
    /// Another change is under way.
    InProgress { open: Box<Open> },
    /// There is no such node.
    NodeUnknown { node: NodeId },
    /// The node was removed. Its id never comes back.
    NodeRemoved { node: NodeId },
    /// Another node is reached at that peer address.
    AddressTaken { node: NodeId, peer: String },
    /// A node that asks for an id has had one: as that one it took part, and its data directory is not the
    /// one it had.
    HadData { node: NodeId },
    /// The change is not under way.
    NotOpen { change: ChangeId },
    /// The node has another certificate's name, and keeps it.
    NameBound { node: NodeId, bound: CertificateName },
    /// Another node has that certificate's name.
    NameTaken { node: NodeId, name: CertificateName },
    /// No certificate has such a name.
    NameInvalid { node: NodeId },
}
