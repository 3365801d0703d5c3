//! The asking side of heartbeats: collects this node's beats and asks the leader about them in
//! batches. Heartbeats never touch the log.

mod batch;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tripod_state::ids::{Incarnation, JobId, LogIndex, ServiceIncarnation, TaskId, TimeMs};
use tripod_state::task::Beat as Opinion;
use tripod_state::{Answer, Command, Reply, Scope, State};

use crate::backend::{Backend, look};
use crate::clock::Clock;
use crate::outage::Outage;
use crate::submit::Submitter;

pub(crate) use batch::QUEUE_MAX;
pub(crate) use wire::{decode_beats, encode_verdicts};

/// When a beat is answered from this node's own state for want of a leader, in percent of the job's
/// heartbeat timeout. The client gives up, and ends its process, at 50.
const PATIENCE_PERCENT: u32 = 40;
/// Between two attempts of a beat whose follow-up could not be submitted.
const PAUSE: Duration = Duration::from_millis(50);

/// One heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Beat {
    pub(crate) scope: Scope,
    pub(crate) task: TaskId,
    pub(crate) incarnation: Incarnation,
}

impl Beat {
    /// What the state says to this beat at `wall` time. The log runs on the clocks of its leaders, which
    /// may be ahead of this machine's.
    pub(crate) fn opinion(&self, state: &State, wall: TimeMs) -> Opinion {
        state.heartbeat(self.scope, self.task, self.incarnation, wall.max(state.now_ms()))
    }
}

/// What the leader says to a beat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Answer with this.
    Alive(ServiceIncarnation),
    /// Not alive by the state at this index.
    Look(LogIndex),
}

/// A beat that waits for its verdict.
pub(crate) struct Asked {
    beat: Beat,
    verdict: oneshot::Sender<Verdict>,
}

/// Answers heartbeats on this node.
pub(crate) struct Pulse {
    backend: Arc<dyn Backend>,
    submitter: Arc<Submitter>,
    clock: Clock,
    queue: mpsc::Sender<Asked>,
}

impl Pulse {
    /// Starts the task that asks the leader; it ends with the pulse.
    pub(crate) fn start(backend: Arc<dyn Backend>, submitter: Arc<Submitter>, clock: Clock) -> Self {
        let (queue, asked) = mpsc::channel(QUEUE_MAX);
        tokio::spawn(batch::run(Arc::clone(&backend), asked));
        Self { backend, submitter, clock, queue }
    }

    /// Answers one beat: by the leader's word, or by this node's own state when there is none in time.
    pub(crate) async fn beat(&self, beat: Beat) -> Result<Reply, Outage> {
        let mut asking = std::pin::pin!(self.ask_until_answered(beat));
        let patience = self.patience(beat.scope.job);
        if let Ok(reply) = tokio::time::timeout(patience, &mut asking).await {
            return reply;
        }
        match self.alive_here(beat) {
            Some(alive) => Ok(alive),
            // This node may be behind, so its own "no" counts for nothing; the leader may yet come.
            None => asking.await,
        }
    }

    /// The verdict, however long it takes. Ends without one only when this node stops.
    async fn ask_until_answered(&self, beat: Beat) -> Result<Reply, Outage> {
        loop {
            match self.ask(beat).await {
                Ok(reply) => return Ok(reply),
                Err(Outage::Stopping) => return self.alive_here(beat).ok_or(Outage::Stopping),
                Err(outage) => {
                    tracing::debug!(%outage, "heartbeat is asked again");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn ask(&self, beat: Beat) -> Result<Reply, Outage> {
        let (verdict, told) = oneshot::channel();
        self.queue.send(Asked { beat, verdict }).await.map_err(|_| Outage::Stopping)?;
        let index = match told.await.map_err(|_| Outage::Stopping)? {
            Verdict::Alive(service) => return Ok(alive(service)),
            Verdict::Look(index) => index,
        };
        self.backend.wait_applied(index).await.map_err(|_| Outage::Stopping)?;
        match self.opinion(beat) {
            Opinion::Recorded(service) | Opinion::Tolerated(service) => Ok(alive(service)),
            Opinion::Refused(fault) => Ok(Err(fault)),
            Opinion::Propose(command) => {
                let applied = self.submitter.submit(Command::Task(command)).await?;
                Ok(applied.reply)
            }
        }
    }

    fn opinion(&self, beat: Beat) -> Opinion {
        let wall = (self.clock)();
        look(self.backend.as_ref(), |state| beat.opinion(state, wall))
    }

    fn alive_here(&self, beat: Beat) -> Option<Reply> {
        match self.opinion(beat) {
            Opinion::Recorded(service) | Opinion::Tolerated(service) => Some(alive(service)),
            Opinion::Refused(_) | Opinion::Propose(_) => None,
        }
    }

    /// How long to wait for the leader's word. A job that this node does not know yet has no other.
    fn patience(&self, job: JobId) -> Duration {
        match look(self.backend.as_ref(), |state| state.heartbeat_timeout(job)) {
            Some(timeout) => Duration::from_millis(timeout.0) * PATIENCE_PERCENT / 100,
            None => Duration::MAX,
        }
    }
}

fn alive(service: ServiceIncarnation) -> Reply {
    Ok(Answer::Registered { service })
}
