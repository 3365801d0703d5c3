//! A gate as a service of tower, in front of all services of a port.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::{Either, Ready, ready};
use http::header::CONTENT_TYPE;
use http::{Extensions, HeaderValue, Request, Response};
use tower::{Layer, Service};
use tripod_identity::JobName;

use crate::{Caller, Gate, Mode, NamedJob, Reason};

/// Services behind a gate. Who calls is said by an `Arc<Caller>` among the extensions of a request, which whoever accepted its
/// connection put there, or who [sees](GateLayer::seen_by) the callers of the port. What is left to be checked goes on among them, as
/// [`crate::Admitted`].
///
/// Without such a caller the call is of whom the port takes for that: [`Caller::Legacy`] where nobody need say who it is,
/// [`Caller::Listener`] on the port of a job, else [`Caller::Anonymous`].
#[derive(Debug, Clone)]
pub struct Guarded<S> {
    services: S,
    before: Before,
}

/// What stands before them.
#[derive(Debug, Clone)]
struct Before {
    gate: Arc<Gate>,
    own: Option<JobName>,
    unknown: Arc<Caller>,
    see: See,
}

/// Finds who calls among the extensions of a request.
type See = fn(&Extensions) -> Option<Arc<Caller>>;

fn put_there(extensions: &Extensions) -> Option<Arc<Caller>> {
    extensions.get().cloned()
}

/// Puts a gate before all services of a port.
#[derive(Debug, Clone)]
pub struct GateLayer(Before);

impl GateLayer {
    /// A gate before a port that has a job of its `own`, or none. `unknown` is who calls by a connection of which nothing is said.
    #[must_use]
    pub fn new(gate: Arc<Gate>, own: Option<JobName>, unknown: Caller) -> Self {
        Self(Before { gate, own, unknown: Arc::new(unknown), see: put_there })
    }

    /// The same with another way to find who calls.
    #[must_use]
    pub fn seen_by(self, see: See) -> Self {
        Self(Before { see, ..self.0 })
    }
}

impl<S> Layer<S> for GateLayer {
    type Service = Guarded<S>;

    fn layer(&self, services: S) -> Guarded<S> {
        Guarded { services, before: self.0.clone() }
    }
}

impl<S, B, R> Service<Request<B>> for Guarded<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Default,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<Response<R>, S::Error>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.services.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let Before { gate, own, unknown, see } = &self.before;
        if gate.mode() == Mode::Off {
            return Either::Left(self.services.call(request));
        }
        let seen = see(request.extensions());
        let caller = seen.as_ref().unwrap_or(unknown);
        let own = |_| own.clone().map_or(NamedJob::Unsaid, NamedJob::Named);
        match gate.judge(caller, request.uri().path(), request.headers(), own) {
            Ok(admitted) => {
                if let Some(admitted) = admitted {
                    request.extensions_mut().insert(admitted);
                }
                Either::Left(self.services.call(request))
            }
            Err(reason) => Either::Right(ready(Ok(refusal(reason)))),
        }
    }
}

/// The answer of gRPC to a call that is not made.
fn refusal<R: Default>(reason: Reason) -> Response<R> {
    let mut answer = Response::new(R::default());
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-status", HeaderValue::from(reason.code()));
    // No text of a reason has a sign that gRPC would have escaped; a test sees to it.
    let text = HeaderValue::try_from(reason.to_string());
    headers.insert("grpc-message", text.unwrap_or(HeaderValue::from_static("")));
    answer
}
