//! When a leader is unfit. Pure: what is seen, and when, comes in.

use std::time::Duration;

use tokio::time::Instant;

use super::Unfit;

/// One look at the node.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeView {
    /// The term in which this node leads others, if it does.
    pub(super) term_led: Option<u64>,
    /// It hands over: it asks nobody anything for a while, and looks after that itself.
    pub(super) hands_over: bool,
    /// When the newest message was sent that a quorum has acknowledged.
    pub(super) acknowledged: Option<Instant>,
    /// The number of what the disk was asked last and has not answered.
    pub(super) flush: Option<u64>,
}

/// Remembers since when things are as they are.
#[derive(Debug)]
pub(super) struct Judge {
    patience: Duration,
    /// The term that is led, and when that was seen first.
    led_since: Option<(u64, Instant)>,
    /// When it was last seen handing over.
    handed_over: Option<Instant>,
    /// What is under way at the disk, and when that was seen first.
    flush: Option<(u64, Instant)>,
    /// What the last look found, whether or not it was said yet.
    suspected: Option<Unfit>,
    verdict: Option<Unfit>,
}

impl Judge {
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience, led_since: None, handed_over: None, flush: None, suspected: None, verdict: None }
    }

    /// Judges. What is wrong must be wrong at two looks in a row: after a pause of this process the
    /// first look finds everything old, however well disk and followers are.
    pub(super) fn look(&mut self, now: Instant, view: NodeView) -> Option<Unfit> {
        self.led_since = since(self.led_since, view.term_led, now);
        self.flush = since(self.flush, view.flush, now);
        if view.hands_over {
            self.handed_over = Some(now);
        }
        let found = self.find(now, view);
        let confirmed = found.is_some() && self.suspected.is_some();
        self.suspected = found;
        if found.is_none() || confirmed {
            self.verdict = found;
        }
        self.verdict
    }

    fn find(&self, now: Instant, view: NodeView) -> Option<Unfit> {
        let (_, since) = self.led_since?;
        let old = |at: Instant| now.saturating_duration_since(at) > self.patience;
        if self.flush.is_some_and(|(_, since)| old(since)) {
            return Some(Unfit::DiskStalled);
        }
        // A new leader has its time, too, and one that asks again.
        let asked = self.handed_over.map_or(since, |at| at.max(since));
        let heard = view.acknowledged.map_or(asked, |at| at.max(asked));
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
        fn within(&mut self, looks: u32, view: impl Fn(Instant) -> NodeView) -> Option<(u32, Unfit)> {
            (1..=looks).find_map(|look| {
                self.now += TICK;
                self.judge.look(self.now, view(self.now)).map(|unfit| (look, unfit))
            })
        }
    }

    fn well(now: Instant) -> NodeView {
        NodeView { term_led: Some(3), hands_over: false, acknowledged: Some(now), flush: None }
    }

    #[test]
    fn a_leader_that_is_well_leads_on_also_while_it_flushes_again_and_again() {
        let mut court = Court::new();
        assert_eq!(court.within(100, well), None);
        for group in 0..100 {
            assert_eq!(court.within(1, |now| NodeView { flush: Some(group), ..well(now) }), None);
        }
    }

    #[test]
    fn one_flush_that_takes_longer_than_an_election_makes_a_leader_unfit_until_it_ends() {
        let mut court = Court::new();
        let stalled = |now| NodeView { flush: Some(7), ..well(now) };
        let (looks, unfit) = court.within(20, stalled).unwrap();
        assert_eq!(unfit, Unfit::DiskStalled);
        assert!((8..=11).contains(&looks), "said after {looks} looks");
        assert_eq!(court.within(1, |now| NodeView { flush: Some(8), ..well(now) }), None);
    }

    #[test]
    fn silence_of_the_others_makes_a_leader_unfit_until_a_quorum_answers() {
        let mut court = Court::new();
        let last = court.now;
        let unheard = |now| NodeView { acknowledged: Some(last), ..well(now) };
        let (looks, unfit) = court.within(20, unheard).unwrap();
        assert_eq!(unfit, Unfit::NoQuorum);
        assert!((8..=11).contains(&looks), "said after {looks} looks");
        assert_eq!(court.within(1, well), None);
    }

    #[test]
    fn a_new_leader_has_its_time_though_nobody_has_answered_it_yet() {
        let mut court = Court::new();
        let new = |term| move |now| NodeView { term_led: Some(term), acknowledged: None, ..well(now) };
        assert_eq!(court.within(7, new(3)), None);
        assert_eq!(court.within(7, new(4)), None);
        assert_eq!(court.within(20, new(4)).map(|(_, unfit)| unfit), Some(Unfit::NoQuorum));
    }

    #[test]
    fn one_that_hands_over_need_not_be_heard_and_has_its_time_when_it_asks_again() {
        let mut court = Court::new();
        let last = court.now;
        let unheard =
            move |hands_over| move |now| NodeView { hands_over, acknowledged: Some(last), ..well(now) };
        assert_eq!(court.within(100, unheard(true)), None);
        assert_eq!(court.within(7, unheard(false)), None);
        assert_eq!(court.within(20, unheard(false)).map(|(_, unfit)| unfit), Some(Unfit::NoQuorum));
    }

    #[test]
    fn a_disk_that_stalls_while_its_leader_hands_over_makes_it_unfit() {
        let mut court = Court::new();
        let stalled = |now| NodeView { hands_over: true, flush: Some(7), ..well(now) };
        let (looks, unfit) = court.within(20, stalled).unwrap();
        assert_eq!(unfit, Unfit::DiskStalled);
        assert!((8..=11).contains(&looks), "said after {looks} looks");
    }

    #[test]
    fn who_does_not_lead_is_not_judged() {
        let mut court = Court::new();
        let follower = |now| NodeView { term_led: None, acknowledged: None, flush: Some(7), ..well(now) };
        assert_eq!(court.within(100, follower), None);
    }

    #[test]
    fn a_pause_of_the_process_is_no_reason() {
        let mut court = Court::new();
        let before = court.now + TICK;
        assert_eq!(court.within(1, |now| NodeView { flush: Some(7), ..well(now) }), None);
        court.now += Duration::from_secs(60);
        let woken = |now| NodeView { acknowledged: Some(before), flush: Some(7), ..well(now) };
        assert_eq!(court.within(1, woken), None);
        assert_eq!(court.within(20, well), None);
    }
}
