//! Ends a call whose caller has stopped waiting, with the code that means so.

use std::future::Future;
use std::time::Duration;

use http::{HeaderMap, Response};
use tonic::Status;

/// How much earlier than tonic we end a call. tonic answers CANCELLED, and where that overtakes the
/// client's own clock the client reports another error than it does with upstream.
const AHEAD: Duration = Duration::from_millis(2);
/// The text of gRPC itself.
const TEXT: &str = "Deadline Exceeded";

/// Answers DEADLINE_EXCEEDED when the time that the caller has [`given`] is over.
pub async fn keep<B: Default>(
    given: Option<Duration>,
    answer: impl Future<Output = Response<B>>,
) -> Response<B> {
    let Some(given) = given else { return answer.await };
    match tokio::time::timeout(ours(given), answer).await {
        Ok(response) => response,
        Err(_) => exceeded(),
    }
}

/// When we end a call that has so much time.
pub(crate) fn ours(given: Duration) -> Duration {
    given.saturating_sub(AHEAD)
}

/// What a call is told whose time is over.
pub(crate) fn exceeded<B: Default>() -> Response<B> {
    Status::deadline_exceeded(TEXT).into_http()
}

/// The time that a caller gives in its header `grpc-timeout`: up to eight digits and a unit. `None` for no
/// limit, and for what is no time at all, which tonic ignores too.
#[must_use]
pub fn given(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
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

    #[tokio::test(start_paused = true)]
    async fn a_call_that_runs_out_of_time_exceeds_its_deadline() {
        let response = keep::<()>(of("50m"), std::future::pending()).await;
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
        for nonsense in ["", "S", "1", "-1S", "+1S", "1s", "123456789S", "1.5S"] {
            assert_eq!(of(nonsense), None, "{nonsense}");
        }
        assert_eq!(given(&HeaderMap::new()), None);
    }
}
