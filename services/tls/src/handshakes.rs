//! How often handshakes have ended how.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tripod_proto::code::Code;

use crate::limits::{LOG_EVERY, LOGGED_MAX};
use crate::outcome::Outcome;
use crate::port::Port;

/// Counts of a process, and what it has logged of late.
#[derive(Debug, Default)]
pub struct Handshakes {
    counts: [[AtomicU64; Outcome::ALL.len()]; Port::ALL.len()],
    logged: Mutex<HashMap<(Option<IpAddr>, Outcome), Instant>>,
}

impl Handshakes {
    /// How many handshakes on ports of a class have ended so.
    #[must_use]
    pub fn count(&self, port: Port, outcome: Outcome) -> u64 {
        self.cell(port, outcome).load(Ordering::Relaxed)
    }

    fn cell(&self, port: Port, outcome: Outcome) -> &AtomicU64 {
        &self.counts[port as usize][outcome as usize]
    }

    /// Counts one, and logs it if it failed and that is not known yet.
    pub(crate) fn note(&self, port: Port, outcome: Outcome, from: Option<IpAddr>, why: &str) {
        self.cell(port, outcome).fetch_add(1, Ordering::Relaxed);
        if outcome == Outcome::Ok || !self.is_news(from, outcome) {
            return;
        }
        let from = from.map_or_else(|| "this machine".to_owned(), |from| from.to_string());
        tracing::warn!(
            code = %format_args!("T{}", Code::TlsHandshake.number()),
            port = port.label(),
            outcome = outcome.label(),
            from,
            why,
            "a connection was not made by TLS"
        );
    }

    /// Whether such an end at that address is to be logged.
    fn is_news(&self, from: Option<IpAddr>, outcome: Outcome) -> bool {
        let now = Instant::now();
        let mut logged = self.logged.lock();
        if logged.len() >= LOGGED_MAX {
            logged.retain(|_, at| now.duration_since(*at) < LOG_EVERY);
        }
        let key = (from, outcome);
        if logged.get(&key).is_some_and(|at| now.duration_since(*at) < LOG_EVERY) {
            return false;
        }
        // Addresses without end are counted all the same.
        let has_room = logged.len() < LOGGED_MAX || logged.contains_key(&key);
        if has_room {
            logged.insert(key, now);
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_counted_and_the_same_is_not_news_twice() {
        let handshakes = Handshakes::default();
        let here = |last| Some(IpAddr::from([10, 0, 0, last]));
        assert!(handshakes.is_news(here(1), Outcome::Expired));
        assert!(!handshakes.is_news(here(1), Outcome::Expired));
        assert!(
            handshakes.is_news(here(1), Outcome::Timeout) && handshakes.is_news(here(2), Outcome::Expired)
        );
        for _ in 0..3 {
            handshakes.note(Port::Peer, Outcome::Expired, here(3), "");
        }
        assert_eq!(handshakes.count(Port::Peer, Outcome::Expired), 3);
        assert_eq!(handshakes.count(Port::Client, Outcome::Expired), 0);
    }

    #[test]
    fn addresses_without_end_are_not_remembered_without_end() {
        let handshakes = Handshakes::default();
        for number in 0..2000_u32 {
            handshakes.is_news(Some(IpAddr::from(number.to_be_bytes())), Outcome::Plain);
        }
        assert_eq!(handshakes.logged.lock().len(), LOGGED_MAX);
    }
}
