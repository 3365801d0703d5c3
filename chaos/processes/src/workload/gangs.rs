//! Gangs: jobs as JAX's own clients make them, over dialect N or T. Three tasks register together, beat, meet at
//! barriers, exchange keys by gets that wait, and leave together; or one of them falls silent, is late, or comes
//! again as another life, of which its first one does not know.

mod beats;
mod life;
mod member;
mod refusal;

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tripod_calls::Way;
use tripod_proto::tripod::v1::jobs_client::JobsClient;
use tripod_proto::tripod::v1::{CreateJobRequest, DeleteJobRequest, GetJobRequest, JobSpec};

use super::dialect::Dialect;
use super::setting::Setting;
use super::wire::{Attempt, Wire};
use member::Member;
use tripod_checkers::history::{
    Call, ClientId, CoordinatedTaskState, Incarnation, Job, Outcome, Reply, TaskId, TaskSeen,
};

/// Gangs at the same time.
const GANGS: u64 = 2;
const TASKS: u32 = 3;
/// A task that is silent for so long is declared dead.
pub const BEAT_TIMEOUT_MS: u64 = 10_000;
/// How much later than that it may be seen: how often timers run, and how slow a loaded machine is.
pub const BEATS_FORGOTTEN_MS: u64 = 15_000;
const SHUTDOWN_TIMEOUT_MS: u64 = 30_000;
const REGISTER_TIMEOUT_MS: u64 = 90_000;
/// How long one attempt of a short call may take.
const LIMIT: Duration = Duration::from_secs(3);
/// How long creating a job may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the others look whether a silent task is declared dead.
const WATCH_PATIENCE: Duration = Duration::from_secs(60);
const WATCH_PAUSE: Duration = Duration::from_millis(500);
/// What a task's state says when nothing was heard of it.
const SILENT: &str = "task-silent";

/// What becomes of a gang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Story {
    /// It works for so many rounds and leaves.
    Works { rounds: i64 },
    /// After so many rounds its last task falls silent.
    FallsSilent { rounds: i64 },
    /// After so many rounds its last task misses a barrier, and beats on.
    Misses { rounds: i64 },
    /// After so many rounds its last task leaves and comes again as another life; its first life beats on.
    ComesBack { rounds: i64 },
    /// After so many rounds its last task falls silent, is declared dead and comes again as another life; its
    /// first life beats once more.
    IsRevived { rounds: i64 },
}

impl Story {
    fn rounds(self) -> i64 {
        match self {
            Self::Works { rounds }
            | Self::FallsSilent { rounds }
            | Self::Misses { rounds }
            | Self::ComesBack { rounds }
            | Self::IsRevived { rounds } => rounds,
        }
    }

    /// What the job of such a gang is like.
    fn spec(self) -> JobSpec {
        let comes_back = matches!(self, Self::ComesBack { .. });
        JobSpec {
            tasks: TASKS,
            heartbeat_timeout_ms: BEAT_TIMEOUT_MS,
            register_timeout_ms: REGISTER_TIMEOUT_MS,
            // Who comes again leaves alone.
            shutdown_timeout_ms: Some(if comes_back { 0 } else { SHUTDOWN_TIMEOUT_MS }),
            shutdown_barrier: comes_back.then_some(false),
            reconnect: matches!(self, Self::IsRevived { .. }),
            ..JobSpec::default()
        }
    }
}

/// How far a gang's story has come; it never goes back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Cue {
    #[default]
    Working,
    /// The last task beats no more.
    Silent,
    /// It was seen to be declared dead.
    Dead,
    /// Nobody need wait for anything.
    Over,
}

/// Tells everybody in the gang, unless it was told more already.
fn cue(cues: &watch::Sender<Cue>, now: Cue) {
    cues.send_if_modified(|cue| {
        let further = now > *cue;
        *cue = now.max(*cue);
        further
    });
}

pub(super) fn start(setting: &Setting, clients: &mut JoinSet<()>) {
    for gang in 0..GANGS {
        let id = setting.client_id();
        let mut random = setting.random(id);
        let wire = Wire::new(setting, &mut random);
        clients.spawn(Gangs { setting: setting.clone(), gang, id, random, wire }.run());
    }
}

/// One gang after the other.
struct Gangs {
    setting: Setting,
    gang: u64,
    id: ClientId,
    random: StdRng,
    wire: Wire,
}

impl Gangs {
    async fn run(mut self) {
        let mut number = 0_u64;
        while self.setting.goes_on() {
            number += 1;
            let (story, dialect) = (self.story(), Dialect::draw(&mut self.random));
            let name = format!("gang-{}-{}-{number}", self.gang, dialect.letter());
            if self.create(&name, story).await {
                self.live(Job::from(name.clone()), dialect, story).await;
                self.delete(&name).await;
            }
            self.setting.rest(&mut self.random, 200).await;
        }
    }

    fn story(&mut self) -> Story {
        let rounds = self.random.random_range(3..12);
        let few = rounds.min(4);
        match self.random.random_range(0..10) {
            0..4 => Story::Works { rounds },
            4..6 => Story::Misses { rounds },
            6 => Story::FallsSilent { rounds: few },
            7 => Story::IsRevived { rounds: few },
            _ => Story::ComesBack { rounds: few },
        }
    }

    async fn live(&mut self, job: Job, dialect: Dialect, story: Story) {
        let mut members = JoinSet::new();
        let (cues, told) = watch::channel(Cue::Working);
        for task in (0..).take(TASKS as usize) {
            let member = Member::new(&self.setting, (&job, TaskId(task)), dialect, story, cues.clone());
            members.spawn(member.run());
        }
        if let Story::FallsSilent { .. } | Story::IsRevived { .. } = story {
            let dead = self.watch(&job, told).await;
            cue(&cues, if dead { Cue::Dead } else { Cue::Over });
        }
        while members.join_next().await.is_some() {}
    }

    /// Looks at the tasks until the silent one is declared dead, and tells whether it was. That it is in time,
    /// the checker says. When clients are to stop, nobody waits for a death any more: many were waited for before.
    async fn watch(&mut self, job: &Job, mut told: watch::Receiver<Cue>) -> bool {
        // Over without it: the gang ended for another reason.
        let silent = matches!(told.wait_for(|cue| *cue >= Cue::Silent).await, Ok(cue) if *cue == Cue::Silent);
        if !silent {
            return false;
        }
        let deadline = Instant::now() + WATCH_PATIENCE;
        while Instant::now() < deadline && self.setting.goes_on() {
            let pending = self.setting.invoke(self.id, Call::ReadTasks { job: job.clone() });
            let request = GetJobRequest { name: job.to_string(), ..Default::default() };
            let get = |way: Way| async move { JobsClient::new(way).get(request).await };
            let attempt = self.wire.attempt(LIMIT, get).await;
            let outcome =
                attempt.outcome(|job| Ok(Reply::Tasks(job.tasks.iter().map(seen).collect())), |_| None);
            let dead = matches!(&outcome, Outcome::Ok(Reply::Tasks(tasks))
                if tasks.iter().any(|task| task.state == CoordinatedTaskState::Dead));
            self.setting.complete(pending, outcome);
            if dead {
                return true;
            }
            tokio::time::sleep(WATCH_PAUSE).await;
        }
        false
    }

    /// Whether the job exists now. A name is used once, so a job that exists already is ours.
    async fn create(&mut self, name: &str, story: Story) -> bool {
        let spec = story.spec();
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let request = CreateJobRequest { name: name.to_owned(), spec: Some(spec.clone()) };
            let create = |way: Way| async move { JobsClient::new(way).create(request).await };
            match self.wire.attempt(LIMIT, create).await {
                Attempt::Answer(_) => return true,
                Attempt::Refused(status) if status.code() == tonic::Code::AlreadyExists => return true,
                Attempt::Refused(status) => {
                    self.setting.recorder.void(format!("job {name} cannot be created: {status}"));
                    return false;
                }
                Attempt::NotExecuted(_) | Attempt::Unknown(_) => tokio::time::sleep(WATCH_PAUSE).await,
            }
        }
        false
    }

    /// Best effort: a run is too short for old jobs to matter.
    async fn delete(&mut self, name: &str) {
        for _ in 0..self.setting.endpoints.len() {
            let request = DeleteJobRequest { name: name.to_owned() };
            let delete = |way: Way| async move { JobsClient::new(way).delete(request).await };
            if matches!(self.wire.attempt(LIMIT, delete).await, Attempt::Answer(_) | Attempt::Refused(_)) {
                return;
            }
        }
    }
}

fn seen(task: &tripod_proto::tripod::v1::TaskState) -> TaskSeen {
    let state = match (task.state.as_str(), task.reason.as_str()) {
        ("connected", _) => CoordinatedTaskState::Connected,
        ("disconnected", _) => CoordinatedTaskState::Disconnected,
        (_, SILENT) => CoordinatedTaskState::Dead,
        _ => CoordinatedTaskState::Error,
    };
    let incarnation = (task.incarnation != 0).then_some(Incarnation(task.incarnation));
    TaskSeen { task: TaskId(task.task_id), state, incarnation }
}
