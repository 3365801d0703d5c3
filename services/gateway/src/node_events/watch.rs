//! Looks once a second at what nobody else reports: the disk, contact with the others, and what ports have counted.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior};
use tripod_gate::Rpc;
use tripod_local::Connections;
use tripod_port::{CallCount, CallTally};

use super::{Kind, NodeEvents};
use crate::backend::{Admin, Replica};
use crate::submit::Submitter;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A flush that takes longer is no flush, but a disk that does not answer.
const STALL: Duration = Duration::from_secs(1);
/// A node that knows nothing from a quorum for so long has lost contact: some heartbeats are missing by then.
const CONTACT_PATIENCE: Duration = Duration::from_secs(3);

/// What is looked at. Nothing of it is kept alive by that.
pub(crate) struct Watched {
    pub(crate) replica: Weak<dyn Replica>,
    pub(crate) admin: Weak<dyn Admin>,
    pub(crate) submitter: Weak<Submitter>,
    pub(crate) calls: CallTally,
    pub(crate) connections: Connections,
}

/// What was seen at the last look.
#[derive(Default)]
struct Before {
    /// Since when the disk does not answer.
    stalled: Option<Instant>,
    /// Since when there is no contact.
    lost: Option<Instant>,
    /// Of each RPC: refused, failed, and given up by its caller.
    calls: BTreeMap<String, [u64; 3]>,
    connections: u64,
    turns: u64,
}

/// Looks until the node is gone. Must be called within a tokio runtime.
pub(crate) fn watch(events: &Arc<NodeEvents>, watched: Watched) {
    let events = Arc::downgrade(events);
    tokio::spawn(async move {
        let mut before = Before::default();
        let mut looks = tokio::time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = Instant::now();
        loop {
            looks.tick().await;
            let Some(events) = events.upgrade() else { return };
            // A process that did not run has heard nobody meanwhile, which says nothing of the others.
            let was_awake = last.elapsed() < LOOK_EVERY * 3;
            last = Instant::now();
            if before.look(&events, &watched, was_awake).is_none() {
                return;
            }
        }
    });
}

impl Before {
    /// `None`: the node is gone.
    fn look(&mut self, events: &NodeEvents, watched: &Watched, was_awake: bool) -> Option<()> {
        let (replica, admin) = (watched.replica.upgrade()?, watched.admin.upgrade()?);
        let submitter = watched.submitter.upgrade()?;
        self.disk(events, admin.measures().flush.under_way);
        if was_awake {
            self.contact(events, replica.last_contact());
        }
        self.calls(events, &watched.calls.counts());
        let refused = watched.connections.refused();
        let more = refused.saturating_sub(std::mem::replace(&mut self.connections, refused));
        if more > 0 {
            events.note(Kind::ConnectionsRefused, ("", "for want of room".to_owned()), more);
        }
        let given_up = submitter.turns().counts().refused_total;
        let more = given_up.saturating_sub(std::mem::replace(&mut self.turns, given_up));
        if more > 0 {
            events.note(
                Kind::TurnsGivenUp,
                ("", "their turn to write did not come in time".to_owned()),
                more,
            );
        }
        Some(())
    }

    fn disk(&mut self, events: &NodeEvents, under_way: Option<Duration>) {
        let is_stalled = under_way.is_some_and(|length| length > STALL);
        match (is_stalled, self.stalled) {
            (true, None) => {
                self.stalled = Some(Instant::now());
                events.note(Kind::DiskStalled, ("", "one flush takes longer than a second".to_owned()), 1);
            }
            (false, Some(since)) => {
                self.stalled = None;
                events.note(Kind::DiskAnswers, ("", format!("after {}", seconds(since.elapsed()))), 1);
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// What never was cannot be lost.
    fn contact(&mut self, events: &NodeEvents, last: Option<Instant>) {
        let Some(last) = last else { return };
        let is_lost = last.elapsed() > CONTACT_PATIENCE;
        match (is_lost, self.lost) {
            (true, None) => {
                self.lost = Some(last);
                let text = format!("nothing was heard of a quorum for {}", seconds(last.elapsed()));
                events.note(Kind::ContactLost, ("", text), 1);
            }
            (false, Some(since)) => {
                self.lost = None;
                events.note(Kind::ContactFound, ("", format!("after {}", seconds(since.elapsed()))), 1);
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    fn calls(&mut self, events: &NodeEvents, counts: &[CallCount]) {
        for count in counts {
            let [_, refused, failed, dropped] = count.outcomes;
            let name = count.rpc.map_or_else(|| "(no RPC)".to_owned(), Rpc::path);
            let told = self.calls.entry(name.clone()).or_default();
            let now = [refused, failed, dropped];
            let kinds = [
                (Kind::CallsRefused, "by the rules of its protocol, or of who may call it"),
                (Kind::CallsFailed, "for this node's or the cluster's own trouble"),
                (Kind::CallersGone, "its caller was gone, or had waited for as long as it wanted to"),
            ];
            for (place, (kind, text)) in kinds.into_iter().enumerate() {
                let more = now[place].saturating_sub(told[place]);
                if more > 0 {
                    events.note(kind, (&name, text.to_owned()), more);
                }
            }
            *told = now;
        }
    }
}

fn seconds(length: Duration) -> String {
    format!("{:.1} s", length.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::TimeMs;

    use super::*;

    fn events() -> NodeEvents {
        NodeEvents::new(Arc::new(|| TimeMs(5_000)))
    }

    fn told(events: &NodeEvents) -> Vec<(String, String, u64)> {
        let seen = events.seen().events.into_iter();
        seen.map(|event| (event.kind, event.text, event.times)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_stall_and_a_lost_contact_are_told_once_with_their_ends() {
        let (events, mut before) = (events(), Before::default());
        before.contact(&events, None);
        let heard = Instant::now();
        for _ in 0..5 {
            before.disk(&events, Some(Duration::from_secs(2)));
            before.contact(&events, Some(heard));
            tokio::time::advance(LOOK_EVERY).await;
        }
        before.disk(&events, None);
        before.contact(&events, Some(Instant::now()));
        let expected = [
            ("disk-stalled", "one flush takes longer than a second"),
            ("contact-lost", "nothing was heard of a quorum for 4.0 s"),
            ("disk-answers", "after 5.0 s"),
            ("contact-found", "after 5.0 s"),
        ];
        let expected = expected.map(|(kind, text)| (kind.to_owned(), text.to_owned(), 1));
        assert_eq!(told(&events), expected);
    }

    #[test]
    fn every_kind_has_a_word_of_its_own() {
        let words: std::collections::BTreeSet<_> = super::super::NodeEvent::KINDS.into_iter().collect();
        assert_eq!(words.len(), Kind::ALL.len());
    }
}
