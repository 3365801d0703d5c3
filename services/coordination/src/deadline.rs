//! Ends a call whose caller has stopped waiting, with the code that means so.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderMap, Request, Response};
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tower::Service;

/// How much earlier than tonic we end a call. tonic answers CANCELLED, and where that overtakes the
/// client's own clock the client reports another error than it does with upstream.
const AHEAD: Duration = Duration::from_millis(2);
/// The text of gRPC itself.
const TEXT: &str = "Deadline Exceeded";

/// Answers DEADLINE_EXCEEDED when the time that the caller gave is over.
#[derive(Clone)]
pub(crate) struct Expiring<S> {
    inner: S,
}

impl<S> Expiring<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S: NamedService> NamedService for Expiring<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Expiring<S>
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
        let given = given(request.headers());
        let response = self.inner.call(request);
        Box::pin(async move {
            match given {
                None => response.await,
                Some(given) => match tokio::time::timeout(given.saturating_sub(AHEAD), response).await {
                    Ok(response) => response,
                    Err(_) => Ok(Status::deadline_exceeded(TEXT).into_http()),
                },
            }
        })
    }
}

/// The time that the caller gives: up to eight digits and a unit. `None` for no limit, and for what is
/// no time at all, which tonic ignores too.
fn given(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > 8 {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(count * 3600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A service that never answers.
    struct Silent;

    impl Service<Request<Body>> for Silent {
        type Response = Response<Body>;
        type Error = Infallible;
        type Future = std::future::Pending<Result<Response<Body>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<Body>) -> Self::Future {
            std::future::pending()
        }
    }

    #[tokio::test]
    async fn a_call_that_runs_out_of_time_exceeds_its_deadline() {
        let request = Request::builder().header("grpc-timeout", "50m").body(Body::empty()).unwrap();
        let response = Expiring::new(Silent).call(request).await.unwrap();
        let status = Status::from_header_map(response.headers()).unwrap();
        assert_eq!((status.code(), status.message()), (tonic::Code::DeadlineExceeded, TEXT));
    }

    fn of(text: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-timeout", text.parse().unwrap());
        given(&headers)
    }

    #[test]
    fn every_unit_is_read_and_nonsense_is_no_limit() {
        assert_eq!(of("2H"), Some(Duration::from_secs(7200)));
        assert_eq!(of("3M"), Some(Duration::from_secs(180)));
        assert_eq!(of("99999999S"), Some(Duration::from_secs(99_999_999)));
        assert_eq!(of("250m"), Some(Duration::from_millis(250)));
        assert_eq!(of("7u"), Some(Duration::from_micros(7)));
        assert_eq!(of("8n"), Some(Duration::from_nanos(8)));
        for nonsense in ["", "S", "1", "-1S", "1s", "123456789S", "1.5S"] {
            assert_eq!(of(nonsense), None, "{nonsense}");
        }
        assert_eq!(given(&HeaderMap::new()), None);
    }
}
