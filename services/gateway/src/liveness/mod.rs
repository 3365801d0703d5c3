//! Who lives, by the leader's clock, the same for every kind of peer that sends signs of life: nodes tell the leader in
//! batches ([`Batches`]), it remembers who was heard when ([`Liveness`]), and gives nobody up while it may be deaf itself
//! ([`Deafness`]). Nothing of it is replicated: a front end says what a peer is, how long one may be silent ([`Rules`])
//! and what to propose when one is; apply decides.
//!
//! Tasks of the coordination service have more than that (deadlines in a heap for a hundred thousand, suspects for which
//! answers wait, first heartbeats), and timers of their own in `keeper`. They share batches, grace and the clock that
//! leaves out pauses.

mod batches;
mod deafness;
mod rules;

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tripod_state::ids::{DurationMs, JobId};

use crate::awake::{Awake, Moment};

pub use batches::{Batches, Conversation};
pub use deafness::Deafness;
pub use rules::Rules;

/// The leader's memory of who was heard when, by job. Empty on nodes that do not lead. `N` is what a peer says of itself
/// beside living.
#[derive(Debug)]
pub struct Liveness<R: Rules, N> {
    jobs: Mutex<HashMap<JobId, Watched<R, N>>>,
}

/// The peers of one job that are watched.
#[derive(Debug)]
struct Watched<R: Rules, N> {
    peers: HashMap<R::Peer, Entry<N>>,
    awake: Awake,
    rules: R,
}

/// One peer.
#[derive(Debug, Clone, Copy)]
struct Entry<N> {
    /// Until when it may be silent.
    deadline: Moment,
    /// It promised to beat, or is asked for signs of life; else it is only heard by chance.
    regular: bool,
    note: Option<N>,
}

/// What the leader says to a sign of life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BeatAnswer {
    /// The peer lives by the leader's word. If not, only the state can tell.
    pub watched: bool,
    /// How long it may be silent, as it is told.
    pub ttl_ms: u64,
}

/// Who is overdue, and among how many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silence<P> {
    pub overdue: Vec<P>,
    /// Peers that are to be heard regularly.
    pub regular: usize,
}

impl<R: Rules, N> Default for Liveness<R, N> {
    fn default() -> Self {
        Self { jobs: Mutex::default() }
    }
}

impl<P> Default for Silence<P> {
    fn default() -> Self {
        Self { overdue: Vec::new(), regular: 0 }
    }
}

impl<R: Rules, N: Copy> Liveness<R, N> {
    /// Forgets all of a job's peers and watches nobody of it until some are added.
    pub fn begin(&self, job: JobId, rules: R) {
        let watched = Watched { peers: HashMap::new(), awake: Awake::default(), rules };
        self.jobs.lock().insert(job, watched);
    }

    /// Forgets the job.
    pub fn end(&self, job: JobId) {
        self.jobs.lock().remove(&job);
    }

    /// Watches exactly these from now on; who is new may be silent for so long. The second of each pair says
    /// whether it is to be heard regularly.
    pub fn watch(&self, job: JobId, peers: &[(R::Peer, bool)], first: Option<Duration>) {
        let mut jobs = self.jobs.lock();
        let Some(watched) = jobs.get_mut(&job) else { return };
        let now = watched.awake.now();
        let before = std::mem::take(&mut watched.peers);
        for (peer, regular) in peers {
            let fresh = || {
                let allowed = watched.rules.allowance(*peer, *regular, peers.len());
                let deadline = now.plus(in_ms(first.map_or(allowed, |first| first.max(allowed))));
                Entry { deadline, regular: *regular, note: None }
            };
            watched.peers.insert(*peer, before.get(peer).copied().unwrap_or_else(fresh));
        }
    }

    /// A sign of life, with what the peer says of itself.
    pub fn hear(&self, job: JobId, peer: R::Peer, note: Option<N>) -> BeatAnswer {
        let mut jobs = self.jobs.lock();
        let Some(watched) = jobs.get_mut(&job) else {
            return BeatAnswer { watched: false, ttl_ms: R::default().ttl_ms(peer, 1) };
        };
        let peers = watched.peers.len();
        let ttl_ms = watched.rules.ttl_ms(peer, peers);
        let now = watched.awake.now();
        let Some(entry) = watched.peers.get_mut(&peer) else { return BeatAnswer { watched: false, ttl_ms } };
        // After an election there is more time than usual, and a beat must not take it away.
        entry.deadline =
            entry.deadline.max(now.plus(in_ms(watched.rules.allowance(peer, entry.regular, peers))));
        entry.note = note.or(entry.note);
        BeatAnswer { watched: true, ttl_ms }
    }

    /// Notices a pause of this process, and tells who has been silent for too long.
    pub fn tick(&self, job: JobId) -> (Option<Duration>, Silence<R::Peer>) {
        let mut jobs = self.jobs.lock();
        let Some(watched) = jobs.get_mut(&job) else { return (None, Silence::default()) };
        let paused = watched.awake.tick();
        let now = watched.awake.now();
        let overdue = watched.peers.iter().filter(|(_, entry)| entry.deadline < now);
        let mut overdue: Vec<R::Peer> = overdue.map(|(peer, _)| *peer).collect();
        overdue.sort_unstable();
        let regular = watched.peers.values().filter(|entry| entry.regular).count();
        (paused, Silence { overdue, regular })
    }

    /// Gives these peers so much more time.
    pub fn put_off(&self, job: JobId, peers: &[R::Peer], by: Duration) {
        let mut jobs = self.jobs.lock();
        let Some(watched) = jobs.get_mut(&job) else { return };
        let deadline = watched.awake.now().plus(in_ms(by));
        for peer in peers {
            if let Some(entry) = watched.peers.get_mut(peer) {
                entry.deadline = entry.deadline.max(deadline);
            }
        }
    }

    /// What peers of a job said of themselves, of those that are watched and said something.
    pub fn notes(&self, job: JobId) -> Vec<(R::Peer, N)> {
        let jobs = self.jobs.lock();
        let Some(watched) = jobs.get(&job) else { return Vec::new() };
        watched.peers.iter().filter_map(|(peer, entry)| Some((*peer, entry.note?))).collect()
    }
}

/// As the time that a process was awake is counted.
fn in_ms(length: Duration) -> DurationMs {
    DurationMs(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const JOB: JobId = JobId(1);
    const ONE: u64 = 1;
    const NOBODY: [u64; 0] = [];

    /// Three seconds and three of grace; the rest is for ever.
    #[derive(Debug, Clone, Copy, Default)]
    pub(crate) struct Short;

    impl Rules for Short {
        type Peer = u64;

        fn ttl(&self, _peers: usize) -> Duration {
            Duration::from_secs(3)
        }

        fn ttl_ms(&self, _peer: u64, _peers: usize) -> u64 {
            3000
        }

        fn allowance(&self, _peer: u64, regular: bool, _peers: usize) -> Duration {
            Duration::from_secs(if regular { 6 } else { 3600 })
        }
    }

    async fn advance(liveness: &Liveness<Short, u8>, seconds: u64) -> Vec<u64> {
        let mut overdue = Vec::new();
        for _ in 0..seconds * 10 {
            tokio::time::advance(Duration::from_millis(100)).await;
            overdue = liveness.tick(JOB).1.overdue;
        }
        overdue
    }

    fn begun(first: Option<Duration>) -> Liveness<Short, u8> {
        let liveness = Liveness::default();
        liveness.begin(JOB, Short);
        liveness.watch(JOB, &[(ONE, true)], first);
        liveness
    }

    #[tokio::test(start_paused = true)]
    async fn silence_beyond_the_ttl_and_its_grace_is_noticed() {
        let liveness = begun(None);
        assert_eq!(advance(&liveness, 5).await, NOBODY);
        assert!(liveness.hear(JOB, ONE, None).watched);
        assert_eq!(advance(&liveness, 5).await, NOBODY);
        assert_eq!(advance(&liveness, 2).await, [ONE]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_beat_after_an_election_does_not_shorten_the_time() {
        let liveness = begun(Some(Duration::from_secs(30)));
        assert!(liveness.hear(JOB, ONE, None).watched);
        assert_eq!(advance(&liveness, 29).await, NOBODY);
        assert_eq!(advance(&liveness, 2).await, [ONE]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_of_this_process_counts_for_nobody() {
        let liveness = begun(None);
        tokio::time::advance(Duration::from_secs(60)).await;
        let (paused, silence) = liveness.tick(JOB);
        assert_eq!(paused, Some(Duration::from_secs(60)));
        assert_eq!(silence.overdue, NOBODY);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_not_watched_is_told_apart_and_who_is_dropped_is_forgotten() {
        let liveness = Liveness::<Short, u8>::default();
        let hear = || liveness.hear(JOB, ONE, Some(7));
        assert!(!hear().watched && hear().ttl_ms >= 3000);
        liveness.begin(JOB, Short);
        assert!(!hear().watched);
        liveness.watch(JOB, &[(ONE, true)], None);
        assert!(hear().watched);
        assert_eq!(liveness.notes(JOB), [(ONE, 7)]);
        liveness.hear(JOB, ONE, None);
        assert_eq!(liveness.notes(JOB), [(ONE, 7)], "what it said last stays");
        liveness.watch(JOB, &[], None);
        assert!(!hear().watched);
        assert_eq!(liveness.notes(JOB), []);
        liveness.end(JOB);
        assert_eq!(liveness.tick(JOB), (None, Silence::default()));
    }
}
