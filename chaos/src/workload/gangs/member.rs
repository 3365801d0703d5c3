//! One task of a gang.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};
use tripod_proto::metadata::JOB;
use tripod_proto::xla::coordination as n;
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient as DialectN;

use super::super::registers::{got, text};
use super::super::setting::Setting;
use super::super::wire::{Attempt, Wire};
use super::beats::Beats;
use super::refusal::{barrier_refused, refusal};
use super::{LIMIT, REGISTER_TIMEOUT_MS, Story, TASKS};
use crate::history::{
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
const AGAIN_PAUSE: Duration = Duration::from_millis(100);
const REST_MAX_MS: u64 = 300;

pub(super) struct Member {
    setting: Setting,
    id: ClientId,
    job: Job,
    task: TaskId,
    incarnation: Incarnation,
    service: u64,
    story: Story,
    random: StdRng,
    wire: Wire,
    /// Told when this task falls silent.
    quiet: watch::Sender<bool>,
}

impl Member {
    pub(super) fn new(
        setting: &Setting,
        job: &Job,
        task: TaskId,
        story: Story,
        quiet: watch::Sender<bool>,
    ) -> Self {
        let id = setting.client_id();
        let mut random = setting.random(id);
        let wire = Wire::new(setting, &mut random);
        let incarnation = Incarnation(random.random_range(1..u64::MAX));
        Self {
            setting: setting.clone(),
            id,
            job: job.clone(),
            task,
            incarnation,
            service: 0,
            story,
            random,
            wire,
            quiet,
        }
    }

    pub(super) async fn run(mut self) {
        if !self.register().await {
            return;
        }
        let beating = tokio::spawn(Beats::of(&self.setting, &self.job, self.life()).run());
        let last = self.task.0 == i32::try_from(TASKS).unwrap_or(i32::MAX) - 1;
        let together = self.work().await;
        match self.story {
            _ if !together => {}
            Story::Works { .. } => self.leave().await,
            Story::Misses { rounds } => {
                if !last {
                    self.arrive(rounds, MISSED_TIMEOUT_MS).await;
                }
                self.leave().await;
            }
            Story::FallsSilent { .. } if last => {
                beating.abort();
                // Nobody looks before the last beat is over.
                let _ = beating.await;
                self.quiet.send_replace(true);
                return;
            }
            // The others beat until they are told of it.
            Story::FallsSilent { .. } => {
                let _ = tokio::time::timeout(PATIENCE, beating).await;
                return;
            }
        }
        beating.abort();
        let _ = beating.await;
    }

    /// All rounds; whether every barrier of them was passed.
    async fn work(&mut self) -> bool {
        let (Story::Works { rounds } | Story::Misses { rounds } | Story::FallsSilent { rounds }) = self.story;
        for round in 0..rounds {
            self.setting.rest(&mut self.random, REST_MAX_MS).await;
            self.write(round).await;
            self.read(round).await;
            if !self.arrive(round, BARRIER_TIMEOUT_MS).await {
                return false;
            }
        }
        true
    }

    async fn register(&mut self) -> bool {
        let (job, task, incarnation) = (self.job.clone(), self.task, self.incarnation);
        let pending = self.invoke(Call::Register { job, task, incarnation });
        let message = n::RegisterTaskRequest { incarnation: incarnation.0, source_task_id: task.0 };
        let limit = Duration::from_millis(REGISTER_TIMEOUT_MS);
        let call = self.until_answered(limit, |channel: Channel, job: Job| async move {
            DialectN::new(channel).register_task(named(message, &job)).await
        });
        let (attempt, before) = call.await;
        if let Attempt::Answer(answer) = &attempt {
            self.service = answer.service_incarnation;
        }
        let outcome = honest(attempt.outcome(|_| Ok(Reply::Done), |status| refusal(status, task)), before);
        let registered = outcome.acknowledged();
        self.setting.complete(pending, outcome);
        registered
    }

    async fn leave(&mut self) {
        let (job, task, incarnation) = (self.job.clone(), self.task, self.incarnation);
        let pending = self.invoke(Call::Leave { job, task, incarnation });
        let message = n::ShutdownTaskRequest { incarnations: Some(self.life()), source_task_id: task.0 };
        let (attempt, before) = self
            .until_answered(PATIENCE, |channel: Channel, job: Job| async move {
                DialectN::new(channel).shutdown_task(named(message, &job)).await
            })
            .await;
        let outcome = honest(attempt.outcome(|_| Ok(Reply::Done), |status| refusal(status, task)), before);
        self.setting.complete(pending, outcome);
    }

    /// Whether the barrier let this task pass.
    async fn arrive(&mut self, generation: i64, timeout_ms: u64) -> bool {
        let members: Vec<TaskId> = (0..).take(TASKS as usize).map(TaskId).collect();
        let call = Call::Arrive {
            job: self.job.clone(),
            barrier: Barrier::from(BARRIER),
            generation: Generation(generation),
            task: self.task,
            members,
            timeout_ms,
        };
        let pending = self.invoke(call);
        let message = &n::BarrierRequest {
            incarnations: Some(self.life()),
            barrier_id: BARRIER.to_owned(),
            barrier_timeout_in_ms: i64::try_from(timeout_ms).unwrap_or(i64::MAX),
            task_ids: Vec::new(),
            source_task_id: self.task.0,
            counter: generation,
        };
        let (attempt, before) = self
            .until_answered(PATIENCE, |channel: Channel, job: Job| async move {
                DialectN::new(channel).barrier(named(message.clone(), &job)).await
            })
            .await;
        let outcome = match attempt {
            Attempt::Refused(status) => barrier_refused(&status, generation),
            other => other.outcome(|_| Ok(Reply::Passed), |_| None),
        };
        let outcome = honest(outcome, before);
        let passed = matches!(outcome, Outcome::Ok(Reply::Passed));
        self.setting.complete(pending, outcome);
        passed
    }

    async fn write(&mut self, round: i64) {
        let (key, value) = (self.key(round, self.task), Value(self.setting.fresh()));
        let name = Key::from(format!("{}/{key}", self.job));
        let pending = self.invoke(Call::Write { key: name, value });
        let kv = n::KeyValueEntry { key, value: text(value) };
        let message =
            n::InsertKeyValueRequest { incarnations: Some(self.life()), kv: Some(kv), allow_overwrite: true };
        // Once: an overwrite that is repeated without a stamp could undo what came between.
        let job = self.job.clone();
        let call = |channel: Channel| async move {
            DialectN::new(channel).insert_key_value(named(message, &job)).await
        };
        let attempt = self.wire.attempt(LIMIT, call).await;
        let outcome = attempt.outcome(|_| Ok(Reply::Written { version: None, index: None }), |_| None);
        self.setting.complete(pending, outcome);
    }

    /// Reads what the next task wrote in this round; waits for it, if the call is one that waits.
    async fn read(&mut self, round: i64) {
        let next = TaskId((self.task.0 + 1) % i32::try_from(TASKS).unwrap_or(1));
        let key = self.key(round, next);
        let name = Key::from(format!("{}/{key}", self.job));
        let pending = self.invoke(Call::Read { key: name });
        let (job, incarnations) = (self.job.clone(), Some(self.life()));
        let outcome = if self.random.random_bool(0.5) {
            let message = n::GetKeyValueRequest { incarnations, key };
            let call = |channel: Channel| async move {
                DialectN::new(channel).get_key_value(named(message, &job)).await
            };
            // A write whose outcome is unknown may never come, so the wait is short and then given up.
            got(self.wire.attempt(LIMIT, call).await, |answer| answer.kv.map(|kv| kv.value))
        } else {
            let message = n::TryGetKeyValueRequest { incarnations, key };
            let call = |channel: Channel| async move {
                DialectN::new(channel).try_get_key_value(named(message, &job)).await
            };
            got(self.wire.attempt(LIMIT, call).await, |answer| answer.kv.map(|kv| kv.value))
        };
        self.setting.complete(pending, outcome);
    }

    fn invoke(&self, call: Call) -> Pending {
        self.setting.invoke(self.id, call).by_node(self.wire.node())
    }

    fn key(&self, round: i64, task: TaskId) -> String {
        format!("round/{round}/{task}")
    }

    fn life(&self) -> n::Incarnations {
        n::Incarnations {
            task_id: self.task.0,
            task_incarnation: self.incarnation.0,
            service_incarnation: self.service,
        }
    }

    /// Repeats a call that may be repeated until the domain has answered it, or `patience` is over. Also whether
    /// an earlier attempt may have been executed: a refusal then says nothing of that one.
    async fn until_answered<T, F>(
        &mut self,
        patience: Duration,
        call: impl Fn(Channel, Job) -> F,
    ) -> (Attempt<T>, bool)
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let deadline = Instant::now() + patience;
        let mut maybe = None;
        loop {
            let job = self.job.clone();
            match self.wire.attempt(WAIT_LIMIT, |channel| call(channel, job)).await {
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

/// A refusal of the last attempt does not say what became of an earlier one that was not answered.
fn honest(outcome: Outcome, earlier_attempt: bool) -> Outcome {
    match outcome {
        Outcome::Fail(why) if earlier_attempt => Outcome::Unknown(why),
        outcome => outcome,
    }
}

/// A message for the job of that name, whatever port it goes to.
pub(super) fn named<T>(message: T, job: &Job) -> Request<T> {
    let mut request = Request::new(message);
    let name = job.as_str().parse().expect("names of jobs are ASCII");
    request.metadata_mut().insert(JOB, name);
    request
}
