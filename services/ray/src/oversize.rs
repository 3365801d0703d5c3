//! Around a service: tells a caller whose message is too large, or no message, with the code that means so.

use std::convert::Infallible;
use std::task::{Context, Poll};

use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::NamedService;
use tonic::{Code, Status};

/// How tonic begins its text when a message is longer than the decode limit.
const TOO_LARGE: &str = "Error, decoded message length too large";
/// How it begins when the bytes are not those of the message.
const NO_MESSAGE: &str = "failed to decode Protobuf message";

/// tonic answers a message beyond the limit `OUT_OF_RANGE` and one that cannot be read `INTERNAL`; this makes
/// them `RESOURCE_EXHAUSTED`, as every gRPC of upstream does, and `INVALID_ARGUMENT`: the caller's fault.
#[derive(Clone)]
pub(crate) struct Oversize<S>(pub(crate) S);

impl<S: NamedService> NamedService for Oversize<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, Asked, Body> Service<http::Request<Asked>> for Oversize<S>
where
    S: Service<http::Request<Asked>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
    Body: Default,
{
    type Response = S::Response;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Asked>) -> Self::Future {
        let response = self.0.call(request);
        Box::pin(async move { Ok(mend(response.await?)) })
    }
}

/// A failed decode is answered before any message, so its status is in the headers.
fn mend<Body: Default>(response: http::Response<Body>) -> http::Response<Body> {
    match Status::from_header_map(response.headers()).as_ref().and_then(mended) {
        Some(status) => status.into_http(),
        None => response,
    }
}

/// What a status that means an undecodable message should be; `None` if it means something else.
pub(crate) fn mended(status: &Status) -> Option<Status> {
    match status.code() {
        Code::OutOfRange if status.message().starts_with(TOO_LARGE) => {
            Some(Status::resource_exhausted(status.message()))
        }
        Code::Internal if status.message().starts_with(NO_MESSAGE) => {
            Some(Status::invalid_argument(status.message()))
        }
        _ => None,
    }
}
