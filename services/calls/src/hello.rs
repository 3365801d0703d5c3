//! What is said once, of all calls of a stream.

use http::HeaderMap;
use tripod_proto::tripod::v1 as wire;

use crate::lost::Reason;
use crate::metadata;

/// What is true of every call of a stream.
#[derive(Debug, Clone, Default)]
pub struct Hello {
    /// Metadata of every call, such as the job.
    pub metadata: HeaderMap,
    /// The session of the calls that have a sequence; `None`: none has.
    pub session: Option<u128>,
}

impl Hello {
    pub(crate) fn message(&self) -> Result<wire::Hello, Reason> {
        let (metadata, _) = metadata::sent(&self.metadata)?;
        let session = self.session.map(|session| session.to_string()).unwrap_or_default();
        Ok(wire::Hello { metadata, session })
    }
}
