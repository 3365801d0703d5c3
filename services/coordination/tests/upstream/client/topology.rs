//! Device topologies, which clients exchange: over keys since mid-2023, by calls of their own before.
//!
//! Source: openxla/xla `xla/pjrt/distributed/topology_util.cc` and `protocol.proto`.

use std::collections::BTreeMap;

use prost::Message;
use tonic::{Code, Status};

use super::Agent;
use crate::support::LONG;

/// One device of a process.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Device {
    #[prost(int32, tag = "1")]
    pub(crate) local_ordinal: i32,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(string, tag = "3")]
    pub(crate) vendor: String,
    #[prost(int32, tag = "4")]
    pub(crate) global_id: i32,
    #[prost(int32, tag = "5")]
    pub(crate) slice_index: i32,
}

/// The devices of one process.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Local {
    #[prost(int32, tag = "1")]
    pub(crate) node_id: i32,
    #[prost(string, tag = "2")]
    pub(crate) boot_id: String,
    #[prost(message, repeated, tag = "3")]
    pub(crate) devices: Vec<Device>,
}

/// The devices of all.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Global {
    #[prost(message, repeated, tag = "1")]
    pub(crate) nodes: Vec<Local>,
}

impl Local {
    pub(crate) fn new(node_id: i32, boot_id: &str, ordinals: &[i32]) -> Self {
        let device = |local_ordinal: &i32| Device { local_ordinal: *local_ordinal, ..Device::default() };
        Self { node_id, boot_id: boot_id.to_owned(), devices: ordinals.iter().map(device).collect() }
    }
}

/// Two processes on two machines, with three devices and one.
pub(crate) fn two_nodes() -> [Local; 2] {
    [Local::new(0, "foo", &[0, 0, 707]), Local::new(1, "bar", &[1])]
}

/// What all are to know of [`two_nodes`].
pub(crate) fn two_nodes_together() -> Global {
    let [mut first, mut second] = two_nodes();
    for (device, id) in first.devices.iter_mut().zip(0..) {
        device.global_id = id;
    }
    second.devices[0].global_id = 3;
    second.devices[0].slice_index = 1;
    Global { nodes: vec![first, second] }
}

/// Eleven processes with one device each, on two machines by turns.
pub(crate) fn eleven_nodes() -> [Local; 11] {
    std::array::from_fn(|node| {
        let id = i32::try_from(node).expect("a small number");
        let (name, vendor) = ("test_device".to_owned(), "test_vendor".to_owned());
        let device = Device { local_ordinal: id % 5, name, vendor, ..Device::default() };
        Local { devices: vec![device], ..Local::new(id, &format!("test_boot_id_{}", id % 2), &[]) }
    })
}

/// What all are to know of [`eleven_nodes`]: the eleventh comes last, not after the second.
pub(crate) fn eleven_nodes_together() -> Global {
    let mut nodes = eleven_nodes().to_vec();
    for node in &mut nodes {
        node.devices[0].global_id = node.node_id;
        node.devices[0].slice_index = node.node_id % 2;
    }
    Global { nodes }
}

/// Exchanges topologies over keys: process 0 puts them together.
pub(crate) async fn exchange(agent: &Agent, nodes: i32, local: &Local) -> Result<Global, Status> {
    let own_key = local_key(agent.task());
    match agent.put(&own_key, local.encode_to_vec().into(), false).await {
        // An earlier life of this process was here; it must have had the same devices.
        Err(status) if status.code() == Code::AlreadyExists => {
            let before = Local::decode(agent.try_get(&own_key).await?).expect("a topology");
            if before != *local {
                return Err(Status::internal(format!("another topology before: {before:?}")));
            }
        }
        stored => stored?,
    }
    if agent.task() != 0 {
        let found = agent.get_within(LONG, GLOBAL_KEY).await?;
        return Ok(Global::decode(found).expect("a topology"));
    }
    let mut locals = Vec::new();
    for node in 0..nodes {
        let found = agent.get_within(LONG, &local_key(node)).await?;
        locals.push(Local::decode(found).expect("a topology"));
    }
    let global = together(locals);
    agent.put(GLOBAL_KEY, global.encode_to_vec().into(), false).await?;
    Ok(global)
}

const GLOBAL_KEY: &str = "cpu:global_topology/cpu";

fn local_key(node: i32) -> String {
    format!("cpu:local_topology/cpu/{node}")
}

/// Numbers all devices, and the machines in the order in which they appear.
fn together(mut nodes: Vec<Local>) -> Global {
    let mut slices = BTreeMap::new();
    let mut ids = 0..;
    for node in &mut nodes {
        let next = i32::try_from(slices.len()).expect("a small number");
        let slice = *slices.entry(node.boot_id.clone()).or_insert(next);
        for device in &mut node.devices {
            device.slice_index = slice;
            device.global_id = ids.next().expect("no end");
        }
    }
    Global { nodes }
}
