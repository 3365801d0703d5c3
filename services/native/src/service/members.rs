//! The calls of `tripod.v1.Cluster` about members.

use tonic::Status;
use tripod_gateway::{ChangeError, Gateway, MembersAnswer, MembersRequest};
use tripod_proto::tripod::v1 as wire;
use tripod_state::ids::{ChangeId, FeatureLevel};
use tripod_state::member::Change;

use crate::{decode, encode, status};

pub(super) async fn list(
    gateway: &Gateway,
    announced: &encode::Members,
) -> Result<wire::ListMembersResponse, Status> {
    match ask(gateway, MembersRequest::List, None).await? {
        MembersAnswer::List(list) => Ok(encode::member::list(&gateway.admin().status(), &list, announced)),
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn change(
    gateway: &Gateway,
    request: wire::ChangeMembersRequest,
) -> Result<wire::ChangeMembersResponse, Status> {
    let (by, plan, force) = (request.by.clone(), request.plan, request.force);
    let change = decode::member::change(request)?;
    let asked = MembersRequest::Change { change: change.clone(), by, plan, force };
    match ask(gateway, asked, Some(&change)).await? {
        MembersAnswer::Change(planned) => Ok(encode::member::planned(&planned)),
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn cancel(
    gateway: &Gateway,
    request: &wire::CancelChangeRequest,
) -> Result<wire::CancelChangeResponse, Status> {
    let change = ChangeId(request.change_id);
    ask(gateway, MembersRequest::Cancel { change }, None).await.map(|_| wire::CancelChangeResponse {})
}

pub(super) async fn drain(
    gateway: &Gateway,
    request: &wire::DrainNodeRequest,
) -> Result<wire::DrainNodeResponse, Status> {
    let (node, drained) = (decode::member::node(request.node_id)?, request.drained);
    ask(gateway, MembersRequest::Drain { node, drained }, None).await.map(|_| wire::DrainNodeResponse {})
}

pub(super) async fn join(
    gateway: &Gateway,
    request: wire::JoinRequest,
) -> Result<wire::JoinResponse, Status> {
    let change = Change::Add { peer: request.peer_address.clone() };
    let asked = MembersRequest::Join {
        peer: request.peer_address,
        token: request.token,
        // A build that knew no levels does not say.
        supports: FeatureLevel(request.supports_level.max(1)),
    };
    match ask(gateway, asked, Some(&change)).await? {
        MembersAnswer::Join { cluster_id, node } => Ok(wire::JoinResponse { cluster_id, node_id: node.0 }),
        other => Err(unexpected(&other)),
    }
}

async fn ask(
    gateway: &Gateway,
    request: MembersRequest,
    change: Option<&Change>,
) -> Result<MembersAnswer, Status> {
    let asked: Result<MembersAnswer, ChangeError> = gateway.admin().members(request).await;
    asked.map_err(|error| status::member::of_change(&error, change))
}

fn unexpected(answer: &MembersAnswer) -> Status {
    tracing::error!(?answer, "answer does not belong to the question");
    Status::internal("the answer does not belong to the question; please report this")
}
