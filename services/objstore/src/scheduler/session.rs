//! Exactly once: the scheduler knows a call that it has answered by its session and its place in it.

use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tripod_proto::metadata::{RAY_ACKED, RAY_SEQ, RAY_SESSION};

/// A session with the scheduler. Calls are made one after the other.
#[derive(Debug)]
pub(crate) struct Session {
    id: MetadataValue<Ascii>,
    /// The place of the present call, from 1. All before it were answered.
    sequence: u64,
}

impl Session {
    /// A session that nobody else has.
    pub(crate) fn draw() -> Self {
        let id = format!("{:032x}", rand::random::<u128>());
        Self { id: id.parse().expect("hexadecimal digits are a header's value"), sequence: 1 }
    }

    /// A request with the stamp of the present call.
    pub(crate) fn stamped<Q>(&self, message: Q) -> Request<Q> {
        let mut request = Request::new(message);
        let metadata = request.metadata_mut();
        metadata.insert(RAY_SESSION, self.id.clone());
        metadata.insert(RAY_SEQ, self.sequence.into());
        metadata.insert(RAY_ACKED, (self.sequence - 1).into());
        request
    }

    /// The present call was answered; what follows is another one.
    pub(crate) fn answered(&mut self) {
        self.sequence += 1;
    }
}
