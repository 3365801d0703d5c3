//! Frames of real nodes and schedulers, MindSpore 2.0.0 and 2.10.0, as they were on the wire: each is read, whatever the
//! pieces in which it comes, and written again byte for byte, with what is in it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

use bytes::{Bytes, BytesMut};
use prost::Message;
use serde::Deserialize;
use tripod_mindspore::wire::{Command, Frame as _, ps, rpc0};
use tripod_proto::mindspore::ps_core::{
    EventMessage, HeartbeatMessage, HeartbeatRespMessage, NodeCommand, RegisterMessage, RegisterRespMessage,
    ScaleInMessage, ScaleOutMessage, SendMetadataMessage,
};
use tripod_proto::mindspore::topology::{
    HeartbeatMessage as TopologyBeat, HeartbeatRespMessage as TopologyBeatAnswer, MetadataMessage,
    RegistrationMessage, RegistrationRespMessage, UnregistrationMessage,
};

/// One frame of a capture.
#[derive(Deserialize)]
struct Vector {
    capture: String,
    name: String,
    hex: String,
}

impl Vector {
    fn bytes(&self) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&self.hex[at..at + 2], 16).unwrap();
        (0..self.hex.len()).step_by(2).map(digit).collect()
    }

    fn is_ps(&self) -> bool {
        self.capture.starts_with("ps_")
    }
}

fn vectors() -> Vec<Vector> {
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("golden_vectors.json")).unwrap();
    assert_eq!(vectors.len(), 58);
    vectors
}

/// The only frame of these bytes, which come in two pieces.
fn taken<F: tripod_mindspore::wire::Frame>(bytes: &[u8], split: usize) -> F {
    let mut buffer = BytesMut::from(&bytes[..split]);
    if split < bytes.len() {
        assert!(F::bytes_of(&buffer).unwrap() > split, "it waits for more");
        assert!(F::take(&mut buffer).unwrap().is_none());
    }
    buffer.extend_from_slice(&bytes[split..]);
    assert_eq!(F::bytes_of(&buffer), Ok(bytes.len()));
    let frame = F::take(&mut buffer).unwrap().unwrap();
    assert!(buffer.is_empty());
    frame
}

#[test]
fn frames_of_real_nodes_are_read_in_any_pieces_and_written_as_they_were() {
    for vector in vectors() {
        let bytes = vector.bytes();
        for split in 0..=bytes.len() {
            let again = if vector.is_ps() {
                taken::<ps::Frame>(&bytes, split).encode()
            } else {
                taken::<rpc0::Frame>(&bytes, split).encode()
            };
            assert_eq!(again, bytes, "{} {}", vector.capture, vector.name);
        }
    }
}

#[test]
fn frames_that_come_together_are_taken_one_by_one() {
    let of = |is_ps: bool| vectors().into_iter().filter(move |vector| vector.is_ps() == is_ps);
    let mut buffer: BytesMut = of(true).flat_map(|vector| vector.bytes()).collect();
    for vector in of(true) {
        assert_eq!(ps::Frame::take(&mut buffer).unwrap().unwrap().encode(), vector.bytes());
    }
    assert!(buffer.is_empty());
    let mut buffer: BytesMut = of(false).flat_map(|vector| vector.bytes()).collect();
    for vector in of(false) {
        assert_eq!(rpc0::Frame::take(&mut buffer).unwrap().unwrap().encode(), vector.bytes());
    }
    assert!(buffer.is_empty());
}

fn again<M: Message + Default>(payload: Bytes) -> Vec<u8> {
    M::decode(payload).unwrap().encode_to_vec()
}

#[test]
fn payloads_of_the_parameter_server_have_no_field_that_is_not_known() {
    for vector in vectors().into_iter().filter(Vector::is_ps) {
        let frame: ps::Frame = taken(&vector.bytes(), 0);
        let payload = frame.payload.clone();
        let Command::Known(command) = frame.command() else { panic!("{}", vector.name) };
        let asked = vector.name.contains(" request ");
        let written = match command {
            NodeCommand::Register if asked => again::<RegisterMessage>(payload),
            NodeCommand::Register => again::<RegisterRespMessage>(payload),
            NodeCommand::Heartbeat if asked => again::<HeartbeatMessage>(payload),
            NodeCommand::Heartbeat => again::<HeartbeatRespMessage>(payload),
            NodeCommand::SendMetadata => again::<SendMetadataMessage>(payload),
            NodeCommand::SendEvent => again::<EventMessage>(payload),
            NodeCommand::ScaleOut => again::<ScaleOutMessage>(payload),
            NodeCommand::ScaleIn => again::<ScaleInMessage>(payload),
            // Empty, or the id of a node: alone, or as the only field.
            _ => payload.to_vec(),
        };
        assert_eq!(written, frame.payload, "{} {}", vector.capture, vector.name);
    }
}

#[test]
fn bodies_of_dynamic_clusters_have_no_field_that_is_not_known() {
    for vector in vectors().into_iter().filter(|vector| !vector.is_ps()) {
        let frame: rpc0::Frame = taken(&vector.bytes(), 0);
        let body = frame.body.clone();
        let written = match vector.name.as_str() {
            "kRegistration" => again::<RegistrationMessage>(body),
            "kSuccess reply to kRegistration" => again::<RegistrationRespMessage>(body),
            "kHeartbeat" => again::<TopologyBeat>(body),
            "kSuccess reply to kHeartbeat" => again::<TopologyBeatAnswer>(body),
            "kUnregistration" => again::<UnregistrationMessage>(body),
            name if name.ends_with("Metadata") || name.ends_with("kReadMetadata") => {
                again::<MetadataMessage>(body)
            }
            // Text.
            _ => body.to_vec(),
        };
        assert_eq!(written, frame.body, "{} {}", vector.capture, vector.name);
    }
}
