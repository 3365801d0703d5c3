//! When an agent's tasks beat, and what is seen of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tonic::Status;

use super::agent::PlayedAgent;
use super::beats;

/// Beats for all tasks of all agents until it is dropped.
#[derive(Debug)]
pub struct Heart {
    beating: Vec<JoinHandle<()>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Whether those that end now are among what is seen.
    is_looking: AtomicBool,
    seen: Mutex<BeatsSeen>,
}

/// What became of heartbeats.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BeatsSeen {
    /// How long each one that was taken waited, in seconds.
    pub waits_s: Vec<f64>,
    /// Those for which a client would end its process.
    pub refused: u64,
    /// What the first one of these was told.
    pub first_refusal: Option<String>,
}

impl Heart {
    /// Each task beats in every such interval. Agents spread over it, as the starts of real hosts do. Tasks of one agent beat
    /// together, as those do that have registered together; with `apart` they spread over it, too.
    #[must_use]
    pub fn start(agents: &[Arc<PlayedAgent>], every: Duration, apart: bool) -> Self {
        let shared = Arc::<Shared>::default();
        let all = agents.len().max(1) as f64;
        let beat = |agent: &Arc<PlayedAgent>| {
            let (agent, shared) = (Arc::clone(agent), Arc::clone(&shared));
            let offset = every.mul_f64(f64::from(agent.number()) / all);
            tokio::spawn(async move {
                let first = Instant::now() + offset;
                let tasks = (0..agent.tasks()).map(|task| {
                    let part = if apart { task as f64 / agent.tasks() as f64 } else { 0.0 };
                    beat_on(&agent, task, interval_at(first + every.mul_f64(part), every), &shared)
                });
                tokio::join!(beats::tell(Arc::clone(&agent), every), join_all(tasks));
            })
        };
        let beating = agents.iter().map(beat).collect();
        Self { beating, shared }
    }

    /// From now on heartbeats are looked at. Those that were refused before are among what is seen.
    pub fn look(&self) {
        self.shared.is_looking.store(true, Ordering::Relaxed);
    }

    /// What was seen. Nothing more is, until the next [`Self::look`].
    #[must_use]
    pub fn seen(&self) -> BeatsSeen {
        self.shared.is_looking.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        self.beating.iter().for_each(JoinHandle::abort);
    }
}

/// Beats for one task, for ever.
async fn beat_on(agent: &PlayedAgent, task: usize, mut ticks: Interval, shared: &Shared) {
    let every = ticks.period();
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        shared.note(agent.beat(task, every).await);
    }
}

impl Shared {
    fn note(&self, wait: Result<f64, Status>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match wait {
            Ok(wait_s) if self.is_looking.load(Ordering::Relaxed) => seen.waits_s.push(wait_s),
            Ok(_) => {}
            Err(status) => {
                seen.refused += 1;
                seen.first_refusal
                    .get_or_insert_with(|| format!("{:?}: {}", status.code(), status.message()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_seen_whenever_they_come_and_waits_only_while_somebody_looks() {
        let heart = Heart { beating: Vec::new(), shared: Arc::default() };
        for wait in [Ok(1.0), Err(Status::aborted("dead")), Err(Status::aborted("later"))] {
            heart.shared.note(wait);
        }
        heart.look();
        heart.shared.note(Ok(2.0));
        let seen = heart.seen();
        assert_eq!((seen.waits_s, seen.refused), (vec![2.0], 2));
        assert_eq!(seen.first_refusal.as_deref(), Some("Aborted: dead"));
        heart.shared.note(Ok(3.0));
        assert_eq!(heart.seen(), BeatsSeen::default());
    }
}
