//! Heartbeats of agents' clients that the leader keeps, so that they can be told in a word.
//!
//! A set is named by the session of its agent, which nobody else is told, and its digest and count must be those with which
//! it was kept. What is told so does exactly what the same heartbeats would do one by one, or nothing: the state is asked
//! about each, and only if it would answer each of them at once, and with what it was answered before, are they heard.

use std::collections::HashMap;
use std::sync::Arc;

use tripod_state::State;
use tripod_state::ids::{DurationMs, ServiceIncarnation};

use super::{Judged, Keeper};
use crate::awake::Moment;
use crate::backend::{Replica, look};
use crate::pulse::{
    BEATS_OF_A_SET_MAX, Beat, BeatSession, BeatSetId, SetQuestion, SetTold, SetWord, is_made,
};

/// Sets that are kept at a time, of one agent each: twice as many as 100,000 tasks have hosts of eight.
const SETS_MAX: usize = 32_768;
/// What all of them may take.
const SETS_BYTES_MAX: usize = 64 << 20;
/// What one takes besides its heartbeats.
const SET_BYTES: usize = size_of::<(BeatSession, KeptSet)>() + 64;
/// A set of which nothing was told for so long is dropped: longer than usual intervals, and no longer than its agent lives
/// without being missed.
const IDLE: DurationMs = DurationMs(10 * 60 * 1000);

/// The sets of all agents. Empty on nodes that do not lead.
#[derive(Default)]
pub(super) struct BeatSets {
    sets: HashMap<BeatSession, KeptSet>,
    bytes: usize,
}

/// The set of one agent.
struct KeptSet {
    digest: u64,
    beats: Arc<[Beat]>,
    /// With what each of them is answered.
    service: ServiceIncarnation,
    used: Moment,
}

impl BeatSets {
    /// Keeps a set in place of the session's last one. Gives whether there is room.
    fn keep(&mut self, id: BeatSetId, beats: Arc<[Beat]>, service: ServiceIncarnation, now: Moment) -> bool {
        self.drop_set(id.session);
        let bytes = bytes_of(&beats);
        // Idle ones are looked for now and then, and not by whoever asks for room.
        if !self.has_room(bytes) {
            return false;
        }
        self.bytes += bytes;
        self.sets.insert(id.session, KeptSet { digest: id.digest, beats, service, used: now });
        true
    }

    /// The set that is meant, if it is the one that is kept.
    fn find(&mut self, id: BeatSetId, now: Moment) -> Option<(Arc<[Beat]>, ServiceIncarnation)> {
        let kept = self.sets.get_mut(&id.session)?;
        if kept.digest != id.digest || u32::try_from(kept.beats.len()) != Ok(id.count) {
            return None;
        }
        kept.used = now;
        Some((Arc::clone(&kept.beats), kept.service))
    }

    /// Drops sets of which nothing was told for long.
    fn forget_idle(&mut self, now: Moment) {
        self.sets.retain(|_, kept| now.since(kept.used) < IDLE);
        self.bytes = self.sets.values().map(|kept| bytes_of(&kept.beats)).sum();
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.sets.len() < SETS_MAX && self.bytes + bytes <= SETS_BYTES_MAX
    }

    fn drop_set(&mut self, session: BeatSession) {
        if let Some(before) = self.sets.remove(&session) {
            self.bytes -= bytes_of(&before.beats);
        }
    }
}

fn bytes_of(beats: &[Beat]) -> usize {
    SET_BYTES + size_of_val(beats)
}

impl Keeper {
    /// The leader's word on a set.
    pub(super) fn word(&self, backend: &dyn Replica, set: &SetQuestion) -> SetWord {
        match &set.told {
            SetTold::Members(beats) => self.keep_set(backend, set.id, beats),
            SetTold::Made(made) => self.hear_set(backend, set.id, made),
        }
    }

    /// Keeps a set whose tasks are answered alike, if they are alive. Of others it is said when they are told again.
    fn keep_set(&self, backend: &dyn Replica, id: BeatSetId, beats: &[Beat]) -> SetWord {
        if beats.len() > BEATS_OF_A_SET_MAX || u32::try_from(beats.len()) != Ok(id.count) {
            return SetWord::Unknown;
        }
        let wall = (self.clock)();
        let services = look(backend, |state| {
            let service = |beat: &Beat| Judged::new(state, beat, wall).service;
            beats.iter().filter_map(service).collect::<Vec<_>>()
        });
        let Some((&service, others)) = services.split_first() else { return SetWord::Unknown };
        if others.iter().any(|other| *other != service) {
            return SetWord::Unknown;
        }
        let mut memory = self.memory.lock();
        if memory.led.is_none() {
            return SetWord::Unknown;
        }
        let now = memory.awake.now();
        let is_kept = memory.sets.keep(id, beats.into(), service, now);
        if is_kept { SetWord::Kept(service) } else { SetWord::Unknown }
    }

    /// Hears all that were made of a set, or none.
    fn hear_set(&self, backend: &dyn Replica, id: BeatSetId, made: &[u8]) -> SetWord {
        let found = {
            let mut memory = self.memory.lock();
            let now = memory.awake.now();
            memory.sets.find(id, now)
        };
        let Some((beats, service)) = found else { return SetWord::Unknown };
        let again = |(place, beat): (usize, &Beat)| is_made(made, place).then_some(*beat);
        let beats: Vec<Beat> = beats.iter().enumerate().filter_map(again).collect();
        let wall = (self.clock)();
        let judged = look(backend, |state| {
            let as_before = |beat: &Beat| {
                let judged = Judged::new(state, beat, wall);
                let is_heard = judged.service == Some(service) && judged.heard.is_some();
                (is_heard && !has_news(state, beat)).then_some(judged)
            };
            beats.iter().map(as_before).collect::<Option<Vec<_>>>()
        });
        let Some(mut judged) = judged else { return SetWord::Differs };
        let mut memory = self.memory.lock();
        if memory.led.is_none() {
            return SetWord::Unknown;
        }
        let now = memory.awake.now();
        // The answer to some of them may have to wait, which depends on when they were heard before.
        if beats.iter().any(|beat| memory.tasks.suspect(beat.scope.job, now).is_some()) {
            return SetWord::Differs;
        }
        memory.hear(&beats, &mut judged);
        SetWord::Same
    }

    pub(super) fn forget_idle_sets(&self) {
        let mut memory = self.memory.lock();
        let now = memory.awake.now();
        memory.sets.forget_idle(now);
    }
}

/// Whether a heartbeat has something to be noted.
fn has_news(state: &State, beat: &Beat) -> bool {
    state.interval_to_note(beat.scope, beat.task, beat.incarnation, beat.interval()).is_some()
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;
    use tripod_state::Scope;
    use tripod_state::ids::{Incarnation, JobId, TaskId};

    use super::*;
    use crate::awake::Awake;
    use crate::pulse::Sign;

    const SERVICE: ServiceIncarnation = ServiceIncarnation(5);

    fn id(session: u32, count: u32) -> BeatSetId {
        let mut drawn = [0; 16];
        drawn[..4].copy_from_slice(&session.to_le_bytes());
        BeatSetId { session: BeatSession(drawn), digest: 7, count }
    }

    fn beats(count: u32) -> Arc<[Beat]> {
        let scope = Scope { job: JobId(1), service: None };
        let beat = |task: u32| Beat {
            scope,
            task: TaskId(task.cast_signed()),
            incarnation: Incarnation(1),
            sign: Sign::Beat { interval: None },
        };
        (0..count).map(beat).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_set_is_found_by_session_digest_and_count_together() {
        let (mut sets, now) = (BeatSets::default(), Awake::default().now());
        assert!(sets.keep(id(1, 3), beats(3), SERVICE, now));
        assert_eq!(
            sets.find(id(1, 3), now).map(|(beats, service)| (beats.len(), service)),
            Some((3, SERVICE))
        );
        assert!(sets.find(id(2, 3), now).is_none(), "another session");
        assert!(sets.find(id(1, 2), now).is_none(), "another count");
        assert!(sets.find(BeatSetId { digest: 8, ..id(1, 3) }, now).is_none(), "another digest");
        assert!(sets.keep(id(1, 2), beats(2), SERVICE, now));
        assert!(sets.find(id(1, 3), now).is_none(), "a session has one set");
        assert_eq!(sets.bytes, bytes_of(&beats(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn there_are_as_many_sets_as_there_may_be_until_some_are_idle() {
        let (mut sets, awake) = (BeatSets::default(), Awake::default());
        let many = u32::try_from(SETS_MAX).unwrap();
        let none = beats(0);
        for session in 0..many {
            assert!(sets.keep(id(session, 0), Arc::clone(&none), SERVICE, awake.now()));
        }
        assert!(!sets.keep(id(many, 0), Arc::clone(&none), SERVICE, awake.now()));
        assert!(sets.keep(id(0, 0), Arc::clone(&none), SERVICE, awake.now()), "in place of its own");
        advance(std::time::Duration::from_millis(IDLE.0 / 2)).await;
        assert!(sets.find(id(3, 0), awake.now()).is_some());
        advance(std::time::Duration::from_millis(IDLE.0 / 2)).await;
        sets.forget_idle(awake.now());
        assert!(sets.find(id(3, 0), awake.now()).is_some(), "it was used");
        assert!(sets.keep(id(many, 0), none, SERVICE, awake.now()));
        assert_eq!(sets.sets.len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn long_sets_take_no_more_bytes_than_there_are() {
        let (mut sets, now) = (BeatSets::default(), Awake::default().now());
        let (long, count) = (beats(1024), 1024);
        let fit = u32::try_from(SETS_BYTES_MAX / bytes_of(&long)).unwrap();
        for session in 0..fit {
            assert!(sets.keep(id(session, count), Arc::clone(&long), SERVICE, now));
        }
        assert!(!sets.keep(id(fit, count), long, SERVICE, now));
        sets.clear();
        assert_eq!((sets.bytes, sets.sets.len()), (0, 0));
    }
}
