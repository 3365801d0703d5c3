//! As many sessions as there are, and sessions of others.

use bytes::Bytes;
use tonic::Request;
use tonic::metadata::AsciiMetadataValue;
use tripod_proto::metadata::STAMP;
use tripod_proto::tripod::v1::kv_client::KvClient;
use tripod_proto::tripod::v1::sessions_client::SessionsClient;
use tripod_proto::tripod::v1::{OpenSessionRequest, PutRequest, Stamp};
use tripod_proto::xla::coordination as n;
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient as DialectN;

use super::aim::Aim;
use super::tally::{Bounds, Tally, ended, repeat};

/// Calls that are under way at a time.
const AT_ONCE: usize = 256;
/// Ids that are guessed beside each other.
const GUESSED: u64 = 64;

/// Opens sessions and never closes one.
pub async fn open(aim: &Aim, bounds: Bounds) -> Tally {
    let channels = aim.channels(2 * aim.nodes().len());
    repeat(bounds, AT_ONCE, |turn| {
        let mut client = SessionsClient::new(channels[turn % channels.len()].clone());
        async move { ended(&client.open(OpenSessionRequest { wide: true }).await) }
    })
    .await
}

/// Writes with stamps of sessions that it was never told of, whose ids begin at `first`, over `tripod.v1` and dialect N, each of
/// their numbers in turn. Below feature level 5 ids are indexes of the log.
pub async fn guess(aim: &Aim, bounds: Bounds, first: u64) -> Tally {
    let channels = aim.channels(aim.nodes().len());
    repeat(bounds, AT_ONCE, |turn| {
        // Over the nodes slower than over the dialects and sessions, so that each meets each.
        let channel = channels[turn / 2 % channels.len()].clone();
        let number = turn as u64 / 2;
        let (session, sequence) = (first + number % GUESSED, number / GUESSED + 1);
        let by_dialect_n = turn % 2 == 1;
        async move {
            if by_dialect_n {
                ended(&DialectN::new(channel).insert_key_value(by_n(aim, session, sequence)).await)
            } else {
                ended(&KvClient::new(channel).put(by_v1(session, sequence)).await)
            }
        }
    })
    .await
}

fn by_v1(session: u64, sequence: u64) -> PutRequest {
    PutRequest {
        key: format!("attack/guess/{session}"),
        value: Bytes::from_static(b"guessed"),
        stamp: Some(Stamp { session, sequence, acknowledged_below: 1, session_high: 0 }),
        ..PutRequest::default()
    }
}

fn by_n(aim: &Aim, session: u64, sequence: u64) -> Request<n::InsertKeyValueRequest> {
    let kv =
        n::KeyValueEntry { key: format!("attack/guess/{session}"), value: Bytes::from_static(b"guessed") };
    let message =
        n::InsertKeyValueRequest { incarnations: Some(aim.life()), kv: Some(kv), allow_overwrite: true };
    let mut request = Request::new(message);
    let stamp = AsciiMetadataValue::try_from(format!("{session}.{sequence}.1"));
    request.metadata_mut().insert(STAMP, stamp.expect("digits and points are ASCII"));
    request
}
