//! The asking side of heartbeats: collects this node's beats and asks the leader about them in
//! batches, and holds an answer while the leader suspects another task of the job. Heartbeats never
//! touch the log.

mod beat;
mod conversation;
mod linger;
mod set;
mod set_wire;
mod sets;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tripod_port::{Timings, TimingsView};
use tripod_state::ids::{DurationMs, FeatureLevel, LogIndex, ServiceIncarnation, TimeMs};
use tripod_state::task::Beat as Opinion;
use tripod_state::{Answer, Command, Reply};

use crate::backend::{Replica, look};
use crate::calls::Calls;
use crate::clock::Clock;
use crate::hub::Hub;
use crate::liveness::Batches;
use crate::outage::Outage;
use crate::submit::Submitter;

use conversation::Beats;

pub(crate) use beat::{Beat, Sign};
pub use set::{BEATS_OF_A_SET_MAX, BeatSession, BeatSetId, SetBeat, SetWord};
pub(crate) use set::{SetQuestion, SetTold, is_made};
pub(crate) use wire::{Told, decode_beats, encode_verdicts};

/// From this feature level on every member takes [`Sign`]s for what they are.
const SIGNS_SINCE: FeatureLevel = FeatureLevel(6);
/// When a beat is answered from this node's own state for want of a leader, in percent of the job's
/// heartbeat timeout. The client gives up, and ends its process, at 50.
const PATIENCE_PERCENT: u32 = 40;
/// Between two attempts of a beat whose follow-up could not be submitted.
const PAUSE: Duration = Duration::from_millis(50);
/// How long the answer to a beat waits at most for its interval to be noted. The next beat tells it again.
const NOTE_PATIENCE: Duration = Duration::from_secs(1);

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
struct BeatVerdict {
    reply: Reply,
    suspicion: Option<Suspicion>,
}

/// Answers heartbeats on this node.
pub(crate) struct Pulse {
    backend: Arc<dyn Replica>,
    submitter: Arc<Submitter>,
    hub: Arc<Hub>,
    calls: Arc<Calls>,
    clock: Clock,
    asking: Batches<Beats>,
    sets: Batches<sets::Sets>,
    beats: AtomicU64,
    handling: Timings,
}

/// What a node has counted of heartbeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BeatCounts {
    /// Those that came to it, by themselves or as one of a set.
    pub beats: u64,
    /// From a heartbeat's coming by itself to the word of the leader; not how long its answer was held after that.
    pub handling: TimingsView,
}

impl Pulse {
    /// Starts the tasks that ask the leader; they end with the pulse.
    pub(crate) fn start(
        backend: Arc<dyn Replica>,
        submitter: Arc<Submitter>,
        hub: Arc<Hub>,
        calls: Arc<Calls>,
        clock: Clock,
    ) -> Self {
        let asking = Batches::start(Beats::new(Arc::clone(&backend)));
        let sets = Batches::start(sets::Sets::new(Arc::clone(&backend)));
        let (beats, handling) = (AtomicU64::new(0), Timings::default());
        Self { backend, submitter, hub, calls, clock, asking, sets, beats, handling }
    }

    /// Answers one beat: by the leader's word, or by this node's own state when there is none in time.
    /// Under a suspicion it lingers, so that the caller hears at once if it comes true.
    pub(crate) async fn beat(&self, beat: Beat) -> Result<Reply, Outage> {
        let arrived = Instant::now();
        // A job that this node does not know yet has no other answer than the leader's.
        let timeout = self.timeout(&beat);
        let patience = timeout.map_or(Duration::MAX, |timeout| timeout * PATIENCE_PERCENT / 100);
        self.beats.fetch_add(1, Ordering::Relaxed);
        let told = self.told_within(beat, patience).await?;
        self.handling.record(arrived.elapsed());
        if told.reply.is_ok() {
            self.note_interval(&beat, patience.saturating_sub(arrived.elapsed())).await;
        }
        match (timeout, told.suspicion) {
            (Some(timeout), Some(suspicion)) => {
                self.linger(beat, told.reply, suspicion, arrived, timeout).await
            }
            _ => Ok(told.reply),
        }
    }

    /// What has been counted.
    pub(crate) fn counts(&self) -> BeatCounts {
        BeatCounts { beats: self.beats.load(Ordering::Relaxed), handling: self.handling.view() }
    }

    pub(crate) fn now(&self) -> TimeMs {
        (self.clock)()
    }

    /// The leader's word, or after `patience` that of this node's own state.
    async fn told_within(&self, beat: Beat, patience: Duration) -> Result<BeatVerdict, Outage> {
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
    async fn ask_until_answered(&self, beat: Beat) -> Result<BeatVerdict, Outage> {
        loop {
            match self.ask(beat).await {
                Ok(told) => return Ok(told),
                Err(Outage::Stopping) => {
                    return self.alive_here(beat).map(BeatVerdict::from).ok_or(Outage::Stopping);
                }
                Err(outage) => {
                    tracing::debug!(%outage, "heartbeat is asked again");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn ask(&self, beat: Beat) -> Result<BeatVerdict, Outage> {
        let index = match self.asking.ask(beat).await? {
            Verdict::Alive { service, suspicion } => {
                return Ok(BeatVerdict { reply: alive(service), suspicion });
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

    /// Tells the leader what it is to know of a task until that has sent its first heartbeat. Gives whether to tell it
    /// again.
    pub(crate) async fn tell(&self, beat: Beat) -> bool {
        let is_end = matches!(beat.sign, Sign::Gone { .. });
        // To a leader of an earlier build it would be a heartbeat.
        let is_early = look(self.backend.as_ref(), |state| state.level() < SIGNS_SINCE);
        if is_early {
            return !is_end;
        }
        match self.asking.ask(beat).await {
            Ok(Verdict::Alive { .. }) => !is_end,
            // Of an end: whoever was asked does not lead yet, or the task is no more.
            Ok(Verdict::Look(_)) => is_end && self.alive_here(beat).is_some(),
            Err(_) => true,
        }
    }

    /// Has everybody know how rarely a task sends heartbeats, if that is news and matters. Takes no longer than `limit`.
    async fn note_interval(&self, beat: &Beat, limit: Duration) {
        let Beat { scope, task, incarnation, .. } = *beat;
        let told = beat.interval();
        let (command, silence) = look(self.backend.as_ref(), |state| {
            let command = state.interval_to_note(scope, task, incarnation, told);
            (command, state.silence(scope.job, task, incarnation, told))
        });
        let (Some(command), Some(silence)) = (command, silence) else { return };
        let noting = self.submitter.submit(Command::Task(command));
        match tokio::time::timeout(limit.min(NOTE_PATIENCE), noting).await {
            Ok(Ok(applied)) if applied.reply.is_ok() => {
                if silence.tolerated_ms > silence.own_ms {
                    tracing::warn!(
                        job = scope.job.0,
                        task = task.0,
                        heartbeat_timeout_ms = silence.own_ms.0,
                        tolerated_ms = silence.tolerated_ms.0,
                        "a program sends heartbeats too rarely for its job's heartbeat timeout; the job waits as long as \
                         the program expects it to. Give both the same timeout"
                    );
                }
            }
            _ => tracing::debug!(
                job = scope.job.0,
                task = task.0,
                "the interval of heartbeats is not noted yet"
            ),
        }
    }

    /// The heartbeat timeout of a beat's job, if this node knows the job, or that of its client, if that is shorter.
    fn timeout(&self, beat: &Beat) -> Option<Duration> {
        let own = look(self.backend.as_ref(), |state| state.heartbeat_timeout(beat.scope.job))?;
        let clients = beat.interval().map_or(own, |interval| DurationMs(interval.0.saturating_mul(2)));
        Some(Duration::from_millis(own.min(clients).0))
    }
}

impl From<Reply> for BeatVerdict {
    fn from(reply: Reply) -> Self {
        Self { reply, suspicion: None }
    }
}

fn alive(service: ServiceIncarnation) -> Reply {
    Ok(Answer::Registered { service })
}
