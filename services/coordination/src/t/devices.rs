//! Device lists in the two forms that TensorFlow has had. What a device is, is not our business, so they are
//! kept in the newer form and each caller is answered in its own. Only what jaxlib before 0.4.14 hands in is put
//! together as its own service does it: each process's topology, of which all are told one.

use bytes::Bytes;
use prost::{DecodeError, Message};
use prost_types::Any;
use tonic::Status;
use tripod_proto::tensorflow as pb;

use crate::l::topology::{Topology, global};

/// What the older form does not say, because it knows nothing else.
const ATTRIBUTES: &str = "type.googleapis.com/tensorflow.DeviceAttributes";

/// What jaxlib hands in and what it is answered. Source: openxla/xla of mid-2023, `xla/pjrt/distributed/service.cc`.
const LOCAL_TOPOLOGY: &str = "type.googleapis.com/xla.LocalTopologyProto";
const GLOBAL_TOPOLOGY: &str = "type.googleapis.com/xla.GlobalTopologyProto";

/// Which of them a caller speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// TensorFlow 2.12 and later: messages of any type.
    Any,
    /// TensorFlow 2.10.
    Of210,
}

impl Form {
    pub(super) fn of(request: &pb::WaitForAllTasksRequest) -> Self {
        if request.local_device_info.is_some() { Self::Of210 } else { Self::Any }
    }
}

/// The sender's devices as they are kept.
pub(super) fn decode(request: &pb::WaitForAllTasksRequest) -> Vec<Bytes> {
    let newer = request.device_info.iter().flat_map(|info| info.device.iter().cloned());
    let older = request.local_device_info.iter().flat_map(|info| &info.tf).flat_map(|list| &list.devices);
    let older = older.map(|device| Any { type_url: ATTRIBUTES.to_owned(), value: device.to_vec() });
    newer.chain(older).map(|device| Bytes::from(device.encode_to_vec())).collect()
}

/// Devices as they are kept, for a caller that speaks `form`.
pub(super) fn encode(
    leader_incarnation: u64,
    devices: Vec<Bytes>,
    form: Form,
) -> Result<pb::WaitForAllTasksResponse, Status> {
    let device = devices
        .into_iter()
        .map(Any::decode)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| undecodable(&error))?;
    let (device_info, cluster_device_info) = match form {
        Form::Any => (Some(pb::DeviceInfo { device: together(device)? }), None),
        Form::Of210 => {
            let devices = device.into_iter().filter(|device| device.type_url == ATTRIBUTES);
            let devices = devices.map(|device| device.value.into()).collect();
            (None, Some(pb::DeviceInfoOf210 { tf: Some(pb::DeviceList { devices }) }))
        }
    };
    Ok(pb::WaitForAllTasksResponse { leader_incarnation, cluster_device_info, device_info })
}

/// Topologies become one; other devices stay what they are.
fn together(devices: Vec<Any>) -> Result<Vec<Any>, Status> {
    if devices.is_empty() || devices.iter().any(|device| device.type_url != LOCAL_TOPOLOGY) {
        return Ok(devices);
    }
    let nodes = devices
        .into_iter()
        .map(|device| Topology::parse(device.value.into()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| undecodable(&error))?;
    let value = global(&nodes, &nodes[0]).to_vec();
    Ok(vec![Any { type_url: GLOBAL_TOPOLOGY.to_owned(), value }])
}

fn undecodable(error: &DecodeError) -> Status {
    Status::internal(format!("a stored device cannot be decoded: {error}"))
}
