//! Answers of the domain to messages of dialect L.

use tonic::Status;
use tonic::metadata::{Ascii, MetadataValue};
use tripod_proto::xla as pb;
use tripod_state::Answer;

use super::exchange::{self, Wish};
use super::topology::{Topology, global};
use crate::answer;

pub(super) fn connected(answer: Answer) -> Result<pb::ConnectResponse, Status> {
    Ok(pb::ConnectResponse { session_id: answer::service(answer)?.0 })
}

pub(super) fn beat(answer: Answer) -> Result<pb::HeartbeatResponse, Status> {
    answer::service(answer).map(|_| pb::HeartbeatResponse {})
}

/// Every node's topology, in the layout of the caller's own; or less, if its agent wants less.
pub(super) fn enumerated(
    own: &Topology,
    wish: Option<Wish>,
    answer: Answer,
) -> Result<(pb::EnumerateDevicesResponse, Option<MetadataValue<Ascii>>), Status> {
    let (service, topologies) = answer::devices(answer)?;
    let name = wish.map(|_| exchange::name_of(service, own.layout(), &topologies));
    if wish == Some(Wish::Digest) {
        return Ok((pb::EnumerateDevicesResponse::default(), name));
    }
    let nodes = topologies
        .into_iter()
        .map(Topology::parse)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Status::internal(format!("a stored topology cannot be decoded: {error}")))?;
    Ok((pb::EnumerateDevicesResponse { global_topology: global(&nodes, own) }, name))
}

/// No service ever said that it `found` the value.
pub(super) fn got(answer: Answer) -> Result<pb::KeyValueGetResponse, Status> {
    Ok(pb::KeyValueGetResponse { found: false, value: answer::value(answer)? })
}
