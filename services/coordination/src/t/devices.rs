//! Device lists in the two forms that TensorFlow has had. What a device is, is not our business, so they are
//! kept in the newer form and each caller is answered in its own.

use bytes::Bytes;
use prost::Message;
use prost_types::Any;
use tonic::Status;
use tripod_proto::tensorflow as pb;

/// What the older form does not say, because it knows nothing else.
const ATTRIBUTES: &str = "type.googleapis.com/tensorflow.DeviceAttributes";

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
        .map_err(|error| Status::internal(format!("a stored device cannot be decoded: {error}")))?;
    let (device_info, cluster_device_info) = match form {
        Form::Any => (Some(pb::DeviceInfo { device }), None),
        Form::Of210 => {
            let devices = device.into_iter().filter(|device| device.type_url == ATTRIBUTES);
            let devices = devices.map(|device| device.value.into()).collect();
            (None, Some(pb::DeviceInfoOf210 { tf: Some(pb::DeviceList { devices }) }))
        }
    };
    Ok(pb::WaitForAllTasksResponse { leader_incarnation, cluster_device_info, device_info })
}
