//! When a leader is unfit. Pure: what is seen, and when, comes in.

use std::time::Duration;

use tokio::time::Instant;

use super::Unfit;

/// One look at the node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight {
    /// The term in which this node leads others, if it does.
    pub(super) term_led: Option<u64>,
    /// When the newest message was sent that a quorum has acknowledged.
    pub(super) acknowledged: Option<Instant>,
    /// The number of the group of log changes that the disk has not answered for.
    pub(super) flush: Option<u64>,
}

/// Remembers since when things are as they are.
#[derive(Debug)]
pub(super) struct Judge {
    patience: Duration,
    /// The term that is led, and when that was seen first.
    reign: Option<(u64, Instant)>,
    /// The group that is under way, and when that was seen first.
    flush: Option<(u64, Instant)>,
    /// What the last look found, whether or not it was said yet.
    suspected: Option<Unfit>,
    verdict: Option<Unfit>,
}

impl Judge {
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience, reign: None, flush: None, suspected: None, verdict: None }
    }

    /// Judges. What is wrong must be wrong at two looks in a row: after a pause of this process the
    /// first look finds everything old, however well disk and followers are.
    pub(super) fn look(&mut self, now: Instant, sight: Sight) -> Option<Unfit> {
        self.reign = since(self.reign, sight.term_led, now);
        self.flush = since(self.flush, sight.flush, now);
        let found = self.find(now, sight);
        let confirmed = found.is_some() && self.suspected.is_some();
        self.suspected = found;
        if found.is_none() || confirmed {
            self.verdict = found;
        }
        self.verdict
    }

    fn find(&self, now: Instant, sight: Sight) -> Option<Unfit> {
        let (_, since) = self.reign?;
        let old = |at: Instant| now.saturating_duration_since(at) > self.patience;
        if self.flush.is_some_and(|(_, since)| old(since)) {
            return Some(Unfit::DiskStalled);
        }
        // A new leader has its time, too.
        let heard = sight.acknowledged.map_or(since, |at| at.max(since));
        old(heard).then_some(Unfit::NoQuorum)
    }
}

/// `known`, if it still is about `seen`, otherwise `seen` from now on.
fn since(known: Option<(u64, Instant)>, seen: Option<u64>, now: Instant) -> Option<(u64, Instant)> {
    let seen = seen?;
    known.filter(|(number, _)| *number == seen).or(Some((seen, now)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(700);
    const TICK: Duration = Duration::from_millis(100);

    /// A judge and a clock that ticks with every look.
    struct Court {
        judge: Judge,
        now: Instant,
    }

    impl Court {
        fn new() -> Self {
            Self { judge: Judge::new(PATIENCE), now: Instant::now() }
        }

        /// The first verdict within `looks` looks, and after which of them.
        fn within(&mut self, looks: u32, sight: impl Fn(Instant) -> Sight) -> Option<(u32, Unfit)> {
            (1..=looks).find_map(|look| {
                self.now += TICK;
                self.judge.look(self.now, sight(self.now)).map(|unfit| (look, unfit))
            })
        }
    }

    fn well(now: Instant) -> Sight {
        Sight { term_led: Some(3), acknowledged: Some(now), flush: None }
    }

    #[test]
    fn a_leader_that_is_well_leads_on_also_while_it_flushes_again_and_again() {
        let mut court = Court::new();
        assert_eq!(court.within(100, well), None);
        for group in 0..100 {
            assert_eq!(court.within(1, |now| Sight { flush: Some(group), ..well(now) }), None);
        }
    }

    #[test]
    fn one_flush_that_takes_longer_than_an_election_makes_a_leader_unfit_until_it_ends() {
        let mut court = Court::new();
        let stalled = |now| Sight { flush: Some(7), ..well(now) };
        let (looks, unfit) = court.within(20, stalled).unwrap();
        assert_eq!(unfit, Unfit::DiskStalled);
        assert!((8..=11).contains(&looks), "said after {looks} looks");
        assert_eq!(court.within(1, |now| Sight { flush: Some(8), ..well(now) }), None);
    }

    #[test]
    fn silence_of_the_others_makes_a_leader_unfit_until_a_quorum_answers() {
        let mut court = Court::new();
        let last = court.now;
        let unheard = |_| Sight { term_led: Some(3), acknowledged: Some(last), flush: None };
        let (looks, unfit) = court.within(20, unheard).unwrap();
        assert_eq!(unfit, Unfit::NoQuorum);
        assert!((8..=11).contains(&looks), "said after {looks} looks");
        assert_eq!(court.within(1, well), None);
    }

    #[test]
    fn a_new_leader_has_its_time_though_nobody_has_answered_it_yet() {
        let mut court = Court::new();
        let new = |term| move |_| Sight { term_led: Some(term), acknowledged: None, flush: None };
        assert_eq!(court.within(7, new(3)), None);
        assert_eq!(court.within(7, new(4)), None);
        assert_eq!(court.within(20, new(4)).map(|(_, unfit)| unfit), Some(Unfit::NoQuorum));
    }

    #[test]
    fn who_does_not_lead_is_not_judged() {
        let mut court = Court::new();
        let follower = |_| Sight { term_led: None, acknowledged: None, flush: Some(7) };
        assert_eq!(court.within(100, follower), None);
    }

    #[test]
    fn a_pause_of_the_process_is_no_reason() {
        let mut court = Court::new();
        let before = court.now + TICK;
        assert_eq!(court.within(1, |now| Sight { flush: Some(7), ..well(now) }), None);
        court.now += Duration::from_secs(60);
        let woken = |_| Sight { term_led: Some(3), acknowledged: Some(before), flush: Some(7) };
        assert_eq!(court.within(1, woken), None);
        assert_eq!(court.within(20, well), None);
    }
}
