//! Around the service: tells a caller whose message is too large, or no message, with the code that means so.

use std::convert::Infallible;
use std::task::{Context, Poll};

use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::NamedService;
use tonic::{Code, Status};

use crate::limits::PART_BYTES_MAX;
use crate::status;

/// How tonic begins its text when a message is longer than the decode limit.
const TOO_LARGE: &str = "Error, decoded message length too large";
/// How it begins when the bytes are not those of the message.
const NO_MESSAGE: &str = "failed to decode Protobuf message";

/// tonic answers a message beyond the limit `OUT_OF_RANGE` and one that cannot be read `INTERNAL`; this makes them
/// `RESOURCE_EXHAUSTED` and `INVALID_ARGUMENT`: the caller's fault.
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
        Box::pin(async move {
            let response = response.await?;
            // A failed decode is answered before any message, so its status is in the headers.
            let mended = Status::from_header_map(response.headers()).as_ref().and_then(mended);
            Ok(mended.map_or(response, Status::into_http))
        })
    }
}

/// What a status that means an undecodable message should be; `None` if it means something else.
fn mended(status: &Status) -> Option<Status> {
    match status.code() {
        Code::OutOfRange if status.message().starts_with(TOO_LARGE) => {
            let text =
                format!("{}; a graph of more than {PART_BYTES_MAX} bytes comes in parts", status.message());
            Some(status::with_reason(Status::resource_exhausted(text), "exhausted"))
        }
        Code::Internal if status.message().starts_with(NO_MESSAGE) => Some(status::invalid(status.message())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_means_a_bad_message_is_told_otherwise() {
        let large = mended(&Status::out_of_range(format!("{TOO_LARGE}: found 9"))).unwrap();
        assert!(large.code() == Code::ResourceExhausted && large.message().contains("comes in parts"));
        let broken = mended(&Status::internal(format!("{NO_MESSAGE}: x"))).unwrap();
        assert_eq!(broken.code(), Code::InvalidArgument);
        assert!(mended(&Status::internal("mine")).is_none() && mended(&Status::out_of_range("x")).is_none());
    }
}
