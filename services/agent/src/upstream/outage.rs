//! Since when no node can serve.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

/// Times in which no node showed that it can serve.
#[derive(Debug)]
pub(crate) struct Outages {
    since: watch::Sender<Option<Instant>>,
    heard: Mutex<Option<Instant>>,
    begun: AtomicU64,
}

impl Outages {
    /// Until the first answer it is not known whether anybody can serve.
    pub(crate) fn new() -> Self {
        Self {
            since: watch::Sender::new(Some(Instant::now())),
            heard: Mutex::new(None),
            begun: AtomicU64::new(0),
        }
    }

    /// Notes that nobody serves at the moment.
    pub(crate) fn begin(&self, cause: &str) {
        let begins = self.since.send_if_modified(|since| {
            let begins = since.is_none();
            since.get_or_insert_with(Instant::now);
            begins
        });
        if begins {
            self.begun.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(cause, "outage begins");
        }
    }

    /// Notes that somebody serves.
    pub(crate) fn end(&self) {
        *self.heard.lock() = Some(Instant::now());
        if self.since.borrow().is_none() {
            return;
        }
        if let Some(since) = self.since.send_replace(None) {
            let lasted_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            tracing::info!(lasted_ms, "outage is over");
        }
    }

    /// Whether somebody has served within the last `time`.
    pub(crate) fn heard_within(&self, time: Duration) -> bool {
        self.heard.lock().is_some_and(|heard| heard.elapsed() < time)
    }

    /// How long the present one lasts.
    pub(crate) fn lasts_for(&self) -> Option<Duration> {
        self.since.borrow().map(|since| since.elapsed())
    }

    /// How many have begun.
    pub(crate) fn count(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Waits until one has lasted for `limit`, and tells how long it lasts.
    pub(crate) async fn lasting(&self, limit: Duration) -> Duration {
        let mut changes = self.since.subscribe();
        loop {
            let since = *changes.borrow_and_update();
            let too_long = async {
                match since {
                    Some(since) => tokio::time::sleep_until(since + limit).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // The sender is ours and lives as long as we do.
                changed = changes.changed() => changed.expect("the sender is ours"),
                () = too_long => return since.map_or(limit, |since| since.elapsed()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn an_answer_starts_the_time_anew() {
        let outages = Outages::new();
        tokio::time::advance(Duration::from_secs(9)).await;
        assert!(!outages.heard_within(LIMIT));
        outages.end();
        assert_eq!(outages.lasts_for(), None);
        assert!(outages.heard_within(LIMIT));
        outages.begin("gone");
        let begun = Instant::now();
        tokio::time::advance(Duration::from_secs(4)).await;
        outages.begin("still gone");
        assert_eq!(outages.lasting(LIMIT).await, LIMIT);
        assert_eq!(begun.elapsed(), LIMIT, "the second word did not count");
        assert_eq!(outages.count(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_lasts_while_somebody_serves() {
        let outages = Outages::new();
        outages.end();
        let waited = tokio::time::timeout(LIMIT * 100, outages.lasting(LIMIT)).await;
        assert!(waited.is_err());
    }
}
