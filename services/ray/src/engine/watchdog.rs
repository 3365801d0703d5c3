//! Gives up peers that are silent for too long.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};
use tripod_state::ids::JobId;
use tripod_state::ray::view::Watched;
use tripod_state::ray::{Decision, Peer, Ray, Role};

use super::Patience;
use super::prober;
use super::reign::Reign;
use crate::pulse::{Heard, Silence};

/// How often those who are watched are compared with the state, at least.
const REFRESH_EVERY: Duration = Duration::from_secs(1);
/// With fewer peers, more than half of them may well be one machine.
const CROWD: usize = 4;

/// A peer, and how it is heard.
struct Kept {
    watched: Watched,
    is_driver: bool,
}

impl Kept {
    /// A driver of 2016 has no service that could be asked.
    fn is_regular(&self) -> bool {
        self.watched.extended || !self.is_driver
    }

    fn is_probed(&self) -> bool {
        !self.watched.extended && !self.is_driver
    }
}

/// Runs until the job has no scheduler any more.
pub(super) async fn run(reign: Reign) {
    let mut ticks = tokio::time::interval(reign.patience.tick());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut probers = Probers::default();
    let mut guard = Guard::default();
    // Everybody who is there now has the time that an election takes.
    let mut first = true;
    let mut refresh = Instant::now();
    loop {
        ticks.tick().await;
        if Instant::now() >= refresh {
            let Some(kept) = reign.look(kept).await else { return };
            let peers: Vec<_> = kept.iter().map(|kept| (kept.watched.peer, kept.is_regular())).collect();
            let first = std::mem::take(&mut first).then(|| reign.patience.after_election(peers.len()));
            reign.heard.watch(reign.job, &peers, first);
            probers.keep(&reign, &kept);
            refresh = Instant::now() + REFRESH_EVERY.min(reign.patience.ttl_min / 3);
        }
        let (paused, silence) = reign.heard.tick(reign.job);
        if let Some(pause) = paused {
            tracing::warn!(
                job = reign.job.0,
                ?pause,
                "this process did not run; nobody is given up for that"
            );
        }
        let peers = guard.given_up(&reign.heard, reign.job, reign.patience, silence);
        if peers.is_empty() {
            continue;
        }
        tracing::info!(job = reign.job.0, ?peers, "peers were silent for too long");
        reign.decide(Decision::Expire { peers }).await;
        refresh = Instant::now();
    }
}

fn kept(ray: &Ray) -> Vec<Kept> {
    let is_driver = |peer: Peer| match peer {
        Peer::Worker(worker) => ray.worker(worker).is_some_and(|worker| worker.role == Role::Driver),
        Peer::Store(_) => false,
    };
    let watched = ray.watched().into_iter();
    watched.map(|watched| Kept { is_driver: is_driver(watched.peer), watched }).collect()
}

/// Whether so much silence is rather this node's own deafness. It counts once: who is still silent after another
/// time to live is given up.
#[derive(Debug, Default)]
struct Guard {
    /// When it last waited, and for how many.
    waited: Option<Instant>,
    /// Peers that fell silent lately.
    lately: Vec<(Instant, Peer)>,
}

impl Guard {
    /// Of those who are overdue, whom to give up now: all of them or nobody.
    fn given_up(&mut self, heard: &Heard, job: JobId, patience: Patience, silence: Silence) -> Vec<Peer> {
        let ttl = patience.ttl(silence.regular);
        if silence.overdue.is_empty() || !self.suspects_itself(&silence, ttl) {
            return silence.overdue;
        }
        tracing::warn!(
            job = job.0,
            silent_lately = self.lately.len(),
            silent_now = silence.overdue.len(),
            watched = silence.regular,
            "more than half of all peers fell silent within one time to live, so this node may be the one that is \
             cut off; it waits"
        );
        heard.put_off(job, &silence.overdue, ttl);
        Vec::new()
    }

    fn suspects_itself(&mut self, silence: &Silence, ttl: Duration) -> bool {
        let now = Instant::now();
        self.lately.retain(|(at, _)| now - *at < ttl);
        for peer in &silence.overdue {
            if !self.lately.iter().any(|(_, known)| known == peer) {
                self.lately.push((now, *peer));
            }
        }
        let many = silence.regular >= CROWD && self.lately.len() * 2 > silence.regular;
        // Long enough for the peers that were put off to be looked at once more.
        let waited = self.waited.is_some_and(|at| now - at < ttl * 3);
        if !many || waited {
            return false;
        }
        self.waited = Some(now);
        true
    }
}

/// The tasks that ask peers which do not beat.
#[derive(Default)]
struct Probers {
    tasks: JoinSet<()>,
    running: BTreeMap<Peer, AbortHandle>,
}

impl Probers {
    /// Asks exactly those who need it.
    fn keep(&mut self, reign: &Reign, kept: &[Kept]) {
        let probed = || kept.iter().filter(|kept| kept.is_probed());
        self.running.retain(|peer, task| {
            let stays = probed().any(|kept| kept.watched.peer == *peer);
            if !stays {
                task.abort();
            }
            stays
        });
        for Kept { watched, .. } in probed() {
            self.running.entry(watched.peer).or_insert_with(|| {
                self.tasks.spawn(prober::run(reign.clone(), watched.peer, watched.address.clone()))
            });
        }
        while self.tasks.try_join_next().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use tripod_state::ray::ids::WorkerId;

    use super::*;
    use crate::pulse::Beat;

    fn silence(overdue: &[u64], regular: usize) -> Silence {
        Silence { overdue: overdue.iter().map(|id| Peer::Worker(WorkerId(*id))).collect(), regular }
    }

    #[tokio::test(start_paused = true)]
    async fn more_than_half_in_one_ttl_is_suspected_once() {
        let (mut guard, ttl) = (Guard::default(), Duration::from_secs(3));
        assert!(!guard.suspects_itself(&silence(&[1, 2], 5), ttl), "two of five");
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(guard.suspects_itself(&silence(&[3], 5), ttl), "three of five within one ttl");
        tokio::time::advance(ttl).await;
        assert!(!guard.suspects_itself(&silence(&[1, 2, 3], 5), ttl), "it has waited");
    }

    /// Beats of all workers stay in this node's queues for a while, and then they are heard again; or they are not.
    #[tokio::test(start_paused = true)]
    async fn f23_nobody_is_given_up_for_a_silence_of_more_than_half_that_ends_within_one_ttl() {
        const JOB: JobId = JobId(1);
        for comes_back in [true, false] {
            let (heard, mut guard, patience) = (Heard::default(), Guard::default(), Patience::default());
            let workers: Vec<Peer> = (0..6).map(|id| Peer::Worker(WorkerId(id))).collect();
            let watched: Vec<(Peer, bool)> = workers.iter().map(|peer| (*peer, true)).collect();
            heard.begin(JOB, patience);
            heard.watch(JOB, &watched, Some(patience.after_election(6)));
            let mut given_up = Vec::new();
            for tick in 0..400 {
                tokio::time::advance(Duration::from_millis(100)).await;
                let (_, silence) = heard.tick(JOB);
                given_up.extend(guard.given_up(&heard, JOB, patience, silence));
                let waits = guard.waited.is_some();
                for (place, peer) in workers.iter().enumerate() {
                    // Two of six are heard all the time.
                    if place < 2 || (comes_back && waits && tick % 10 == 0) {
                        heard.hear(&Beat { job: JOB, peer: *peer, usage: None });
                    }
                }
                heard.watch(
                    JOB,
                    &watched.iter().filter(|(peer, _)| !given_up.contains(peer)).copied().collect::<Vec<_>>(),
                    None,
                );
            }
            assert!(guard.waited.is_some(), "it suspected itself");
            let silent = if comes_back { &[][..] } else { &workers[2..] };
            assert_eq!(given_up, silent);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_that_is_spread_over_time_or_of_few_is_believed() {
        let (mut guard, ttl) = (Guard::default(), Duration::from_secs(3));
        for id in 0..5 {
            assert!(!guard.suspects_itself(&silence(&[id], 5), ttl));
            tokio::time::advance(Duration::from_secs(2)).await;
        }
        assert!(!guard.suspects_itself(&silence(&[1, 2, 3], 3), ttl), "one machine, perhaps");
    }
}
