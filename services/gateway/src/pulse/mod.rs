//! The asking side of heartbeats: collects this node's beats and asks the leader about them in
//! batches, and holds an answer while the leader suspects another task of the job. Heartbeats never
//! touch the log.

mod batch;
mod linger;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tripod_state::ids::{DurationMs, Incarnation, JobId, LogIndex, ServiceIncarnation, TaskId, TimeMs};
use tripod_state::task::Beat as Opinion;
use tripod_state::{Answer, Command, Reply, Scope, State};

use crate::backend::{Backend, look};
use crate::calls::Calls;
use crate::clock::Clock;
use crate::hub::Hub;
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
    /// Answer with this; under a suspicion, not at once.
    Alive { service: ServiceIncarnation, suspicion: Option<Suspicion> },
    /// Not alive by the state at this index.
    Look(LogIndex),
}

/// The leader's word that another task of the job has missed a beat and may be given up soon, which a
/// job that holds no polls can tell the others only in the replies to their beats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Suspicion {
    /// When it will be given up, unless it is heard before.
    pub(crate) within: DurationMs,
    /// The index of the state that held the asking task for alive. From there on this node's own state
    /// refuses it only for a newer reason.
    pub(crate) seen: LogIndex,
}

/// What came of asking the leader about a beat.
struct Told {
    reply: Reply,
    suspicion: Option<Suspicion>,
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
    hub: Arc<Hub>,
    calls: Arc<Calls>,
    clock: Clock,
    queue: mpsc::Sender<Asked>,
}

impl Pulse {
    /// Starts the task that asks the leader; it ends with the pulse.
    pub(crate) fn start(
        backend: Arc<dyn Backend>,
        submitter: Arc<Submitter>,
        hub: Arc<Hub>,
        calls: Arc<Calls>,
        clock: Clock,
    ) -> Self {
        let (queue, asked) = mpsc::channel(QUEUE_MAX);
        tokio::spawn(batch::run(Arc::clone(&backend), asked));
        Self { backend, submitter, hub, calls, clock, queue }
    }

    /// Answers one beat: by the leader's word, or by this node's own state when there is none in time.
    /// Under a suspicion it lingers, so that the caller hears at once if it comes true.
    pub(crate) async fn beat(&self, beat: Beat) -> Result<Reply, Outage> {
        let arrived = Instant::now();
        // A job that this node does not know yet has no other answer than the leader's.
        let timeout = self.timeout(beat.scope.job);
        let patience = timeout.map_or(Duration::MAX, |timeout| timeout * PATIENCE_PERCENT / 100);
        let told = self.told_within(beat, patience).await?;
        match (timeout, told.suspicion) {
            (Some(timeout), Some(suspicion)) => {
                self.linger(beat, told.reply, suspicion, arrived, timeout).await
            }
            _ => Ok(told.reply),
        }
    }

    /// The leader's word, or after `patience` that of this node's own state.
    async fn told_within(&self, beat: Beat, patience: Duration) -> Result<Told, Outage> {
        let mut asking = std::pin::pin!(self.ask_until_answered(beat));
        if let Ok(told) = tokio::time::timeout(patience, &mut asking).await {
            return told;
        }
        match self.alive_here(beat) {
            Some(alive) => Ok(alive.into()),
            // This node may be behind, so its own "no" counts for nothing; the leader may yet come.
            None => asking.await,
        }
    }

    /// The verdict, however long it takes. Ends without one only when this node stops.
    async fn ask_until_answered(&self, beat: Beat) -> Result<Told, Outage> {
        loop {
            match self.ask(beat).await {
                Ok(told) => return Ok(told),
                Err(Outage::Stopping) => {
                    return self.alive_here(beat).map(Told::from).ok_or(Outage::Stopping);
                }
                Err(outage) => {
                    tracing::debug!(%outage, "heartbeat is asked again");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn ask(&self, beat: Beat) -> Result<Told, Outage> {
        let (verdict, told) = oneshot::channel();
        self.queue.send(Asked { beat, verdict }).await.map_err(|_| Outage::Stopping)?;
        let index = match told.await.map_err(|_| Outage::Stopping)? {
            Verdict::Alive { service, suspicion } => {
                return Ok(Told { reply: alive(service), suspicion });
            }
            Verdict::Look(index) => index,
        };
        self.backend.wait_applied(index).await.map_err(|_| Outage::Stopping)?;
        match self.opinion(beat) {
            Opinion::Recorded(service) | Opinion::Tolerated(service) => Ok(alive(service).into()),
            Opinion::Refused(fault) => Ok(Err(fault).into()),
            Opinion::Propose(command) => {
                let applied = self.submitter.submit(Command::Task(command)).await?;
                Ok(applied.reply.into())
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

    /// The heartbeat timeout of a job, if this node knows the job.
    fn timeout(&self, job: JobId) -> Option<Duration> {
        let timeout = look(self.backend.as_ref(), |state| state.heartbeat_timeout(job))?;
        Some(Duration::from_millis(timeout.0))
    }
}

impl From<Reply> for Told {
    fn from(reply: Reply) -> Self {
        Self { reply, suspicion: None }
    }
}

fn alive(service: ServiceIncarnation) -> Reply {
    Ok(Answer::Registered { service })
}
