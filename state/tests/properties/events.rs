//! What holds for events, whatever happens.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tripod_state::events::{Event, JOB_BYTES_MAX, MILESTONE_BYTES_MAX, Position};
use tripod_state::ids::JobId;
use tripod_state::{Command, level};

use super::Replica;
use super::generate::steps;

impl Replica {
    fn telling() -> Self {
        let mut replica = Self::started();
        let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
        replica.apply(None, Command::Level(raise)).reply.expect("all support it");
        replica
    }

    fn events(&self, job: JobId) -> Vec<std::sync::Arc<Event>> {
        self.state.events_of(job, |_| true).map(|listed| listed.events).unwrap_or_default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// A prefix, a snapshot and the rest have the same events as all of it.
    #[test]
    fn events_are_the_same_on_every_replica(steps in steps(120), cut in 0_usize..120) {
        let (mut whole, mut resumed) = (Replica::telling(), Replica::telling());
        for (number, step) in steps.iter().enumerate() {
            if number == cut {
                resumed = resumed.through_a_snapshot();
            }
            prop_assert_eq!(whole.step(step), resumed.step(step));
        }
        prop_assert_eq!(whole.state.digest(), resumed.state.digest());
        prop_assert!(whole.state == resumed.state);
        prop_assert_eq!(whole.state.bytes(), whole.state.recounted_bytes());
    }

    /// Whoever follows, however rarely it looks, hears of every change that is still there, and of each once.
    #[test]
    fn a_follower_hears_of_every_change_once(steps in steps(120), looks in prop::collection::vec(any::<bool>(), 120)) {
        let started = Replica::telling();
        for job in [JobId(1), JobId(2)] {
            let mut replica = started.clone();
            let mut after = Position::default();
            let mut heard: BTreeMap<u64, (u32, Position)> = BTreeMap::new();
            for (step, look) in steps.iter().zip(&looks) {
                replica.step(step);
                if !look {
                    continue;
                }
                let Some(listed) = replica.state.events_of(job, |event| event.last > after) else { continue };
                for event in &listed.events {
                    prop_assert!(event.last > after && event.last <= listed.kept.last);
                    heard.insert(event.number, (event.times, event.last));
                }
                after = after.max(listed.kept.last);
            }
            let newest = replica.events(job).into_iter().filter(|event| event.last <= after);
            for event in newest.filter(|_| replica.state.job(job).is_some()) {
                prop_assert_eq!(heard.get(&event.number), Some(&(event.times, event.last)), "{:?}", event);
            }
        }
    }

    #[test]
    fn bounds_hold_and_what_is_dropped_is_counted(steps in steps(200)) {
        let mut replica = Replica::telling();
        for step in &steps {
            replica.step(step);
        }
        for job in replica.state.jobs_with_events() {
            let listed = replica.state.events_of(job, |_| true).expect("it was just named");
            let bytes = |events: &[std::sync::Arc<Event>]| events.iter().map(|event| event.bytes()).sum::<u64>();
            let milestones: Vec<_> = listed.events.iter().filter(|event| event.what.is_milestone()).cloned().collect();
            prop_assert!(bytes(&milestones) <= MILESTONE_BYTES_MAX && bytes(&listed.events) <= JOB_BYTES_MAX);
            let traffic_gone = if listed.kept.ended { u64::MAX } else { 0 };
            let all = listed.events.len() as u64 + listed.kept.dropped;
            prop_assert!(all == listed.kept.made || traffic_gone > 0);
            prop_assert!(listed.events.windows(2).all(|pair| pair[0].number < pair[1].number));
        }
    }
}
