//! What an error of the coordination service carries beside its text.

use bytes::Bytes;
use prost::Message as _;
use tonic::Status;
use tripod_coordination::{BARRIER_KEY, COORDINATION_KEY};
use tripod_proto::tensorflow::distributed_runtime::GrpcPayloadContainer;
use tripod_proto::xla::coordination as pb;

/// The payload under that key, if the status carries it.
pub(crate) fn payload(status: &Status, key: &str) -> Option<Bytes> {
    let container = GrpcPayloadContainer::decode(status.details()).expect("a container");
    container.payloads.get(key).cloned()
}

/// The mark of an error that the service made, if it is one.
pub(crate) fn service_error(status: &Status) -> Option<pb::CoordinationServiceError> {
    let value = payload(status, COORDINATION_KEY)?;
    Some(pb::CoordinationServiceError::decode(value).expect("a message of dialect N"))
}

/// The instance of a barrier that an error is about, if it is about one.
pub(crate) fn barrier_error(status: &Status) -> Option<(String, i64)> {
    let error = pb::BarrierError::decode(payload(status, BARRIER_KEY)?).expect("a message");
    Some((error.barrier_id, error.counter))
}
