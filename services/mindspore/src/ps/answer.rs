//! What a node is answered.

use bytes::{Bytes, BytesMut};
use prost::Message as _;
use tripod_proto::mindspore::ps_core as pb;
use tripod_proto::mindspore::ps_core::{
    FetchServersRespMessage, HeartbeatRespMessage, NodeRole, RegisterRespMessage, ServersMeta,
};
use tripod_state::mindspore::Role;
use tripod_state::mindspore::cluster::{ClusterState, NodeView};

use super::asked::NO_RANK;
use super::release::Release;
use super::roster::All;
use crate::wire::ps::{Format, Frame};

/// An answer: with the meta of what was asked, by which its node finds who waits for it.
fn answer(asked: &Frame, payload: Bytes) -> Frame {
    Frame { format: Format::Protobuf, meta: asked.meta.clone(), payload }
}

pub(crate) fn registered(asked: &Frame, node: &str, rank: u32) -> Frame {
    let told = RegisterRespMessage { node_id: node.to_owned(), rank_id: rank };
    answer(asked, told.encode_to_vec().into())
}

/// Nodes before 2.0 do not read it: they wait for the cluster until they give up.
pub(crate) fn not_registered(asked: &Frame, node: &str) -> Frame {
    registered(asked, node, NO_RANK)
}

/// That a report has been noted.
pub(crate) fn noted(asked: &Frame) -> Frame {
    answer(asked, asked.payload.clone())
}

/// That something was not done: whatever is asked, it is not said that it was.
pub(crate) fn not_done(asked: &Frame) -> Frame {
    answer(asked, Bytes::new())
}

/// To a heartbeat of a node of the cluster.
pub(crate) fn beat(asked: &Frame, state: ClusterState, release: Release, all: &All) -> Frame {
    let state = HeartbeatRespMessage { cluster_state: told(state, release).into(), ..Default::default() };
    let vital = HeartbeatRespMessage { is_worker_or_server0: all.is_vital_lost, ..Default::default() };
    // A message in three parts is the message; the middle one is the same for everybody.
    let mut payload = BytesMut::with_capacity(8 + all.nodes.len());
    payload.extend_from_slice(&state.encode_to_vec());
    payload.extend_from_slice(&all.nodes);
    payload.extend_from_slice(&vital.encode_to_vec());
    answer(asked, payload.freeze())
}

/// To a heartbeat of a node that has not registered: that the cluster is not there yet, as it is not for that node.
pub(crate) fn beat_of_stranger(asked: &Frame) -> Frame {
    answer(asked, Bytes::new())
}

/// To a heartbeat of a process that has finished, and of which nothing is known any more.
pub(crate) fn beat_after_exit(asked: &Frame) -> Frame {
    let told =
        HeartbeatRespMessage { cluster_state: pb::ClusterState::ClusterExit.into(), ..Default::default() };
    answer(asked, told.encode_to_vec().into())
}

/// To a heartbeat of a process that does not belong to the cluster any more: what ends nodes of all releases.
pub(crate) fn beat_of_replaced(asked: &Frame) -> Frame {
    let told = HeartbeatRespMessage {
        cluster_state: pb::ClusterState::NodeTimeout.into(),
        is_worker_or_server0: true,
        ..Default::default()
    };
    answer(asked, told.encode_to_vec().into())
}

/// All nodes; before 2.0 a list is one of servers, whatever it says of roles.
pub(crate) fn nodes(asked: &Frame, release: Release, nodes: &[NodeView]) -> Frame {
    let servers_meta = nodes.iter().filter_map(|node| match release {
        Release::From2_0 => meta(node),
        Release::Before2_0 => {
            let ServersMeta { rank_id, ip, port, .. } = meta(node).filter(|_| node.role == Role::Server)?;
            Some(ServersMeta { rank_id, ip, port, ..Default::default() })
        }
    });
    let told = FetchServersRespMessage { servers_meta: servers_meta.collect() };
    answer(asked, told.encode_to_vec().into())
}

/// How others are told of a node; those that leave are told of to nobody.
pub(super) fn meta(node: &NodeView) -> Option<ServersMeta> {
    let role = match node.role {
        Role::Worker => NodeRole::Worker,
        Role::Server => NodeRole::Server,
    };
    Some(ServersMeta {
        rank_id: node.rank?,
        ip: node.ip.clone(),
        port: node.port,
        is_alive: node.is_alive,
        role: role.into(),
        node_id: node.node.as_str().to_owned(),
        persistent_state: 0,
    })
}

/// A state by its name on the wire, as a node of that release knows it.
fn told(state: ClusterState, release: Release) -> pb::ClusterState {
    match (state, release) {
        // With the numbers of before it is what scaling out is.
        (ClusterState::ScaleOutRollback, Release::Before2_0) => pb::ClusterState::ClusterScaleOut,
        (state, _) => on_wire(state),
    }
}

/// A state by its name on the wire.
pub(crate) fn on_wire(state: ClusterState) -> pb::ClusterState {
    match state {
        ClusterState::Starting => pb::ClusterState::ClusterStarting,
        ClusterState::Ready => pb::ClusterState::ClusterReady,
        ClusterState::Exit => pb::ClusterState::ClusterExit,
        ClusterState::NodeTimeout => pb::ClusterState::NodeTimeout,
        ClusterState::ScaleOut => pb::ClusterState::ClusterScaleOut,
        ClusterState::ScaleIn => pb::ClusterState::ClusterScaleIn,
        ClusterState::NewInstance => pb::ClusterState::ClusterNewInstance,
        ClusterState::EnableFls => pb::ClusterState::ClusterEnableFls,
        ClusterState::DisableFls => pb::ClusterState::ClusterDisableFls,
        ClusterState::ScaleOutRollback => pb::ClusterState::ClusterScaleOutRollback,
    }
}
