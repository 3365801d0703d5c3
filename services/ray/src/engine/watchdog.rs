//! Gives up peers that are silent for too long, and workers that do not end what they were to end.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};
use tripod_gateway::Deafness;
use tripod_state::State;
use tripod_state::ray::view::Watched;
use tripod_state::ray::{Decision, Peer, Ray, Role};

use super::leader_term::LeaderTerm;
use super::prober;
use super::time::LogTime;

/// How often those who are watched are compared with the state, at least.
const REFRESH_EVERY: Duration = Duration::from_secs(1);

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
pub(super) async fn run(led: LeaderTerm) {
    let mut ticks = tokio::time::interval(led.patience.tick());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut probers = Probers::default();
    let mut deafness = Deafness::default();
    let liveness = led.memory.liveness();
    // Everybody who is there now has the time that an election takes.
    let mut first = true;
    let mut refresh = Instant::now();
    let mut time = LogTime::default();
    loop {
        ticks.tick().await;
        if Instant::now() >= refresh {
            let look = |state: &State, ray: &Ray| (kept(ray), ray.overdue(time.now(state.now_ms())));
            let Some((kept, overdue)) = led.look_around(look).await else { return };
            if !overdue.is_empty() {
                tracing::info!(
                    job = led.job.0,
                    runs = ?overdue,
                    "tasks that were cancelled did not end in time; their workers are given up"
                );
                led.decide(Decision::Overdue { runs: overdue }).await;
            }
            let peers: Vec<_> = kept.iter().map(|kept| (kept.watched.peer, kept.is_regular())).collect();
            let first = std::mem::take(&mut first).then(|| led.patience.after_election(peers.len()));
            liveness.watch(led.job, &peers, first);
            probers.keep(&led, &kept);
            refresh = Instant::now() + REFRESH_EVERY.min(led.patience.ttl_min / 3);
        }
        let (paused, silence) = liveness.tick(led.job);
        if let Some(pause) = paused {
            tracing::warn!(job = led.job.0, ?pause, "this process did not run; nobody is given up for that");
        }
        let peers = deafness.given_up(liveness, led.job, led.patience, silence);
        if peers.is_empty() {
            continue;
        }
        tracing::info!(job = led.job.0, ?peers, "peers were silent for too long");
        led.decide(Decision::Expire { peers }).await;
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

/// The tasks that ask peers which do not beat.
#[derive(Default)]
struct Probers {
    tasks: JoinSet<()>,
    running: BTreeMap<Peer, AbortHandle>,
}

impl Probers {
    /// Asks exactly those who need it.
    fn keep(&mut self, led: &LeaderTerm, kept: &[Kept]) {
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
                self.tasks.spawn(prober::run(led.clone(), watched.peer, watched.address.clone()))
            });
        }
        while self.tasks.try_join_next().is_some() {}
    }
}
