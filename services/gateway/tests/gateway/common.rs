//! What the tests of this folder share: a job and its calls, in few words.

use bytes::Bytes;
use tripod_gateway::{Gateway, Outage};
use tripod_state::ids::{BarrierCounter, DurationMs, Incarnation, JobId, ServiceIncarnation, TaskId};
use tripod_state::task::Phase;
use tripod_state::{Answer, Command, Fault, Reply, Scope, Ticket, barrier, job, kv, level, task};

pub(crate) const SERVICE: ServiceIncarnation = ServiceIncarnation(77);
pub(crate) const HEARTBEAT_MS: u64 = 10_000;

pub(crate) struct Job {
    pub(crate) gateway: Gateway,
    pub(crate) id: JobId,
    pub(crate) scope: Scope,
}

/// A job of `tasks` tasks with a heartbeat timeout of [`HEARTBEAT_MS`].
pub(crate) async fn job(gateway: &Gateway, tasks: u32) -> Job {
    job_of(gateway, "test", spec(tasks)).await
}

/// What [`job`] asks for.
pub(crate) fn spec(tasks: u32) -> job::Spec {
    job::Spec { heartbeat_timeout_ms: DurationMs(HEARTBEAT_MS), ..job::Spec::of_tasks(tasks) }
}

pub(crate) async fn job_of(gateway: &Gateway, name: &str, spec: job::Spec) -> Job {
    let create = job::Command::Create { name: name.into(), spec, service: SERVICE };
    match gateway.submit(Command::Job(create)).await.unwrap() {
        Ok(Answer::Job(summary)) => {
            let scope = Scope { job: summary.id, service: Some(SERVICE) };
            Job { gateway: gateway.clone(), id: summary.id, scope }
        }
        other => panic!("no job: {other:?}"),
    }
}

/// The one life of a task that tests use.
pub(crate) fn life(task: i32) -> Incarnation {
    Incarnation(1000 + u64::from(task.unsigned_abs()))
}

/// From now on everything that this build knows is in force.
pub(crate) async fn raise(gateway: &Gateway) {
    let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
    // It may be at that level already.
    let _ = gateway.submit(Command::Level(raise)).await.unwrap();
}

impl Job {
    pub(crate) fn on(&self, gateway: &Gateway) -> Self {
        Self { gateway: gateway.clone(), id: self.id, scope: self.scope }
    }

    pub(crate) async fn register(&self, task: i32) -> Result<Reply, Outage> {
        self.gateway.call(self.register_command(task)).await
    }

    pub(crate) fn register_command(&self, task: i32) -> Command {
        Command::Task(task::Command::Register {
            scope: self.scope,
            task: TaskId(task),
            incarnation: life(task),
            recoverable: false,
            protocol: task::Protocol::Xla,
        })
    }

    /// Registers all tasks together.
    pub(crate) async fn register_all(&self, tasks: i32) {
        let all = futures::future::join_all((0..tasks).map(|task| self.register(task))).await;
        for reply in all {
            assert_eq!(reply.unwrap(), Ok(Answer::Registered { service: SERVICE }));
        }
    }

    /// The same, of tasks of which everybody knows that they send heartbeats as often as the job asks.
    pub(crate) async fn register_all_known(&self, tasks: i32) {
        raise(&self.gateway).await;
        self.register_all(tasks).await;
        for task in 0..tasks {
            assert_eq!(self.beat_every(task, HEARTBEAT_MS / 2).await.unwrap(), alive());
        }
    }

    pub(crate) async fn beat(&self, task: i32) -> Result<Reply, Outage> {
        self.gateway.heartbeat(self.scope, TaskId(task), life(task), None).await
    }

    /// A beat that says when the next one comes.
    pub(crate) async fn beat_every(&self, task: i32, interval_ms: u64) -> Result<Reply, Outage> {
        let interval = Some(DurationMs(interval_ms));
        self.gateway.heartbeat(self.scope, TaskId(task), life(task), interval).await
    }

    pub(crate) fn arrive_command(&self, name: &str, task: i32, timeout_ms: i64) -> Command {
        Command::Barrier(barrier::Command::Arrive {
            scope: self.scope,
            barrier: name.into(),
            counter: BarrierCounter(0),
            timeout_ms,
            tasks: Vec::new(),
            task: TaskId(task),
        })
    }

    pub(crate) async fn arrive(&self, name: &str, task: i32, timeout_ms: i64) -> Result<Reply, Outage> {
        self.gateway.call(self.arrive_command(name, task, timeout_ms)).await
    }

    pub(crate) fn insert_command(&self, key: &str, value: &'static str) -> Command {
        Command::Kv(kv::Command::Insert {
            scope: self.scope,
            key: key.into(),
            value: Bytes::from_static(value.as_bytes()),
            overwrite: true,
        })
    }

    pub(crate) fn increment_command(&self, key: &str) -> Command {
        Command::Kv(kv::Command::Increment { scope: self.scope, key: key.into(), by: 1, caller: None })
    }

    pub(crate) fn key_ticket(&self, key: &str) -> Ticket {
        Ticket::Key { scope: self.scope, asked: key.into() }
    }

    /// A key's value in this node's own state.
    pub(crate) async fn value_here(&self, key: &str) -> Option<String> {
        let scope = self.scope;
        let entry = self.gateway.read(tripod_gateway::Consistency::Local, |state| state.get(scope, key));
        let entry = entry.await.unwrap().ok()?;
        Some(String::from_utf8(entry.value.to_vec()).unwrap())
    }

    /// What this node's own state says of a task.
    pub(crate) async fn phase_here(&self, task: i32) -> (Phase, Option<Fault>) {
        let scope = self.scope;
        let local = tripod_gateway::Consistency::Local;
        let report = self.gateway.read(local, |state| state.tasks(scope, &[TaskId(task)])).await.unwrap();
        let info = report.unwrap().tasks.remove(0);
        (info.phase, info.error)
    }
}

pub(crate) fn alive() -> Reply {
    Ok(Answer::Registered { service: SERVICE })
}

pub(crate) fn passed() -> Reply {
    Ok(Answer::BarrierPassed { counter: BarrierCounter(0) })
}
