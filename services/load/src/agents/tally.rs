//! How streams ended, and what was sent again.

use std::sync::atomic::{AtomicU64, Ordering};

use tripod_calls::Reason;

/// How HTTP/2 tells of a connection that the other side has ended by a GOAWAY.
const GOAWAY: &str = "connection error received";

/// What befell the streams of all agents.
#[derive(Debug, Default)]
pub(super) struct Tally {
    sent_away: AtomicU64,
    broken: AtomicU64,
    again: AtomicU64,
}

/// The same as figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// Streams that a living node ended: by a goodbye, or a GOAWAY.
    pub sent_away: u64,
    /// Streams that ended without a word, as when the node dies.
    pub broken: u64,
    /// Calls that were sent again.
    pub again: u64,
}

impl Tally {
    /// A stream is given up. `end` is why it has ended; `None`: it has not, and its node takes no more by it.
    pub(super) fn gave_up(&self, end: Option<&Reason>) {
        let counter = if is_sent_away(end) { &self.sent_away } else { &self.broken };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn sent_again(&self) {
        self.again.fetch_add(1, Ordering::Relaxed);
    }

    /// All so far.
    pub(super) fn told(&self) -> Told {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Told { sent_away: of(&self.sent_away), broken: of(&self.broken), again: of(&self.again) }
    }
}

fn is_sent_away(end: Option<&Reason>) -> bool {
    match end {
        // It takes no more, and says so.
        None | Some(Reason::Leaving) => true,
        Some(Reason::Broken(text)) => text.contains(GOAWAY),
        // The system closes the connections of a process that is killed, some of them in order.
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_dies_sends_nobody_away() {
        let tally = Tally::default();
        for end in [
            Some(Reason::Broken("Connection reset by peer (os error 104)".into())),
            Some(Reason::Broken("connection error received: not a result of an error".into())),
            Some(Reason::Over),
            Some(Reason::Leaving),
            None,
        ] {
            tally.gave_up(end.as_ref());
        }
        tally.sent_again();
        assert_eq!(tally.told(), Told { sent_away: 3, broken: 2, again: 1 });
    }
}
