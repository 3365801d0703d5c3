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
    /// Reads the header: up to eight digits and a unit. `None` for no limit, and for what is no time.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let given = parse(headers.get(HEADER)?.to_str().ok()?)?;
        Some(Self { given, end: Instant::now() + given })
    }

    /// When to answer at the latest.
    pub(crate) fn last_moment(self) -> Instant {
        self.end - AHEAD.min(self.given)
    }

    /// The header for what remains.
    pub(crate) fn remaining(self) -> HeaderValue {
        let left = self.end.saturating_duration_since(Instant::now());
        let text = match left.as_micros() {
            micros @ 0..=99_999_999 => format!("{micros}u"),
            _ if left.as_millis() <= 99_999_999 => format!("{}m", left.as_millis()),
            _ => format!("{}S", left.as_secs().min(99_999_999)),
        };
        HeaderValue::from_str(&text).expect("digits and a letter")
    }
}

fn parse(text: &str) -> Option<Duration> {
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

    #[test]
    fn every_unit_is_read_and_nonsense_is_no_limit() {
        assert_eq!(parse("2H"), Some(Duration::from_secs(7200)));
        assert_eq!(parse("3M"), Some(Duration::from_secs(180)));
        assert_eq!(parse("99999999S"), Some(Duration::from_secs(99_999_999)));
        assert_eq!(parse("250m"), Some(Duration::from_millis(250)));
        assert_eq!(parse("7u"), Some(Duration::from_micros(7)));
        assert_eq!(parse("8n"), Some(Duration::from_nanos(8)));
        for nonsense in ["", "S", "1", "-1S", "+1S", "1s", "123456789S", "1.5S"] {
            assert_eq!(parse(nonsense), None, "{nonsense}");
        }
    }

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
