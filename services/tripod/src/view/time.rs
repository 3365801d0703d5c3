//! Times in words.

use std::time::{SystemTime, UNIX_EPOCH};

/// This machine's clock, in milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A length of time: `10 s`, `2.5 s`.
pub(crate) fn seconds(ms: u64) -> String {
    match ms % 1_000 / 100 {
        0 => format!("{} s", ms / 1_000),
        tenths => format!("{}.{tenths} s", ms / 1_000),
    }
}

/// A length of time that came rounded up, as gRPC writes deadlines: from ten seconds on to the second.
pub(crate) fn about(ms: u64) -> String {
    if ms < 10_000 { seconds(ms) } else { format!("{} s", ms.saturating_add(500) / 1_000) }
}

/// The time since `then_ms`, in whole seconds. The clock of the node that wrote it may be ahead of ours.
pub(crate) fn since(then_ms: u64, now_ms: u64) -> String {
    format!("{} s", now_ms.saturating_sub(then_ms) / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_exact_as_they_need_be() {
        assert_eq!(["0 s", "10 s", "2.5 s"], [0, 10_000, 2_500].map(seconds).each_ref().map(String::as_str));
        assert_eq!([100_200, 50_100, 2_500].map(about), ["100 s", "50 s", "2.5 s"]);
        assert_eq!(since(1_000, 4_900), "3 s");
        assert_eq!(since(5_000, 4_900), "0 s");
    }
}
