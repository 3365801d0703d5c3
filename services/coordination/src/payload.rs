//! What travels beside a code and a text: typed payloads, their bytes, and the container that
//! carries them in the trailer `grpc-status-details-bin`.

use bytes::Bytes;
use prost::Message;
use tripod_proto::{tensorflow, xla};
use tripod_state::ids::{BarrierCounter, BarrierName, ServiceIncarnation, TaskId};

use crate::dialect::Dialect;
use crate::names::Voice;

/// Marks an error as one that the service itself made. Dialect N kept the name of dialect T.
pub const COORDINATION_KEY: &str = "type.googleapis.com/tensorflow.CoordinationServiceError";
/// Names the barrier instance that failed; a client takes its next counter from it.
pub const BARRIER_KEY: &str = "type.googleapis.com/tensorflow.BarrierError";
/// Tells that the service began a new life; a client that sees it ends its process.
pub const MISMATCH_KEY: &str = "type.googleapis.com/tensorflow.ServiceMismatchError";

/// One payload of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Payload {
    /// `source` is the task the error is about, where the protocol tells it.
    Coordination {
        reported: bool,
        source: Option<TaskId>,
    },
    Barrier {
        barrier: BarrierName,
        counter: BarrierCounter,
    },
    ServiceMismatch {
        current: ServiceIncarnation,
    },
}

impl Payload {
    /// The plain mark, without a source.
    pub(crate) const MARK: Self = Self::Coordination { reported: false, source: None };

    pub(crate) fn key(&self) -> &'static str {
        match self {
            Self::Coordination { .. } => COORDINATION_KEY,
            Self::Barrier { .. } => BARRIER_KEY,
            Self::ServiceMismatch { .. } => MISMATCH_KEY,
        }
    }

    /// The payload's message, encoded.
    pub(crate) fn value(&self, voice: Voice<'_>) -> Bytes {
        let bytes = match (self, voice.dialect) {
            (Self::Coordination { reported, source }, Dialect::N | Dialect::L) => {
                let source_task_id = source.map_or(0, |task| task.0);
                let is_reported_error = *reported;
                xla::coordination::CoordinationServiceError { is_reported_error, source_task_id }
                    .encode_to_vec()
            }
            (Self::Coordination { reported, source }, Dialect::T) => {
                let source_task = source.map(|task| named(task, voice));
                tensorflow::CoordinationServiceError { is_reported_error: *reported, source_task }
                    .encode_to_vec()
            }
            (Self::Barrier { barrier, counter }, _) => {
                let barrier_id = barrier.as_str().to_owned();
                xla::coordination::BarrierError { barrier_id, counter: counter.0 }.encode_to_vec()
            }
            (Self::ServiceMismatch { current }, _) => {
                xla::coordination::ServiceMismatchError { service_incarnation: current.0 }.encode_to_vec()
            }
        };
        bytes.into()
    }

    /// The payload as absl prints it behind a nested status: ` [key='escaped value']`.
    pub(crate) fn print(&self, voice: Voice<'_>) -> String {
        format!(" [{}='{}']", self.key(), escape(&self.value(voice)))
    }
}

/// A task in messages of dialect T. Where it has no name it goes by its number, without a job, as newer
/// clients of jaxlib have it.
pub(crate) fn named(task: TaskId, voice: Voice<'_>) -> tensorflow::CoordinatedTask {
    let (job_name, task_id) =
        voice.name(task).map_or_else(|| (String::new(), task.0), |name| (name.group, name.index));
    tensorflow::CoordinatedTask { job_name, task_id, recoverable: false }
}

/// `tensorflow.distributed_runtime.GrpcPayloadContainer` with its map spelled out as the repeated
/// entries that it is on the wire: a generated map has no order, and it leaves out an empty value,
/// which upstream writes.
#[derive(Clone, PartialEq, prost::Message)]
struct Container {
    #[prost(message, repeated, tag = "1")]
    payloads: Vec<ContainerEntry>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ContainerEntry {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(bytes = "bytes", optional, tag = "2")]
    value: Option<Bytes>,
}

/// The bytes of `grpc-status-details-bin`; empty if there is no payload.
pub(crate) fn container(payloads: &[Payload], voice: Voice<'_>) -> Bytes {
    let entry = |payload: &Payload| ContainerEntry {
        key: payload.key().to_owned(),
        value: Some(payload.value(voice)),
    };
    Container { payloads: payloads.iter().map(entry).collect() }.encode_to_vec().into()
}

/// Escapes as absl's `CHexEscape` does: printable ASCII stays, the rest becomes `\xNN`, and a hex
/// digit behind such an escape is escaped too, or it would be read as part of it.
fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut after_hex = false;
    for &byte in bytes {
        let named = match byte {
            b'\n' => Some("\\n"),
            b'\r' => Some("\\r"),
            b'\t' => Some("\\t"),
            b'"' => Some("\\\""),
            b'\'' => Some("\\'"),
            b'\\' => Some("\\\\"),
            _ => None,
        };
        let printable = (b' '..=b'~').contains(&byte) && !(after_hex && byte.is_ascii_hexdigit());
        after_hex = named.is_none() && !printable;
        match named {
            Some(named) => text.push_str(named),
            None if printable => text.push(char::from(byte)),
            None => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use tripod_proto::tensorflow::distributed_runtime::GrpcPayloadContainer;

    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn an_empty_mark_has_the_bytes_that_upstream_sends() {
        let bytes = container(&[Payload::MARK], Voice::plain(Dialect::N));
        let key = hex(COORDINATION_KEY.as_bytes());
        assert_eq!(hex(&bytes), format!("0a3b0a37{key}1200"));
    }

    #[test]
    fn the_container_is_the_generated_map() {
        let barrier = Payload::Barrier { barrier: "b".into(), counter: BarrierCounter(3) };
        let bytes = container(&[Payload::MARK, barrier], Voice::plain(Dialect::T));
        let map = GrpcPayloadContainer::decode(bytes).expect("a container").payloads;
        assert_eq!(map.len(), 2);
        assert!(map[COORDINATION_KEY].is_empty());
        assert_eq!(map[BARRIER_KEY].as_ref(), b"\x0a\x01b\x10\x03");
    }

    #[test]
    fn a_source_is_a_number_in_n_and_a_task_in_t() {
        let reported = |task| Payload::Coordination { reported: true, source: Some(TaskId(task)) };
        assert_eq!(hex(&reported(1).value(Voice::plain(Dialect::N))), "18012001");
        assert_eq!(hex(&reported(0).value(Voice::plain(Dialect::N))), "1801");
        assert_eq!(hex(&reported(1).value(Voice::plain(Dialect::T))), "180122021001");
        assert_eq!(hex(&reported(0).value(Voice::plain(Dialect::T))), "18012200");
    }

    #[test]
    fn a_mismatch_carries_the_current_incarnation() {
        let payload = Payload::ServiceMismatch { current: ServiceIncarnation(0x0102) };
        assert_eq!(hex(&payload.value(Voice::plain(Dialect::N))), "090201000000000000");
    }

    #[test]
    fn escapes_as_absl_does() {
        assert_eq!(escape(b"\n\x1eShutdown"), "\\n\\x1eShutdown");
        assert_eq!(escape(b" \x01"), " \\x01");
        assert_eq!(escape(b"\x10\x01b'"), "\\x10\\x01\\x62\\'");
        assert_eq!(escape(b"\xff\"\\\t\r~\x7f"), "\\xff\\\"\\\\\\t\\r~\\x7f");
        assert_eq!(escape(b"\x01\n9"), "\\x01\\n9", "a named escape ends the run");
    }
}
