//! What a node answers to a call.

use bytes::Bytes;
use http::HeaderMap;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};
use tripod_proto::metadata::OUTAGE;
use tripod_proto::tripod::v1 as wire;

use crate::metadata;

/// A node's answer to a call, yes or no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub code: Code,
    /// What is said of the code, not percent-encoded.
    pub text: String,
    /// `grpc-status-details-bin`, decoded.
    pub details: Bytes,
    /// The reply's message, when the code is OK.
    pub message: Bytes,
    /// Trailers beside those.
    pub metadata: HeaderMap,
}

impl Answer {
    /// `None` if its metadata are none.
    pub(crate) fn of(answer: wire::Answer) -> Option<Self> {
        let wire::Answer { code, text, details, message, metadata, .. } = answer;
        Some(Self {
            code: Code::from_i32(code),
            text,
            details,
            message,
            metadata: metadata::received(metadata)?,
        })
    }

    /// The word for the node's own trouble, if the status is no word of the domain: one of the `OUTAGE_*`.
    #[must_use]
    pub fn outage(&self) -> Option<&str> {
        self.metadata.get(OUTAGE)?.to_str().ok()
    }

    /// The status alone.
    #[must_use]
    pub fn into_status(self) -> Status {
        let metadata = MetadataMap::from_headers(self.metadata);
        Status::with_details_and_metadata(self.code, self.text, self.details, metadata)
    }
}
