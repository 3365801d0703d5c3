//! Changes of the members.

use tonic::Status;
use tripod_proto::tripod::v1 as wire;
use tripod_proto::tripod::v1::change_members_request::Change as Asked;
use tripod_state::ids::NodeId;
use tripod_state::member::Change;

/// What is asked for.
///
/// # Errors
/// Nothing is, or a node 0.
pub(crate) fn change(request: wire::ChangeMembersRequest) -> Result<Change, Status> {
    let Some(asked) = request.change else {
        return Err(Status::invalid_argument("no change is asked for; set one of its fields"));
    };
    Ok(match asked {
        Asked::Add(add) => Change::Add { peer: add.peer_address },
        Asked::Promote(id) => Change::Promote { node: node(id)? },
        Asked::Demote(id) => Change::Demote { node: node(id)? },
        Asked::Remove(id) => Change::Remove { node: node(id)? },
        Asked::Move(moved) => Change::Move { node: node(moved.node_id)?, peer: moved.peer_address },
        Asked::Replace(replaced) => {
            Change::Replace { old: node(replaced.node_id)?, peer: replaced.peer_address }
        }
    })
}

/// A node that is named.
///
/// # Errors
/// It is node 0.
pub(crate) fn node(id: u64) -> Result<NodeId, Status> {
    if id == 0 { Err(Status::invalid_argument("there is no node 0; ids begin at 1")) } else { Ok(NodeId(id)) }
}
