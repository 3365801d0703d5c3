//! When a maker of frames looks again: when there is news, and not before it has rested from what its last look cost.

use std::time::Duration;

use tokio::time::Instant;

/// Between two looks if there is no news, and between two frames in any case: how old all is, is said again.
const STILL_EVERY: Duration = Duration::from_secs(1);
/// A maker rests so many times as long as its last look has kept a core: all watched jobs together must not slow down the
/// node.
const RESTS: u32 = 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Whether news is a reason to look before the time; a list of all jobs takes a look at every task.
    by_news: bool,
    looked_at: Option<Instant>,
    said_at: Option<Instant>,
    rests_until: Option<Instant>,
}

impl Pace {
    pub(crate) fn new(by_news: bool) -> Self {
        Self { by_news, looked_at: None, said_at: None, rests_until: None }
    }

    /// Whether it is time to look.
    pub(crate) fn is_due(&self, news: bool, now: Instant) -> bool {
        let is_rested = self.rests_until.is_none_or(|until| now >= until);
        is_rested && ((self.by_news && news) || is_over(self.looked_at, now))
    }

    /// Whether it is time to say how old all is, though nobody has looked.
    pub(crate) fn is_silent(&self, now: Instant) -> bool {
        self.looked_at.is_some() && is_over(self.said_at, now)
    }

    /// A look that was begun then, and has kept a core for so long, was shown.
    pub(crate) fn looked(&mut self, cost: Duration, begun: Instant) {
        self.looked_at = Some(begun);
        self.rests_until = Some(begun + cost * (RESTS + 1));
        self.said(begun);
    }

    pub(crate) fn said(&mut self, now: Instant) {
        self.said_at = Some(now);
    }
}

fn is_over(last: Option<Instant>, now: Instant) -> bool {
    last.is_none_or(|at| now.duration_since(at) >= STILL_EVERY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_looks_long_rests_longer_and_says_meanwhile_how_old_all_is() {
        let begin = Instant::now();
        let at = |ms: u64| begin + Duration::from_millis(ms);
        let mut pace = Pace::new(true);
        assert!(pace.is_due(false, at(0)) && !pace.is_silent(at(0)), "there is nothing yet");
        pace.looked(Duration::from_millis(1), at(0));
        assert!(!pace.is_due(false, at(250)) && pace.is_due(true, at(250)), "news");
        assert!(pace.is_due(false, at(1_000)));
        pace.looked(Duration::from_millis(300), at(1_000));
        assert!(!pace.is_due(true, at(4_299)) && pace.is_due(true, at(4_300)));
        assert!(!pace.is_silent(at(1_999)) && pace.is_silent(at(2_000)));
        pace.said(at(2_000));
        assert!(!pace.is_silent(at(2_500)));
    }

    #[tokio::test]
    async fn a_list_of_all_jobs_is_not_made_for_news() {
        let begin = Instant::now();
        let mut pace = Pace::new(false);
        pace.looked(Duration::ZERO, begin);
        assert!(!pace.is_due(true, begin + Duration::from_millis(900)));
        assert!(pace.is_due(true, begin + STILL_EVERY));
    }
}
