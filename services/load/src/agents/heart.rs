//! Heartbeats of an agent's tasks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::agent::{PlayedAgent, Waits};

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
    /// Each task beats in every such interval; agents spread over it, as the starts of real hosts do.
    #[must_use]
    pub fn start(agents: &[Arc<PlayedAgent>], every: Duration) -> Self {
        let shared = Arc::<Shared>::default();
        let all = agents.len().max(1) as f64;
        let beat = |agent: &Arc<PlayedAgent>| {
            let (agent, shared) = (Arc::clone(agent), Arc::clone(&shared));
            let offset = every.mul_f64(f64::from(agent.number()) / all);
            tokio::spawn(async move {
                sleep(offset).await;
                let mut ticks = interval(every);
                ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                loop {
                    ticks.tick().await;
                    shared.note(agent.beat(every).await);
                }
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

impl Shared {
    fn note(&self, waits: Waits) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_looking = self.is_looking.load(Ordering::Relaxed);
        for wait in waits {
            match wait {
                Ok(wait_s) if is_looking => seen.waits_s.push(wait_s),
                Ok(_) => {}
                Err(status) => {
                    seen.refused += 1;
                    seen.first_refusal
                        .get_or_insert_with(|| format!("{:?}: {}", status.code(), status.message()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic::Status;

    use super::*;

    #[test]
    fn refusals_are_seen_whenever_they_come_and_waits_only_while_somebody_looks() {
        let heart = Heart { beating: Vec::new(), shared: Arc::default() };
        heart.shared.note(vec![Ok(1.0), Err(Status::aborted("dead")), Err(Status::aborted("later"))]);
        heart.look();
        heart.shared.note(vec![Ok(2.0)]);
        let seen = heart.seen();
        assert_eq!((seen.waits_s, seen.refused), (vec![2.0], 2));
        assert_eq!(seen.first_refusal.as_deref(), Some("Aborted: dead"));
        heart.shared.note(vec![Ok(3.0)]);
        assert_eq!(heart.seen(), BeatsSeen::default());
    }
}
