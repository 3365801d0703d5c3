//! The peer transport: openraft's messages over gRPC, on a port of their own.
//!
//! [`channels`] holds the connections, one per peer and class, so that a large append or a snapshot
//! cannot delay a heartbeat; they go over [`wiring`], the operating system's network or one that is
//! brought along ([`network`]). [`calls`] are made on them; an [`idle`] one only tells that it ends. [`auth`] puts the cluster and the target node on every call and refuses
//! calls that were meant for somebody else; [`gate`] says which may come in, [`sanity`] what no peer can
//! mean. [`client`] sends, no further ahead than [`window`] allows, and [`send_gate`] holds it back
//! when this node cannot lead. [`transfer`] moves snapshots. [`arrivals`] bounds the connections that
//! come; [`succession`] keeps the order of what is sent by one, and [`proof`] says of which node one is, by what is
//! [`expected`] of it.

pub(crate) mod arrivals;
pub(crate) mod auth;
pub(crate) mod calls;
pub(crate) mod channels;
pub(crate) mod client;
pub(crate) mod expected;
pub(crate) mod gate;
pub(crate) mod idle;
pub(crate) mod network;
pub(crate) mod proof;
pub(crate) mod sanity;
pub(crate) mod send_gate;
pub(crate) mod succession;
pub(crate) mod transfer;
mod window;
pub(crate) mod wiring;

use openraft::raft::{StreamAppendError, StreamAppendResult};
use serde::{Deserialize, Serialize};
use tonic::Status;
use tripod_proto::tripod::peer::v1::Blob;

use crate::base::codec;
use crate::base::types::{LogId, Types, Vote};

/// Bytes of one message: an entry with the largest value, and room for what surrounds it.
pub(crate) const MESSAGE_BYTES_MAX: usize = 80 << 20;

/// One answer on a stream of appends. openraft's own type is a nested result, whose encoding would
/// be an accident of its definition.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum AppendAnswer {
    Matched(Option<LogId>),
    Conflict(LogId),
    HigherVote(Vote),
}

impl From<StreamAppendResult<Types>> for AppendAnswer {
    fn from(result: StreamAppendResult<Types>) -> Self {
        match result {
            Ok(matched) => Self::Matched(matched),
            Err(StreamAppendError::Conflict(at)) => Self::Conflict(at),
            Err(StreamAppendError::HigherVote(vote)) => Self::HigherVote(vote),
        }
    }
}

impl From<AppendAnswer> for StreamAppendResult<Types> {
    fn from(answer: AppendAnswer) -> Self {
        match answer {
            AppendAnswer::Matched(matched) => Ok(matched),
            AppendAnswer::Conflict(at) => Err(StreamAppendError::Conflict(at)),
            AppendAnswer::HigherVote(vote) => Err(StreamAppendError::HigherVote(vote)),
        }
    }
}

pub(crate) fn blob<T: Serialize>(value: &T) -> Blob {
    Blob { data: codec::encode(value).into() }
}

pub(crate) fn unblob<T: serde::de::DeserializeOwned>(blob: &Blob) -> Result<T, Status> {
    codec::decode(&blob.data).map_err(|error| Status::invalid_argument(format!("message refused: {error}")))
}
