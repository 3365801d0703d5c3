//! The life of a simulated process: when it ends, when it stands still, and what becomes of what it is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::{oneshot, watch};
use tonic::Status;

use crate::network::End;

/// As the process itself knows it. Clones are the same life.
#[derive(Clone)]
pub(super) struct Life {
    end: End,
    paused: watch::Receiver<bool>,
    rough: Rough,
    dice: Arc<Mutex<StdRng>>,
}

/// By these it is ended and paused from outside.
pub(super) struct Reins {
    end: Option<oneshot::Sender<()>>,
    paused: watch::Sender<bool>,
}

/// Whether orders are lost, late or given twice at present. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Rough(Arc<AtomicBool>);

/// What becomes of an order that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Once,
    Twice,
}

impl Rough {
    pub(super) fn set(&self, rough: bool) {
        self.0.store(rough, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A life that begins.
pub(super) fn begin(seed: u64, rough: &Rough) -> (Life, Reins) {
    let (end, ended) = oneshot::channel();
    let (pause, paused) = watch::channel(false);
    let end_of = async { drop(ended.await) }.boxed().shared();
    let dice = Arc::new(Mutex::new(StdRng::seed_from_u64(seed)));
    (Life { end: end_of, paused, rough: rough.clone(), dice }, Reins { end: Some(end), paused: pause })
}

impl Life {
    /// Resolves when the process ends.
    pub(super) fn end(&self) -> End {
        self.end.clone()
    }

    /// Waits while the process stands still.
    pub(super) async fn awake(&self) {
        // Who held the reins is gone only when everything ends.
        let _ = self.paused.clone().wait_for(|paused| !paused).await;
    }

    /// Whether a store that is to fetch an object finds that it cannot have it.
    pub(super) fn refuses(&self) -> bool {
        self.rough.is_set() && self.dice.lock().random_ratio(1, 3)
    }

    /// After how long an order comes once more, if it does: a leader that was replaced has sent it, too.
    pub(super) fn comes_again(&self) -> Option<Duration> {
        let mut dice = self.dice.lock();
        (self.rough.is_set() && dice.random_ratio(1, 5))
            .then(|| Duration::from_millis(dice.random_range(300..6000)))
    }

    /// A message has come in. It may be late, come twice, or be lost: then nobody answers.
    pub(super) async fn receive(&self) -> Result<Fate, Status> {
        if self.rough.is_set() {
            let (luck, late_ms) = {
                let mut dice = self.dice.lock();
                (dice.random_range(0..1000), dice.random_range(1..400))
            };
            match luck {
                // Nothing is known of it before the sender's own patience ends.
                0..=4 => std::future::pending::<()>().await,
                5..=99 => tokio::time::sleep(Duration::from_millis(late_ms)).await,
                100..=159 => {
                    self.awake().await;
                    return Ok(Fate::Twice);
                }
                160..=189 => return Err(Status::unavailable("no time for this now")),
                _ => {}
            }
        }
        self.awake().await;
        Ok(Fate::Once)
    }
}

impl Reins {
    /// Ends the process at once, as `kill -9` does.
    pub(super) fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.end.take().map(|end| end.send(()));
    }

    pub(super) fn set_paused(&self, paused: bool) {
        self.paused.send_replace(paused);
    }
}
