//! Which tokens were refused, and why: for who looks after a node, as whoever shows one is told nothing.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tripod_proto::code::Code;
use tripod_token::Why;

/// That a token came in plain text over a network.
pub(crate) const PLAIN: &str = "plain";

/// Refusals for one reason are logged so often at most.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// Counts refused tokens. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct TokenTally(Arc<Mutex<BTreeMap<&'static str, Refusals>>>);

#[derive(Debug, Default)]
struct Refusals {
    count: u64,
    told: Option<Instant>,
}

impl TokenTally {
    /// How many were refused, for each reason there is.
    #[must_use]
    pub fn refused(&self) -> Vec<(&'static str, u64)> {
        let counted = self.0.lock();
        let reasons = Why::ALL.map(Why::word).into_iter().chain([PLAIN]);
        reasons.map(|reason| (reason, counted.get(reason).map_or(0, |refusals| refusals.count))).collect()
    }

    /// One was refused that came from there; `None`: by a socket of this machine.
    pub(crate) fn note(&self, reason: &'static str, from: Option<IpAddr>) {
        let count = {
            let mut counted = self.0.lock();
            let refusals = counted.entry(reason).or_default();
            refusals.count += 1;
            if refusals.told.is_some_and(|told| told.elapsed() < TOLD_EVERY) {
                return;
            }
            refusals.told = Some(Instant::now());
            refusals.count
        };
        let from = from.map_or_else(|| "this machine".to_owned(), |from| from.to_string());
        let code = Code::TokenRefused.number();
        tracing::warn!(code = %format_args!("T{code}"), reason, from, count, "a token was refused");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_reason_is_shown_and_each_is_counted_by_itself() {
        let tally = TokenTally::default();
        assert!(tally.refused().iter().all(|(_, count)| *count == 0));
        for reason in [PLAIN, Why::Expired.word(), PLAIN] {
            tally.note(reason, None);
        }
        let counted: BTreeMap<_, _> = tally.clone().refused().into_iter().collect();
        assert_eq!((counted[PLAIN], counted["expired"], counted["unknown"]), (2, 1, 0));
        assert_eq!(counted.len(), Why::ALL.len() + 1);
    }
}
