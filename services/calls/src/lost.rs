//! Why a call has no answer, and whether it may have been executed all the same.

use std::sync::Arc;

/// A call without an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// It has certainly not been executed, and can be made by another way.
    #[error("it was not sent: {0}")]
    NotSent(Reason),
    /// It was sent, and may have been executed, or may be yet.
    #[error("it was sent and not answered: {0}")]
    Unknown(Reason),
}

/// What there was no answer for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The node is an older one, or something else: calls to it are made one by one.
    #[error("the node knows no streams of calls")]
    NotServed,
    /// The node refused the stream.
    #[error("the node refused the stream of calls: {0}")]
    Refused(Arc<str>),
    /// The connection broke, or the node ended.
    #[error("the stream of calls broke: {0}")]
    Broken(Arc<str>),
    /// The node ended the stream in order.
    #[error("the node ended the stream of calls")]
    Over,
    /// The node sent what no node sends.
    #[error("the stream of calls was ended, as the node {0}")]
    Breach(&'static str),
    /// The node is about to stop.
    #[error("the node takes no more calls by this stream")]
    Leaving,
    /// Nobody holds the stream any more.
    #[error("the stream of calls was closed here")]
    Closed,
    /// [`CALLS_MAX`](crate::CALLS_MAX) or [`QUEUED_BYTES_MAX`](crate::QUEUED_BYTES_MAX).
    #[error("too many calls wait for this stream")]
    Full,
    /// [`PATHS_MAX`](crate::PATHS_MAX), or one that is far too long.
    #[error("the stream has no room for another path")]
    Paths,
    /// [`OP_MESSAGE_BYTES_MAX`](crate::OP_MESSAGE_BYTES_MAX) or
    /// [`OP_METADATA_BYTES_MAX`](crate::OP_METADATA_BYTES_MAX).
    #[error("it is too long for a stream of calls")]
    TooLong,
    /// They are no text, or gRPC's or HTTP's own, for which a node would end the stream.
    #[error("its metadata cannot be those of an op")]
    Metadata,
    #[error("it is not called by a path such as /package.Service/Method")]
    NoPath,
    /// The stream has no session, or the metadata have a stamp as well.
    #[error("it cannot have a sequence")]
    Sequence,
}

impl Lost {
    /// Why.
    #[must_use]
    pub fn reason(&self) -> &Reason {
        let (Self::NotSent(reason) | Self::Unknown(reason)) = self;
        reason
    }
}
