//! The leader's memory of who was heard when. Nothing of it is replicated: a new leader gives everybody time anew.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use prost::Message as _;
use tripod_gateway::{Awake, Moment};
use tripod_state::ids::{DurationMs, JobId};
use tripod_state::ray::ids::StoreId;
use tripod_state::ray::{self, Peer};

use super::unfit::Unfits;
use super::wire::{Report, StoreUsage, Verdicts};
use super::{Beat, Told, Unfit, Usage};
use crate::engine::Patience;

/// As the time that a process was awake is counted.
fn in_ms(length: Duration) -> DurationMs {
    DurationMs(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
}

/// Everybody who is watched, by job. Empty on nodes that do not lead.
#[derive(Default)]
pub(crate) struct Heard {
    jobs: Mutex<HashMap<JobId, Watched>>,
}

/// The peers of one job that are watched.
#[derive(Default)]
struct Watched {
    peers: HashMap<Peer, Entry>,
    unfits: Unfits,
    awake: Awake,
    patience: Patience,
}

/// One peer.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Until when it may be silent.
    deadline: Moment,
    /// It promised to beat, or is asked for signs of life; else it is only heard by chance.
    regular: bool,
    usage: Option<Usage>,
}

/// How many peers are overdue, of how many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Silence {
    pub(crate) overdue: Vec<Peer>,
    /// Of those who are to be heard regularly.
    pub(crate) regular: usize,
}

impl Heard {
    /// Forgets all of a job's peers and watches nobody of it until some are added.
    pub(crate) fn begin(&self, job: JobId, patience: Patience) {
        let watched = Watched { patience, ..Watched::default() };
        self.jobs.lock().insert(job, watched);
    }

    pub(crate) fn end(&self, job: JobId) {
        self.jobs.lock().remove(&job);
    }

    /// Watches exactly these from now on; who is new may be silent for so long. The second of each pair says
    /// whether it is to be heard regularly.
    pub(crate) fn watch(&self, job: JobId, peers: &[(Peer, bool)], first: Option<Duration>) {
        let mut jobs = self.jobs.lock();
        let Some(watched) = jobs.get_mut(&job) else { return };
        let now = watched.awake.now();
        let before = std::mem::take(&mut watched.peers);
        for (peer, regular) in peers {
            let fresh = || {
                let allowed = watched.patience.allowance(*peer, *regular, peers.len());
                let deadline = now.plus(in_ms(first.map_or(allowed, |first| first.max(allowed))));
                Entry { deadline, regular: *regular, usage: None }
            };
            watched.peers.insert(*peer, before.get(peer).copied().unwrap_or_else(fresh));
        }
    }

    /// A sign of life.
    pub(crate) fn hear(&self, beat: &Beat) -> Told {
        let mut jobs = self.jobs.lock();
        let Some(watched) = jobs.get_mut(&beat.job) else {
            return Told { watched: false, ttl_ms: Patience::default().ttl_ms(beat.peer, 1) };
        };
        let peers = watched.peers.len();
        let ttl_ms = watched.patience.ttl_ms(beat.peer, peers);
        let now = watched.awake.now();
        let Some(entry) = watched.peers.get_mut(&beat.peer) else { return Told { watched: false, ttl_ms } };
        // After an election there is more time than usual, and a beat must not take it away.
        entry.deadline =
            entry.deadline.max(now.plus(in_ms(watched.patience.allowance(beat.peer, entry.regular, peers))));
        entry.usage = beat.usage.or(entry.usage);
        Told { watched: true, ttl_ms }
    }

    /// Notices a pause of this process, and tells who has been silent for too long.
    pub(crate) fn tick(&self, job: JobId) -> (Option<Duration>, Silence) {
        let mut jobs = self.jobs.lock();
        let Some(watched) = jobs.get_mut(&job) else { return (None, Silence::default()) };
        let paused = watched.awake.tick();
        let now = watched.awake.now();
        let overdue = watched.peers.iter().filter(|(_, entry)| entry.deadline < now);
        let mut overdue: Vec<Peer> = overdue.map(|(peer, _)| *peer).collect();
        overdue.sort_unstable();
        let regular = watched.peers.values().filter(|entry| entry.regular).count();
        (paused, Silence { overdue, regular })
    }

    /// Gives these peers so much more time.
    pub(crate) fn put_off(&self, job: JobId, peers: &[Peer], by: Duration) {
        let mut jobs = self.jobs.lock();
        let Some(watched) = jobs.get_mut(&job) else { return };
        let deadline = watched.awake.now().plus(in_ms(by));
        for peer in peers {
            if let Some(entry) = watched.peers.get_mut(peer) {
                entry.deadline = entry.deadline.max(deadline);
            }
        }
    }

    /// Answers another node's front end, or this one's.
    ///
    /// # Errors
    /// The bytes are no report.
    pub(crate) fn answer(&self, report: Bytes) -> Result<Bytes, String> {
        let report = Report::decode(report).map_err(|error| format!("signs of life: {error}"))?;
        let told = report.beats.into_iter().map(|beat| self.hear(&beat.into()).into()).collect();
        report.unfit.into_iter().for_each(|unfit| self.note_unfit(unfit.into()));
        let usage = report.usage_of.map(|job| self.usage(JobId(job))).unwrap_or_default();
        Ok(Verdicts { told, usage }.encode_to_vec().into())
    }

    /// An object cannot come to a store.
    fn note_unfit(&self, Unfit { job, object, store }: Unfit) {
        if let Some(watched) = self.jobs.lock().get_mut(&job) {
            watched.unfits.note(object, store);
        }
    }

    /// What cannot come to stores of a job.
    pub(crate) fn unfit(&self, job: JobId) -> Arc<ray::Unfit> {
        self.jobs.lock().get_mut(&job).map(|watched| watched.unfits.now()).unwrap_or_default()
    }

    fn usage(&self, job: JobId) -> Vec<StoreUsage> {
        let jobs = self.jobs.lock();
        let Some(watched) = jobs.get(&job) else { return Vec::new() };
        let told = watched.peers.iter().filter_map(|(peer, entry)| match (peer, entry.usage) {
            (Peer::Store(StoreId(store)), Some(usage)) => {
                Some(StoreUsage { store: *store, usage: usage.into() })
            }
            _ => None,
        });
        told.collect()
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ray::ids::WorkerId;

    use super::*;

    const JOB: JobId = JobId(1);
    const ONE: Peer = Peer::Worker(WorkerId(1));

    fn patience() -> Patience {
        Patience { ttl_min: Duration::from_secs(3), grace: Duration::from_secs(3), ..Patience::default() }
    }

    async fn advance(heard: &Heard, seconds: u64) -> Vec<Peer> {
        let mut overdue = Vec::new();
        for _ in 0..seconds * 10 {
            tokio::time::advance(Duration::from_millis(100)).await;
            overdue = heard.tick(JOB).1.overdue;
        }
        overdue
    }

    fn beat(heard: &Heard) -> Told {
        heard.hear(&Beat { job: JOB, peer: ONE, usage: None })
    }

    #[tokio::test(start_paused = true)]
    async fn silence_beyond_the_ttl_and_its_grace_is_noticed() {
        let heard = Heard::default();
        heard.begin(JOB, patience());
        heard.watch(JOB, &[(ONE, true)], None);
        assert_eq!(advance(&heard, 5).await, []);
        assert!(beat(&heard).watched);
        assert_eq!(advance(&heard, 5).await, []);
        assert_eq!(advance(&heard, 5).await, [ONE]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_beat_after_an_election_does_not_shorten_the_time() {
        let heard = Heard::default();
        heard.begin(JOB, patience());
        heard.watch(JOB, &[(ONE, true)], Some(Duration::from_secs(30)));
        assert!(beat(&heard).watched);
        assert_eq!(advance(&heard, 29).await, []);
        assert_eq!(advance(&heard, 2).await, [ONE]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_of_this_process_counts_for_nobody() {
        let heard = Heard::default();
        heard.begin(JOB, patience());
        heard.watch(JOB, &[(ONE, true)], None);
        tokio::time::advance(Duration::from_secs(60)).await;
        let (paused, silence) = heard.tick(JOB);
        assert_eq!(paused, Some(Duration::from_secs(60)));
        assert_eq!(silence.overdue, []);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_not_watched_is_told_apart_and_who_is_dropped_is_forgotten() {
        let heard = Heard::default();
        assert!(!beat(&heard).watched && beat(&heard).ttl_ms >= 3000);
        heard.begin(JOB, patience());
        assert!(!beat(&heard).watched);
        heard.watch(JOB, &[(ONE, true)], None);
        heard.watch(JOB, &[], None);
        assert!(!beat(&heard).watched);
        heard.end(JOB);
        assert_eq!(heard.tick(JOB), (None, Silence::default()));
    }
}
