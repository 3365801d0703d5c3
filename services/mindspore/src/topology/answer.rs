//! What a worker is told.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use tripod_proto::mindspore::topology as pb;
use tripod_proto::mindspore::topology::{HeartbeatRespMessage, MetadataMessage, RegistrationRespMessage};
use tripod_state::ids::NodeName;
use tripod_state::mindspore::topology::{Dialect, PortRange, TopoState, View};

use crate::wire::rpc0::Frame;
use crate::wire::{self, Name};

/// What the scheduler calls itself in answers; workers read neither this nor where it goes to.
const FROM: &[u8] = b"@";

/// [`pb::NodePortRanges`] in the order of its keys, so that every node of ours writes the same.
#[derive(Clone, PartialEq, Message)]
struct NodePortRanges {
    #[prost(btree_map = "string, message", tag = "1")]
    data: BTreeMap<String, pb::PortRange>,
}

/// The value of the entry by which nodes learn which ports they may use.
pub(super) fn port_ranges(ports: Vec<(NodeName, PortRange)>) -> Bytes {
    let range = |PortRange { first, last }| pb::PortRange { min_port: first, max_port: last };
    let data = ports.into_iter().map(|(node, ports)| (node.as_str().to_owned(), range(ports)));
    NodePortRanges { data: data.collect() }.encode_to_vec().into()
}

/// An answer to a frame. It goes to where the worker said that it went: that is what we are called there.
fn answer(asked: &Frame, name: &'static str, body: Bytes) -> Frame {
    let (name, from) = (Bytes::from_static(name.as_bytes()), Bytes::from_static(FROM));
    Frame { name, to: asked.to.clone(), from, body }
}

/// One whose number is the same in both dialects.
fn success(asked: &Frame, body: Vec<u8>) -> Frame {
    answer(asked, Name::Success.text(wire::Dialect::V2_0), body.into())
}

/// How a worker of a dialect reads numbers.
fn spoken(dialect: Dialect) -> wire::Dialect {
    match dialect {
        Dialect::V2_0 => wire::Dialect::V2_0,
        Dialect::V2_10 => wire::Dialect::V2_10,
    }
}

pub(crate) fn registered(asked: &Frame, rank: u32, nodes: u32) -> Frame {
    let told =
        RegistrationRespMessage { success: true, rank_id: rank, node_num: nodes, ..Default::default() };
    success(asked, told.encode_to_vec())
}

pub(crate) fn not_registered(asked: &Frame, why: String) -> Frame {
    let told = RegistrationRespMessage { error_reason: why, ..Default::default() };
    success(asked, told.encode_to_vec())
}

/// To an unregistration: what it is called and what it holds is the same digit.
pub(crate) fn unregistered(asked: &Frame, outcome: Name) -> Frame {
    let digit = outcome.text(wire::Dialect::V2_0);
    answer(asked, digit, Bytes::from_static(digit.as_bytes()))
}

pub(crate) fn beat(asked: &Frame, view: &View) -> Frame {
    let told = HeartbeatRespMessage {
        success: true,
        topo_state: match view.state {
            TopoState::Initializing => 0,
            TopoState::Initialized => 1,
            TopoState::Failed => 2,
            TopoState::Finished => 3,
        },
        nodes_num: view.nodes,
        abnormal_nodes_num: view.silent,
    };
    success(asked, told.encode_to_vec())
}

/// To a question about metadata: with its value, or that there is none.
pub(crate) fn metadata(asked: &Frame, dialect: Dialect, name: String, value: Option<Bytes>) -> Frame {
    let outcome = if value.is_some() { Name::ValidMetadata } else { Name::InvalidMetadata };
    let told = MetadataMessage { name, value: value.unwrap_or_default() };
    answer(asked, outcome.text(spoken(dialect)), told.encode_to_vec().into())
}

/// To a question about host names: `None` while the cluster is not complete.
pub(crate) fn host_names(asked: &Frame, dialect: Dialect, names: Option<Vec<String>>) -> Frame {
    let outcome = if names.is_some() { Name::ValidMetadata } else { Name::InvalidMetadata };
    let told = serde_json::json!({ "hostnames": names.unwrap_or_default() });
    answer(asked, outcome.text(spoken(dialect)), told.to_string().into())
}
