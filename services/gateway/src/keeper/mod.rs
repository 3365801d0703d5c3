//! The leader's memory: who was last heard when, and which barriers are open. Nothing here is
//! replicated and nothing here decides: a timer that runs out *proposes* an expiry, and apply checks
//! whether it still holds; a task that missed a beat is a *suspect*, for which answers may wait. A new
//! leader starts every timer anew, so a change of leaders can only give a task more time, never less.

mod barriers;
mod meetings;
mod run;
mod sets;
mod suspects;
mod tally;
mod tasks;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;
use tripod_raft::AskHandler;
use tripod_state::ids::{DurationMs, LogIndex, NodeId, ServiceIncarnation, Term, TimeMs};
use tripod_state::task::{Beat as Opinion, Silence};
use tripod_state::{Effect, State};

use self::barriers::BarrierTimers;
use self::meetings::Meetings;
use self::sets::BeatSets;
use self::tasks::{Connected, TaskTimers};
use crate::ages;
use crate::awake::{Awake, Moment};
use crate::backend::{Future, Replica, look};
use crate::clock::{Clock, percent};
use crate::leader_clock;
use crate::node_events::NodeEvents;
use crate::options::Options;
use crate::peers::{Channel, Peers};
use crate::pulse::{Beat, Sign, Suspicion, Told, Verdict, decode_beats, encode_verdicts};

pub use self::meetings::BarrierEnding;
pub(crate) use self::tally::KeeperTally;
pub use self::tally::{GangCounts, WhyLost};

/// What must lie between two beats of a task, in percent of its job's heartbeat timeout, for the
/// second one to be told of a suspicion. A client gives up on a beat as soon as the next one would be
/// due, so one that beats faster than the job asks has less patience too, and is not to be held.
const RHYTHM_PERCENT: u64 = 48;

/// Keeps the timers of the jobs while this node leads.
pub(crate) struct Keeper {
    /// Set once, after the node has started; weak, because the node holds this keeper.
    backend: OnceLock<Weak<dyn Replica>>,
    clock: Clock,
    options: Options,
    /// Answers what is no batch of heartbeats.
    peers: Arc<Peers>,
    /// Whether there is a `Memory::led`, for a glance without the lock.
    leading: AtomicBool,
    tally: KeeperTally,
    /// What this node has seen itself.
    events: Arc<NodeEvents>,
    memory: Mutex<Memory>,
}

/// What a leader remembers. Nearly empty on every other node.
struct Memory {
    /// The term in which this node leads, while it does.
    led: Option<Term>,
    /// The leader that this node names, its term, and since when; on every node.
    named: Option<((NodeId, Term), Instant)>,
    awake: Awake,
    /// The last pause of this process while it led, and when it ended.
    paused: Option<(Duration, Instant)>,
    tasks: TaskTimers,
    barriers: BarrierTimers,
    meetings: Meetings,
    /// Heartbeats of agents' clients that are told in a word.
    sets: BeatSets,
    /// Tasks that connected since the last tick, which looks up their time-outs.
    fresh: Vec<(Connected, Moment)>,
}

impl Keeper {
    pub(crate) fn new(options: Options, clock: Clock) -> Arc<Self> {
        let memory = Memory {
            led: None,
            named: None,
            awake: Awake::default(),
            paused: None,
            tasks: TaskTimers::default(),
            barriers: BarrierTimers::default(),
            meetings: Meetings::default(),
            sets: BeatSets::default(),
            fresh: Vec::new(),
        };
        Arc::new(Self {
            backend: OnceLock::new(),
            events: Arc::new(NodeEvents::new(Arc::clone(&clock))),
            clock,
            options,
            peers: Arc::default(),
            leading: AtomicBool::new(false),
            tally: KeeperTally::default(),
            memory: Mutex::new(memory),
        })
    }

    /// The last time that this process led and did not run, if there was one: how long, and how long ago it ended.
    pub(crate) fn last_pause(&self) -> Option<(Duration, Duration)> {
        self.memory.lock().paused.map(|(length, ended)| (length, ended.elapsed()))
    }

    pub(crate) fn events(&self) -> &Arc<NodeEvents> {
        &self.events
    }

    pub(crate) fn peers(&self) -> Arc<Peers> {
        Arc::clone(&self.peers)
    }

    /// Starts the timers; they end with the backend.
    pub(crate) fn start(self: &Arc<Self>, backend: &Arc<dyn Replica>) {
        let first = self.backend.set(Arc::downgrade(backend)).is_ok();
        assert!(first, "a keeper serves one backend");
        let keeper = Arc::downgrade(self);
        let answer = move |question| match keeper.upgrade() {
            Some(keeper) => keeper.ages(question),
            None => Err("the node is stopping".to_owned()),
        };
        self.peers.handle(Channel::AGES, Arc::new(answer));
        let clock = Arc::clone(&self.clock);
        self.peers.handle(Channel::CLOCK, Arc::new(move |_| Ok(leader_clock::answer(clock()))));
        tokio::spawn(run::run(Arc::clone(self), backend.leadership()));
    }

    /// How long ago each task of a job was heard, while this node leads.
    fn ages(&self, question: Bytes) -> Result<Bytes, String> {
        let ages::Question { job, tasks } = ages::Question::decode(question)?;
        let memory = self.memory.lock();
        if memory.led.is_none() {
            return Err("this node does not lead".to_owned());
        }
        let heard = memory.tasks.ages(job, tasks, memory.awake.now());
        drop(memory);
        Ok(ages::encode(heard.into_iter()))
    }

    pub(crate) fn tally(&self) -> &KeeperTally {
        &self.tally
    }

    /// How long the leader has led that this node names, as this node knows: within a tick.
    pub(crate) fn led_for(&self) -> Option<Duration> {
        self.memory.lock().named.map(|(_, since)| since.elapsed())
    }

    /// How many tasks have missed a heartbeat and were not given up yet; `None` unless this node leads.
    pub(crate) fn late(&self) -> Option<u64> {
        let memory = self.memory.lock();
        memory.led.map(|_| memory.tasks.overdue())
    }

    /// Arms the timers that applied commands ask for.
    pub(crate) fn effects(&self, effects: &[Effect]) {
        if !self.leading.load(Ordering::Acquire) {
            return;
        }
        let mut memory = self.memory.lock();
        if memory.led.is_some() {
            for effect in effects {
                memory.note(effect);
            }
        }
    }

    /// Answers a batch of beats from this node's state, and remembers when it heard them.
    fn answer(&self, backend: &dyn Replica, batch: Bytes) -> Result<Bytes, String> {
        let Told { beats, sets } = decode_beats(batch)?;
        let wall = (self.clock)();
        let mut judged = look(backend, |state| {
            let judge = |beat: &Beat| Judged::new(state, beat, wall);
            beats.iter().map(judge).collect::<Vec<_>>()
        });
        // Read after the look, so that a node that has applied this much sees what was seen here.
        let applied = backend.applied_index();
        let suspects = self.memory.lock().hear(&beats, &mut judged);
        let verdicts = judged.iter().zip(suspects).map(|(judged, within)| judged.verdict(within, applied));
        let words = sets.iter().map(|set| self.word(backend, set));
        Ok(encode_verdicts(verdicts, words))
    }
}

/// A beat in the light of the state.
struct Judged {
    service: Option<ServiceIncarnation>,
    /// How long the task may be silent, if the beat counts as a sign of life.
    heard: Option<Silence>,
}

impl Beat {
    fn connected(&self) -> Connected {
        Connected { job: self.scope.job, task: self.task, incarnation: self.incarnation }
    }
}

impl Judged {
    fn new(state: &State, beat: &Beat, wall: TimeMs) -> Self {
        match beat.opinion(state, wall) {
            Opinion::Recorded(service) => {
                let Beat { scope, task, incarnation, .. } = *beat;
                let heard = state.silence(scope.job, task, incarnation, beat.interval());
                Self { service: Some(service), heard }
            }
            Opinion::Tolerated(service) => Self { service: Some(service), heard: None },
            Opinion::Refused(_) | Opinion::Propose(_) => Self { service: None, heard: None },
        }
    }

    /// `within`: how soon another task of the job may be given up; `applied`: the index of the state
    /// that was asked.
    fn verdict(&self, within: Option<DurationMs>, applied: LogIndex) -> Verdict {
        match self.service {
            Some(service) => {
                let suspicion = within.map(|within| Suspicion { within, seen: applied });
                Verdict::Alive { service, suspicion }
            }
            None => Verdict::Look(applied),
        }
    }
}

impl Memory {
    /// Remembers who gave a sign of life. Gives for each beat how soon another task of its job may be
    /// given up, if the caller should wait for that.
    fn hear(&mut self, beats: &[Beat], judged: &mut [Judged]) -> Vec<Option<DurationMs>> {
        if self.led.is_none() {
            for (beat, judged) in beats.iter().zip(judged) {
                // It has no timer yet that this would shorten: it is to be told again.
                if matches!(beat.sign, Sign::Gone { .. }) {
                    judged.service = None;
                }
            }
            return vec![None; beats.len()];
        }
        let now = self.awake.now();
        // All are heard before any is told, so that nobody is told of one who is in the same batch.
        let hear = |(beat, judged): (&Beat, &mut Judged)| {
            let who = beat.connected();
            let silence = judged.heard;
            match beat.sign {
                Sign::Beat { .. } => {
                    let silence = silence?;
                    let before = self.tasks.heard(who, now, silence.tolerated_ms)?;
                    (before.plus(percent(silence.own_ms, RHYTHM_PERCENT)) <= now).then_some(beat.scope.job)
                }
                Sign::Present { connection } => {
                    // What is over is told like what is not alive: it is not to be told again.
                    if !silence.is_some_and(|silence| self.tasks.present(who, now, connection, silence)) {
                        judged.service = None;
                    }
                    None
                }
                Sign::Gone { connection } => {
                    self.tasks.gone(who, now, connection, silence?);
                    None
                }
            }
        };
        let patient: Vec<_> = beats.iter().zip(judged.iter_mut()).map(hear).collect();
        patient.into_iter().map(|job| self.tasks.suspect(job?, now)).collect()
    }

    fn note(&mut self, effect: &Effect) {
        match effect {
            Effect::TaskConnected { job, task, incarnation } => {
                let who = Connected { job: *job, task: *task, incarnation: *incarnation };
                self.fresh.push((who, self.awake.now()));
            }
            Effect::BarrierOpened { job, barrier, counter, timeout } => {
                self.barriers.arm(*job, barrier.clone(), *counter, self.awake.now().plus(*timeout));
                self.meetings.opened(*job, barrier.clone(), *counter);
            }
            Effect::ProtocolsMixed { job, protocol } => {
                tracing::warn!(job = job.0, ?protocol, "tasks of one job speak different protocols");
            }
            Effect::BarrierChanged { job, barrier } => self.meetings.changed(*job, barrier),
            Effect::JobDeleted { job } => {
                self.tasks.forget_job(*job);
                self.meetings.forget_job(*job);
            }
            Effect::JobCreated { .. }
            | Effect::KeyWritten { .. }
            | Effect::TasksChanged { .. }
            | Effect::PollsChanged { .. }
            | Effect::AliveAnswered { .. }
            | Effect::MemberChanged
            | Effect::TokensChanged
            | Effect::DomainChanged { .. } => {}
        }
    }
}

impl AskHandler for Keeper {
    fn ask(&self, question: Bytes) -> Future<Result<Bytes, String>> {
        if let Some(answer) = self.peers.answer(&question) {
            return Box::pin(std::future::ready(answer));
        }
        let answer = match self.backend.get().and_then(Weak::upgrade) {
            Some(backend) => self.answer(backend.as_ref(), question),
            None => Err("the node is starting".into()),
        };
        Box::pin(std::future::ready(answer))
    }

    fn ask_here(&self, question: Bytes) -> Future<Result<Bytes, String>> {
        let answer = self.peers.answer_here(&question);
        Box::pin(std::future::ready(answer))
    }
}
