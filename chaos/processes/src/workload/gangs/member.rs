//! One task of a gang.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tonic::{Response, Status};
use tripod_calls::Way;

use super::super::dialect::Dialect;
use super::super::registers::{got, text};
use super::super::setting::Setting;
use super::super::wire::{Attempt, Wire};
use super::beats::Beats;
use super::life::{Life, Meeting};
use super::refusal::{barrier_refused, refusal};
use super::{Cue, LIMIT, REGISTER_TIMEOUT_MS, Story, TASKS, WATCH_PATIENCE, cue};
use tripod_checkers::history::{
    Barrier, Call, ClientId, Generation, Incarnation, Job, Key, Outcome, Pending, Reply, TaskId, Value,
};

const BARRIER: &str = "step";
/// Of a barrier that everybody means to reach.
const BARRIER_TIMEOUT_MS: u64 = 90_000;
/// Of a barrier that somebody misses.
const MISSED_TIMEOUT_MS: u64 = 3_000;
/// How long one attempt of a call that waits for others may take.
const WAIT_LIMIT: Duration = Duration::from_secs(10);
/// How long a call is repeated until it is answered.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a key is waited for. A write whose outcome is unknown may never come.
const KEY_PATIENCE: Duration = Duration::from_secs(12);
const AGAIN_PAUSE: Duration = Duration::from_millis(100);
const REST_MAX_MS: u64 = 300;
/// Of a hundred keys, how many are written so late that others wait for them.
const LATE_PERCENT: u32 = 15;
const LATE_MAX_MS: u64 = 3_000;

pub(super) struct Member {
    setting: Setting,
    id: ClientId,
    life: Life,
    story: Story,
    random: StdRng,
    wire: Wire,
    cues: watch::Sender<Cue>,
}

impl Member {
    pub(super) fn new(
        setting: &Setting,
        (job, task): (&Job, TaskId),
        dialect: Dialect,
        story: Story,
        cues: watch::Sender<Cue>,
    ) -> Self {
        let id = setting.client_id();
        let mut random = setting.random(id);
        let wire = Wire::new(setting, &mut random);
        let incarnation = Incarnation(random.random_range(1..u64::MAX));
        let life = Life { dialect, job: job.clone(), task, incarnation, service: 0 };
        Self { setting: setting.clone(), id, life, story, random, wire, cues }
    }

    pub(super) async fn run(mut self) {
        let last = self.life.task.0 == i32::try_from(TASKS).unwrap_or(i32::MAX) - 1;
        if self.register().await {
            self.live(last).await;
        }
        // Who is silent is still looked at; in every other case nobody need wait for the last task any more.
        let silent = *self.cues.borrow() == Cue::Silent;
        if last && !silent {
            cue(&self.cues, Cue::Over);
        }
    }

    async fn live(&mut self, last: bool) {
        let mut beating = self.beats();
        let together = self.work().await;
        match self.story {
            _ if !together => {}
            Story::Works { .. } => {
                self.leave().await;
            }
            Story::Misses { rounds } => {
                if !last {
                    self.arrive(rounds, MISSED_TIMEOUT_MS).await;
                }
                self.leave().await;
            }
            Story::FallsSilent { .. } if last => {
                end(beating).await;
                cue(&self.cues, Cue::Silent);
                return;
            }
            Story::ComesBack { .. } if last => return self.come_back(beating).await,
            Story::IsRevived { .. } if last => return self.be_revived(beating).await,
            // The others beat until they are told of it, or until nothing is to be told.
            Story::FallsSilent { .. } | Story::ComesBack { .. } | Story::IsRevived { .. } => {
                let mut cues = self.cues.subscribe();
                let over = cues.wait_for(|cue| *cue == Cue::Over);
                tokio::select! {
                    _ = &mut beating => return,
                    _ = tokio::time::timeout(PATIENCE, over) => {}
                }
            }
        }
        end(beating).await;
    }

    /// Leaves, and comes again as another life; then the first one beats.
    async fn come_back(&mut self, beating: JoinHandle<()>) {
        end(beating).await;
        if self.leave().await {
            self.begin_another_life().await;
        }
    }

    /// Falls silent until it is declared dead, and comes again as another life; then the first one beats.
    async fn be_revived(&mut self, beating: JoinHandle<()>) {
        end(beating).await;
        cue(&self.cues, Cue::Silent);
        let mut cues = self.cues.subscribe();
        let decided = cues.wait_for(|cue| *cue >= Cue::Dead);
        let dead = matches!(tokio::time::timeout(WATCH_PATIENCE * 2, decided).await,
            Ok(Ok(cue)) if *cue == Cue::Dead);
        if dead {
            self.begin_another_life().await;
        }
    }

    async fn begin_another_life(&mut self) {
        let first = self.life.clone();
        self.life.incarnation = Incarnation(self.random.random_range(1..u64::MAX));
        if self.register().await {
            let beating = self.beats();
            Beats::of(&self.setting, first).haunt().await;
            end(beating).await;
        }
    }

    fn beats(&self) -> JoinHandle<()> {
        tokio::spawn(Beats::of(&self.setting, self.life.clone()).run())
    }

    /// All rounds; whether every barrier of them was passed.
    async fn work(&mut self) -> bool {
        for round in 0..self.story.rounds() {
            self.setting.rest(&mut self.random, REST_MAX_MS).await;
            if self.random.random_range(0..100) < LATE_PERCENT {
                self.setting.rest(&mut self.random, LATE_MAX_MS).await;
            }
            self.write(round).await;
            self.read(round).await;
            if !self.arrive(round, BARRIER_TIMEOUT_MS).await {
                return false;
            }
        }
        true
    }

    async fn register(&mut self) -> bool {
        let Life { job, task, incarnation, .. } = self.life.clone();
        let pending = self.invoke(Call::Register { job, task, incarnation });
        let limit = Duration::from_millis(REGISTER_TIMEOUT_MS);
        let (attempt, before) = self.until_answered(limit, |way, life| life.register(way)).await;
        if let Attempt::Answer(service) = &attempt {
            self.life.service = *service;
        }
        let outcome = attempt.outcome(|_| Ok(Reply::Done), |status| refusal(status, &self.life));
        let outcome = honest(outcome, before);
        let registered = outcome.acknowledged();
        self.setting.complete(pending, outcome);
        registered
    }

    /// Whether the cluster has said what came of it.
    async fn leave(&mut self) -> bool {
        let Life { job, task, incarnation, .. } = self.life.clone();
        let pending = self.invoke(Call::Leave { job, task, incarnation });
        let (attempt, before) = self.until_answered(PATIENCE, |way, life| life.leave(way)).await;
        let answered = matches!(attempt, Attempt::Answer(()) | Attempt::Refused(_));
        let outcome = attempt.outcome(|()| Ok(Reply::Done), |status| refusal(status, &self.life));
        self.setting.complete(pending, honest(outcome, before));
        answered
    }

    /// Whether the barrier let this task pass.
    async fn arrive(&mut self, counter: i64, timeout_ms: u64) -> bool {
        let members: Vec<TaskId> = (0..).take(TASKS as usize).map(TaskId).collect();
        let call = Call::Arrive {
            job: self.life.job.clone(),
            barrier: Barrier::from(BARRIER),
            generation: Generation(counter),
            task: self.life.task,
            members,
            timeout_ms,
        };
        let pending = self.invoke(call);
        let at = Meeting { name: BARRIER, counter, timeout_ms };
        let (attempt, before) = self.until_answered(PATIENCE, |way, life| life.arrive(way, at)).await;
        let outcome = match attempt {
            Attempt::Refused(status) => barrier_refused(&status, counter),
            other => other.outcome(|()| Ok(Reply::Passed), |_| None),
        };
        let outcome = honest(outcome, before);
        let passed = matches!(outcome, Outcome::Ok(Reply::Passed));
        self.setting.complete(pending, outcome);
        passed
    }

    async fn write(&mut self, round: i64) {
        let (key, value) = (key(round, self.life.task), Value(self.setting.fresh()));
        let name = Key::from(format!("{}/{key}", self.life.job));
        let pending = self.invoke(Call::Write { key: name, value });
        // Once: an overwrite that is repeated without a stamp could undo what came between.
        let life = self.life.clone();
        let attempt = self.wire.attempt(LIMIT, |way| life.write(way, key, text(value))).await;
        let outcome = attempt.outcome(|()| Ok(Reply::Written { version: None, index: None }), |_| None);
        self.setting.complete(pending, outcome);
    }

    /// Reads what the next task wrote in this round; waits for it, if the call is one that waits.
    async fn read(&mut self, round: i64) {
        let next = TaskId((self.life.task.0 + 1) % i32::try_from(TASKS).unwrap_or(1));
        let key = key(round, next);
        let pending = self.invoke(Call::Read { key: Key::from(format!("{}/{key}", self.life.job)) });
        let attempt = if self.random.random_bool(0.5) {
            let wait = |way, life: Life| life.wait_for(way, key.clone());
            self.until_answered(KEY_PATIENCE, wait).await.0
        } else {
            let life = self.life.clone();
            self.wire.attempt(LIMIT, |way| life.look_up(way, key)).await
        };
        self.setting.complete(pending, got(attempt, |value| value));
    }

    fn invoke(&self, call: Call) -> Pending {
        self.setting.invoke(self.id, call).by_node(self.wire.node())
    }

    /// Repeats a call that may be repeated until the domain has answered it, or `patience` is over. Also whether
    /// an earlier attempt may have been executed: a refusal then says nothing of that one.
    async fn until_answered<T, F>(
        &mut self,
        patience: Duration,
        call: impl Fn(Way, Life) -> F,
    ) -> (Attempt<T>, bool)
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let deadline = Instant::now() + patience;
        let mut maybe = None;
        loop {
            let life = self.life.clone();
            match self.wire.attempt(WAIT_LIMIT.min(patience), |way| call(way, life)).await {
                Attempt::Unknown(why) => maybe = Some(why),
                Attempt::NotExecuted(why) if Instant::now() >= deadline => {
                    return (maybe.map_or(Attempt::NotExecuted(why), Attempt::Unknown), true);
                }
                Attempt::NotExecuted(_) => {}
                answered => return (answered, maybe.is_some()),
            }
            if Instant::now() >= deadline {
                return (Attempt::Unknown(maybe.unwrap_or_default()), true);
            }
            tokio::time::sleep(AGAIN_PAUSE).await;
        }
    }
}

fn key(round: i64, task: TaskId) -> String {
    format!("round/{round}/{task}")
}

/// Nobody looks at a task that has gone before its last beat is over.
async fn end(beating: JoinHandle<()>) {
    beating.abort();
    let _ = beating.await;
}

/// A refusal of the last attempt does not say what became of an earlier one that was not answered.
fn honest(outcome: Outcome, earlier_attempt: bool) -> Outcome {
    match outcome {
        Outcome::Fail(why) if earlier_attempt => Outcome::Unknown(why),
        outcome => outcome,
    }
}
