//! Tells a caller that its message is too large with the code that means so.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::{Code, Status};
use tower::Service;

/// Bytes of one message that are decoded. More than the largest value that the store takes, so that
/// the store's own limit answers first and names itself.
pub const MESSAGE_BYTES_MAX: usize = 66 << 20;

/// How tonic begins its text when a message is longer than that.
const TONIC_TEXT: &str = "Error, decoded message length too large";

/// tonic answers a message beyond its decode limit OUT_OF_RANGE, which the protocol reserves for
/// what tasks report; this wrapper makes it RESOURCE_EXHAUSTED, as every gRPC of upstream does.
#[derive(Clone)]
pub(crate) struct Overlong<S> {
    inner: S,
}

impl<S> Overlong<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S: NamedService> NamedService for Overlong<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Overlong<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let response = self.inner.call(request);
        Box::pin(async move { Ok(mend(response.await?)) })
    }
}

/// A failed decode is answered before any message, so its status is in the headers.
fn mend(response: Response<Body>) -> Response<Body> {
    match Status::from_header_map(response.headers()) {
        Some(status) if status.code() == Code::OutOfRange && status.message().starts_with(TONIC_TEXT) => {
            Status::resource_exhausted(status.message()).into_http()
        }
        _ => response,
    }
}
