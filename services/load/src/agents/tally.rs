//! How streams ended, what was sent again, and how heartbeats were told.

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
    words: AtomicU64,
    in_words: AtomicU64,
    by_themselves: AtomicU64,
    leased: AtomicU64,
}

/// The same as figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Told {
    /// Streams that a living node ended: by a goodbye, or a GOAWAY.
    pub sent_away: u64,
    /// Streams that ended without a word, as when the node dies.
    pub broken: u64,
    /// Calls that were sent again.
    pub again: u64,
    /// Words that the leader took for the heartbeats of a set.
    pub words: u64,
    /// Heartbeats that were told so.
    pub in_words: u64,
    /// Heartbeats that were named.
    pub by_themselves: u64,
    /// Heartbeats that their agent answered, as the cluster was silent.
    pub leased: u64,
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

    /// The leader took a word for so many heartbeats.
    pub(super) fn told_in_a_word(&self, heartbeats: usize) {
        self.words.fetch_add(1, Ordering::Relaxed);
        self.in_words.fetch_add(u64::try_from(heartbeats).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The cluster has judged a heartbeat that was named.
    pub(super) fn told_by_itself(&self) {
        self.by_themselves.fetch_add(1, Ordering::Relaxed);
    }

    /// An agent has answered a heartbeat.
    pub(super) fn leased(&self) {
        self.leased.fetch_add(1, Ordering::Relaxed);
    }

    /// All so far.
    pub(super) fn told(&self) -> Told {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Told {
            sent_away: of(&self.sent_away),
            broken: of(&self.broken),
            again: of(&self.again),
            words: of(&self.words),
            in_words: of(&self.in_words),
            by_themselves: of(&self.by_themselves),
            leased: of(&self.leased),
        }
    }
}

impl Told {
    /// What has come since then.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            sent_away: self.sent_away - before.sent_away,
            broken: self.broken - before.broken,
            again: self.again - before.again,
            words: self.words - before.words,
            in_words: self.in_words - before.in_words,
            by_themselves: self.by_themselves - before.by_themselves,
            leased: self.leased - before.leased,
        }
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
        assert_eq!(tally.told(), Told { sent_away: 3, broken: 2, again: 1, ..Told::default() });
    }
}
