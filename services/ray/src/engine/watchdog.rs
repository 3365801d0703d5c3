//! Gives up peers that are silent for too long.

use std::collections::HashMap;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};
use tripod_state::ray::view::Watched;
use tripod_state::ray::{Decision, Peer, Ray, Role};

use super::prober;
use super::reign::Reign;
use crate::pulse::Silence;

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
        if silence.overdue.is_empty() {
            continue;
        }
        let peers = silence.overdue.clone();
        let ttl = reign.patience.ttl(silence.regular);
        if guard.suspects_itself(&silence, ttl) {
            tracing::warn!(
                job = reign.job.0,
                silent = peers.len(),
                watched = silence.regular,
                "more than half of all peers are silent, so this node may be the one that is cut off; it waits"
            );
            reign.heard.put_off(reign.job, &peers, ttl);
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
    running: HashMap<Peer, AbortHandle>,
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
