//! The set of beats that the leader keeps for this agent, so that the same beats are told in a word.
//!
//! A set is offered when beats had to be told that are in none, and holds all that were taken of late. Which of them were
//! made is said each time, as no beat is told that no client made: clients of one host do not beat in step.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use tripod_proto::tripod::v1 as pb;

use crate::ledger::{Beat, Taken};

/// Beats of one set; what nodes take. An agent of more clients tells each beat.
const MEMBERS_MAX: usize = 1024;
/// After an offer that came to nothing: the node or the leader is of an older build, or has no room.
const OFFER_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// What a client waits for an answer may be shorter by such a part of it than it was: less than what the cluster takes for
/// another interval.
const ROUNDING_PART: u32 = 25;

/// What the leader keeps for this agent. Its session is drawn when it is made, and told to nodes only.
#[derive(Debug)]
pub struct Sets {
    session: Bytes,
    kept: Option<KeptSet>,
    /// Whether an offer is under way: there is one at a time, as the leader keeps one set.
    is_offering: bool,
    offer_from: Instant,
}

/// A set as it was offered.
#[derive(Debug)]
pub struct KeptSet {
    digest: u64,
    count: u32,
    places: HashMap<Beat, (usize, Taken)>,
}

/// Tells sets apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Sets {
    fn default() -> Self {
        let session = Bytes::copy_from_slice(&rand::random::<[u8; 16]>());
        Self { session, kept: None, is_offering: false, offer_from: Instant::now() }
    }
}

impl Sets {
    /// How these beats are told in a word, if all of them are in the set that is kept, as they are there.
    #[must_use]
    pub fn told(&self, due: &[(Beat, Option<Taken>)]) -> Option<(pb::BeatSet, Digest)> {
        let kept = self.kept.as_ref()?;
        let mut made = vec![0_u8; kept.places.len().div_ceil(8)];
        for (beat, taken) in due {
            let place = kept.place(beat, taken.as_ref())?;
            *made.get_mut(place / 8)? |= 1 << (place % 8);
        }
        let set = pb::BeatSet {
            session: self.session.clone(),
            digest: kept.digest,
            count: kept.count,
            members: Vec::new(),
            made: made.into(),
        };
        Some((set, Digest(kept.digest)))
    }

    /// The leader does not keep that set.
    pub fn forget(&mut self, digest: Digest) {
        self.kept.take_if(|kept| kept.digest == digest.0);
    }

    /// What is to be offered now that these were told by themselves, if anything is. `taken` gives all that were taken of
    /// late. Whoever gets an offer says what came of it ([`Self::offered`]).
    pub fn offer(
        &mut self,
        due: &[(Beat, Option<Taken>)],
        taken: impl FnOnce() -> Vec<(Beat, Taken)>,
    ) -> Option<(pb::BeatSet, KeptSet)> {
        let is_known = |(beat, taken): &(Beat, Option<Taken>)| match (&self.kept, taken) {
            (Some(kept), Some(taken)) => kept.place(beat, Some(taken)).is_some(),
            (None, Some(_)) => false,
            // What was refused is in no set.
            (_, None) => true,
        };
        if self.is_offering || Instant::now() < self.offer_from || due.iter().all(is_known) {
            return None;
        }
        let members = taken();
        if members.is_empty() || members.len() > MEMBERS_MAX {
            return None;
        }
        self.is_offering = true;
        let kept = KeptSet::of(&members);
        let member = |(beat, taken): (Beat, Taken)| pb::SetMember {
            path: beat.path,
            message: beat.message,
            deadline_ms: taken.given.map_or(0, crate::millis),
            answer: taken.answer,
        };
        let set = pb::BeatSet {
            session: self.session.clone(),
            digest: kept.digest,
            count: kept.count,
            members: members.into_iter().map(member).collect(),
            made: Bytes::new(),
        };
        Some((set, kept))
    }

    /// What came of an offer: the set that is kept, or `None`.
    pub fn offered(&mut self, kept: Option<KeptSet>) {
        self.is_offering = false;
        if kept.is_none() {
            self.offer_from = Instant::now() + OFFER_AGAIN_AFTER;
        }
        // Of an offer without an answer nobody knows whether it took the place of the one before, which a node says when that
        // is told.
        if let Some(kept) = kept {
            self.kept = Some(kept);
        }
    }
}

impl KeptSet {
    fn of(members: &[(Beat, Taken)]) -> Self {
        // Only this agent reads it: to nodes it is a number. So it need not be the same in every build.
        let mut hasher = DefaultHasher::new();
        members.hash(&mut hasher);
        let placed = |(place, (beat, taken)): (usize, &(Beat, Taken))| (beat.clone(), (place, taken.clone()));
        Self {
            digest: hasher.finish(),
            count: u32::try_from(members.len()).unwrap_or(u32::MAX),
            places: members.iter().enumerate().map(placed).collect(),
        }
    }

    /// Where a beat stands, if it would be told and answered as it is there.
    fn place(&self, beat: &Beat, now: Option<&Taken>) -> Option<usize> {
        let ((place, kept), now) = (self.places.get(beat)?, now?);
        (kept.answer == now.answer && covers(kept.given, now.given)).then_some(*place)
    }
}

/// Whether a client that waits so long for an answer can be told as one that waits for `kept`. What comes over the wire is
/// what is left of it when the call is sent, so it is a little shorter now and then. Who waits longer is told so.
fn covers(kept: Option<Duration>, now: Option<Duration>) -> bool {
    match (kept, now) {
        (Some(kept), Some(now)) => now <= kept && kept - now <= kept / ROUNDING_PART,
        (kept, now) => kept == now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: Duration = Duration::from_millis(5_000);

    fn beat(task: u8) -> Beat {
        Beat { path: "/Heartbeat".into(), message: Bytes::copy_from_slice(&[task]) }
    }

    fn taken(given: Duration, answer: &'static str) -> Taken {
        Taken { given: Some(given), answer: answer.into() }
    }

    fn due(tasks: &[u8]) -> Vec<(Beat, Option<Taken>)> {
        tasks.iter().map(|task| (beat(*task), Some(taken(GIVEN, "ok")))).collect()
    }

    fn members(tasks: &[u8]) -> Vec<(Beat, Taken)> {
        tasks.iter().map(|task| (beat(*task), taken(GIVEN, "ok"))).collect()
    }

    /// With these in the set that is kept.
    fn keeping(tasks: &[u8]) -> Sets {
        let mut sets = Sets::default();
        let (set, kept) = sets.offer(&due(tasks), || members(tasks)).expect("an offer");
        assert_eq!((set.members.len(), set.made.len()), (tasks.len(), 0));
        sets.offered(Some(kept));
        sets
    }

    #[tokio::test(start_paused = true)]
    async fn beats_of_the_set_are_told_by_a_bit_each_and_others_are_not() {
        let sets = keeping(&[0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let (set, _) = sets.told(&due(&[8, 1])).expect("in the set");
        assert_eq!((set.made.as_ref(), set.count, set.members.len()), (&[0b10, 0b1][..], 9, 0));
        assert!(sets.told(&due(&[1, 9])).is_none(), "one is in no set");
        assert!(Sets::default().told(&due(&[1])).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_beat_that_is_answered_otherwise_or_waits_longer_is_not_the_one_in_the_set() {
        let sets = keeping(&[1]);
        let told = |taken| sets.told(&[(beat(1), taken)]).is_some();
        assert!(told(Some(taken(GIVEN, "ok"))));
        assert!(told(Some(taken(Duration::from_millis(4_990), "ok"))), "a little of it had passed");
        assert!(!told(Some(taken(Duration::from_millis(5_010), "ok"))));
        assert!(!told(Some(taken(Duration::from_millis(2_000), "ok"))));
        assert!(!told(Some(taken(GIVEN, "of another service"))));
        assert!(!told(Some(Taken { given: None, answer: "ok".into() })));
        assert!(!told(None), "it was refused");
    }

    #[tokio::test(start_paused = true)]
    async fn a_set_is_offered_once_while_nothing_changes_and_again_when_something_does() {
        let mut sets = keeping(&[1, 2]);
        assert!(sets.offer(&due(&[1, 2]), || members(&[1, 2])).is_none(), "it is kept");
        assert!(sets.offer(&[(beat(3), None)], || members(&[1, 2])).is_none(), "it was refused");
        let (set, kept) = sets.offer(&due(&[3]), || members(&[1, 2, 3])).expect("another one");
        assert!(sets.offer(&due(&[3]), || members(&[1, 2, 3])).is_none(), "one is under way");
        sets.offered(Some(kept));
        let (told, digest) = sets.told(&due(&[3])).expect("it is kept");
        assert_eq!(told.digest, set.digest);
        sets.forget(Digest(digest.0 ^ 1));
        assert!(sets.told(&due(&[3])).is_some(), "another one was not known");
        sets.forget(digest);
        assert!(sets.told(&due(&[3])).is_none());
        assert!(sets.offer(&due(&[3]), || members(&[1, 2, 3])).is_some(), "at once");
    }

    #[tokio::test(start_paused = true)]
    async fn an_offer_that_came_to_nothing_is_not_made_again_soon() {
        let mut sets = Sets::default();
        assert!(sets.offer(&due(&[1]), || members(&[1])).is_some());
        sets.offered(None);
        assert!(sets.offer(&due(&[1]), || members(&[1])).is_none());
        tokio::time::advance(OFFER_AGAIN_AFTER).await;
        assert!(sets.offer(&due(&[1]), || members(&[1])).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn more_beats_than_a_set_has_are_told_one_by_one() {
        let mut sets = Sets::default();
        let many = || vec![(beat(1), taken(GIVEN, "ok")); MEMBERS_MAX + 1];
        assert!(sets.offer(&due(&[1]), many).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn every_agent_draws_a_session_of_its_own() {
        assert_ne!(Sets::default().session, Sets::default().session);
    }
}
