//! What the log is told of clients: enough to find out what is wrong with one, and never as much as a client likes.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tripod_port::CallerAddress;

/// Characters of one line, and of a client's text in one.
const LINE_CHARS_MAX: usize = 500;
const TEXT_CHARS_MAX: usize = 100;
/// Lines in each period. What is beyond is counted, and told with the first line of the next.
const LINES_MAX: u64 = 50;
const PERIOD: Duration = Duration::from_secs(10);

/// Of all connections of a node. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Complaints(Arc<Mutex<Period>>);

#[derive(Debug, Default)]
struct Period {
    began: Option<Instant>,
    complaints: u64,
}

impl Complaints {
    /// Tells what is wrong with what came from there.
    pub(crate) fn tell(&self, peer: CallerAddress, what: &dyn Display) {
        let Some(untold) = self.note() else { return };
        let what = plain(&what.to_string(), LINE_CHARS_MAX);
        let from = peer.0.map_or_else(|| "this machine".to_owned(), |address| address.to_string());
        if untold == 0 {
            tracing::warn!(from, "{what}");
        } else {
            tracing::warn!(from, untold, "{what}");
        }
    }

    /// Counts one. Gives how many were not told lately, if this one is to be told.
    fn note(&self) -> Option<u64> {
        let mut period = self.0.lock();
        let now = Instant::now();
        let mut untold = 0;
        if period.began.is_none_or(|began| now - began >= PERIOD) {
            untold = period.complaints.saturating_sub(LINES_MAX);
            *period = Period { began: Some(now), complaints: 0 };
        }
        period.complaints += 1;
        (period.complaints <= LINES_MAX).then_some(untold)
    }
}

/// A client's text as it stands in a line of the log, or in an answer.
pub(crate) fn shown(text: &str) -> String {
    plain(text, TEXT_CHARS_MAX)
}

/// So many characters of it at most, none of which is an order to a terminal or ends a line.
fn plain(text: &str, chars_max: usize) -> String {
    let mut shown = String::new();
    for character in text.chars().take(chars_max) {
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn beyond_some_lines_in_a_period_they_are_counted_and_told_with_the_next() {
        let complaints = Complaints::default();
        let told = (0..LINES_MAX + 3).filter(|_| complaints.note().is_some()).count() as u64;
        assert_eq!(told, LINES_MAX);
        tokio::time::advance(PERIOD).await;
        assert_eq!((complaints.note(), complaints.note()), (Some(3), Some(0)));
    }

    #[test]
    fn a_text_of_a_client_is_short_and_no_order_to_a_terminal() {
        assert_eq!(shown("a\u{1b}[2J\nb\u{e9}"), "a\\u{1b}[2J\\nb\u{e9}");
        assert_eq!(shown(&"x".repeat(1 << 20)).len(), TEXT_CHARS_MAX);
    }
}
