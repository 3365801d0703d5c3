//! The time that a caller gives, in its header.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use tokio::time::Instant;

/// gRPC's header for it.
pub(crate) const HEADER: &str = "grpc-timeout";
/// How much earlier than the caller's own clock a call is ended. A caller that hears of it first from us
/// reports DEADLINE_EXCEEDED; the server library would answer CANCELLED.
const AHEAD: Duration = Duration::from_millis(2);

/// When a call ends for its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadline {
    pub(crate) given: Duration,
    end: Instant,
}

impl Deadline {
    /// Reads the header as nodes do. `None` for no limit, and for what is no time.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let given = tripod_port::deadline::given(headers)?;
        Some(Self { given, end: Instant::now() + given })
    }

    /// When to answer at the latest.
    pub(crate) fn last_moment(self) -> Instant {
        self.end - AHEAD.min(self.given)
    }

    /// What remains.
    pub(crate) fn left(self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// The header for what remains.
    pub(crate) fn remaining(self) -> HeaderValue {
        let left = self.left();
        let text = match left.as_micros() {
            micros @ 0..=99_999_999 => format!("{micros}u"),
            _ if left.as_millis() <= 99_999_999 => format!("{}m", left.as_millis()),
            _ => format!("{}S", left.as_secs().min(99_999_999)),
        };
        HeaderValue::from_str(&text).expect("digits and a letter")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_remains_is_told_in_a_unit_that_fits() {
        let remaining = |text: &str| {
            let headers =
                HeaderMap::from_iter([(http::HeaderName::from_static(HEADER), text.parse().unwrap())]);
            Deadline::of(&headers).expect("a time").remaining()
        };
        assert_eq!(remaining("5S"), "5000000u");
        assert_eq!(remaining("305S"), "305000m");
        assert_eq!(remaining("99H"), "356400S");
        let headers = HeaderMap::from_iter([(http::HeaderName::from_static(HEADER), "5S".parse().unwrap())]);
        let deadline = Deadline::of(&headers).expect("a time");
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(deadline.remaining(), "3000000u");
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(deadline.remaining(), "0u");
    }
}
