//! What is asked about every call before a service hears of it.

use std::fmt;
use std::sync::Arc;

use http::Request;
use tonic::Status;

use crate::connection::ConnectionCalls;

/// The head of a call.
pub type Head = http::request::Parts;

/// Says whether a call is made. It is asked once for each: for a call of its own by the call's path, for an op of a stream of
/// calls by the op's, and for such a stream by the stream's.
pub trait Guard: Send + Sync + 'static {
    /// Judges by the head of a call, of whose body nothing was read, and by its connection. What it puts into the head the
    /// service finds.
    ///
    /// # Errors
    /// The call is not made, and told so.
    fn admit(&self, head: &mut Head, connection: &ConnectionCalls) -> Result<(), Status>;
}

/// The guard of a port, if it has one. Cheap to clone.
#[derive(Clone, Default)]
pub struct Guarding(Option<Arc<dyn Guard>>);

impl Guarding {
    /// By this one.
    #[must_use]
    pub fn by(guard: impl Guard) -> Self {
        Self(Some(Arc::new(guard)))
    }

    /// The request, if its call is made.
    pub(crate) fn admit<B>(
        &self,
        request: Request<B>,
        connection: &ConnectionCalls,
    ) -> Result<Request<B>, Status> {
        let Some(guard) = &self.0 else { return Ok(request) };
        let (mut head, body) = request.into_parts();
        guard.admit(&mut head, connection)?;
        Ok(Request::from_parts(head, body))
    }
}

impl fmt::Debug for Guarding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "guarded" } else { "unguarded" })
    }
}
