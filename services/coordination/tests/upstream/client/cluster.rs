//! A served job and the processes that belong to it.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tonic::Status;
use tonic::transport::Channel;
use tripod_gateway::{Mishap, Options};
use tripod_proto::xla::coordination as pb;
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient;
use tripod_state::ids::{Incarnation, JobId, TaskId};
use tripod_state::task::Phase;
use tripod_state::{Command, Scope, barrier, job, task};

use super::agent::Agent;
use super::config::Config;
use crate::support::{LONG, SERVICE, Served, until};

/// How long a call that waits is watched for an answer that must not come.
const A_WHILE: Duration = Duration::from_millis(100);

/// A served job.
pub(crate) struct Cluster {
    pub(crate) served: Served,
    pub(crate) job: JobId,
    /// How agents of this job are set up.
    pub(crate) config: Config,
    tasks: u32,
    lives: AtomicU64,
    /// Every command so far, in order.
    log: Arc<Mutex<Vec<Command>>>,
}

impl Cluster {
    pub(crate) async fn start(spec: job::Spec) -> Self {
        let served = Served::start(Options::default()).await;
        served.raise().await;
        let log = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&log);
        served.backend.set_mishaps(move |envelope| {
            seen.lock().push(envelope.command.clone());
            Mishap::Success
        });
        let (config, tasks) = (Config::of(&spec), spec.tasks);
        let job = served.create(spec).await;
        Self { served, job, config, tasks, lives: AtomicU64::new(1), log }
    }

    /// A new process for the task, which has not connected yet.
    pub(crate) async fn agent(&self, task: i32) -> Agent {
        self.agent_with(task, self.config).await
    }

    /// [`Self::agent`], set up in a way of its own.
    pub(crate) async fn agent_with(&self, task: i32, config: Config) -> Agent {
        // Every process has its own random life; these are told apart in a log.
        let incarnation = 1000 * self.lives.fetch_add(1, Ordering::Relaxed);
        Agent::new(self.served.connect().await, task, incarnation, config)
    }

    /// All processes of the job, not connected yet.
    pub(crate) async fn agents<const N: usize>(&self) -> [Agent; N] {
        assert_eq!(self.tasks as usize, N, "the job's size");
        let mut agents = Vec::new();
        for task in (0..).take(N) {
            agents.push(self.agent(task).await);
        }
        agents.try_into().unwrap_or_else(|_| panic!("counted above"))
    }

    /// All processes of the job, connected and polling.
    pub(crate) async fn connected<const N: usize>(&self) -> [Agent; N] {
        let agents = self.agents().await;
        let calls: Vec<Call<_>> = agents.iter().map(|agent| Call::new(agent.connect())).collect();
        for call in calls {
            call.end().await.expect("all come");
        }
        for agent in &agents {
            self.until_polling(agent, 0).await;
        }
        agents
    }

    /// Connects a process that comes later than the others, and waits until it polls.
    pub(crate) async fn connect(&self, agent: &Agent) -> Result<(), Status> {
        let polls = self.count(&polls_of(agent));
        agent.connect().await?;
        self.until_polling(agent, polls).await;
        Ok(())
    }

    async fn until_polling(&self, agent: &Agent, before: usize) {
        if agent.polls() {
            let is = polls_of(agent);
            until("the agent polls", || self.arrived(&is) > before).await;
        }
    }

    /// Connects in the background, once the service knows of it.
    pub(crate) async fn connecting(&self, agent: &Agent) -> Call<()> {
        let (id, life) = (TaskId(agent.task()), agent.incarnation());
        let is = move |command: &Command| match command {
            Command::Task(
                task::Command::Register { task, incarnation, .. }
                | task::Command::RegisterFrom { task, incarnation, .. },
            ) => *task == id && incarnation.0 == life,
            _ => false,
        };
        self.begin(agent.connect(), is).await
    }

    /// Shuts down in the background, once the service knows of it.
    pub(crate) async fn shutting_down(&self, agent: &Agent) -> Call<()> {
        let id = TaskId(agent.task());
        let is = move |command: &Command| match command {
            Command::Task(task::Command::Shutdown { task, .. }) => *task == id,
            _ => false,
        };
        self.begin(agent.shut_down(), is).await
    }

    /// Waits at a barrier of all tasks in the background, once the service knows of it.
    pub(crate) async fn at_barrier(&self, agent: &Agent, name: &str) -> Call<()> {
        self.at_barrier_of(agent, name, &[]).await
    }

    /// [`Self::at_barrier`], with a list of tasks.
    pub(crate) async fn at_barrier_of(&self, agent: &Agent, name: &str, tasks: &[i32]) -> Call<()> {
        self.arriving(agent, name, agent.wait_at_barrier(name, LONG, tasks)).await
    }

    /// Begins a call by which a task arrives at a barrier.
    pub(crate) async fn arriving(
        &self,
        agent: &Agent,
        name: &str,
        call: impl Future<Output = Result<(), Status>> + Send + 'static,
    ) -> Call<()> {
        let (id, asked) = (TaskId(agent.task()), name.to_owned());
        let is = move |command: &Command| match command {
            Command::Barrier(barrier::Command::Arrive { task, barrier, .. }) => {
                *task == id && *barrier == asked
            }
            _ => false,
        };
        self.begin(call, is).await
    }

    /// Polls for errors in place of the agent, on a connection that outlives it.
    pub(crate) async fn polling(&self, agent: &Agent) -> Call<()> {
        let message = pb::PollForErrorRequest { incarnations: incarnations(), source_task_id: agent.task() };
        let mut raw = self.raw().await;
        self.begin(async move { raw.poll_for_error(message).await.map(drop) }, polls_of(agent)).await
    }

    /// Waits for a key in the background, once the service knows of it.
    pub(crate) async fn getting(&self, agent: &Agent, key: &str) -> Call<bytes::Bytes> {
        let waiting = self.served.gateway.waiting_calls();
        let call = Call::new(agent.get(key));
        until("the get waits", || self.served.gateway.waiting_calls() > waiting).await;
        call
    }

    /// Begins a call that is this command, and waits until it has been applied.
    pub(crate) async fn begin<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<T, Status>> + Send + 'static,
        is: impl Fn(&Command) -> bool,
    ) -> Call<T> {
        let before = self.count(&is);
        let call = Call::new(call);
        until("the call arrives", || self.arrived(&is) > before).await;
        call
    }

    /// How many of these commands have been applied.
    pub(crate) fn arrived(&self, is: &impl Fn(&Command) -> bool) -> usize {
        let log = self.log.lock();
        let all_applied = self.served.gateway.applied_index().0 >= log.len() as u64;
        if all_applied { log.iter().filter(|command| is(command)).count() } else { 0 }
    }

    fn count(&self, is: &impl Fn(&Command) -> bool) -> usize {
        self.log.lock().iter().filter(|command| is(command)).count()
    }

    /// How the service sees the task.
    pub(crate) fn phase(&self, task: i32) -> Phase {
        let scope = Scope { job: self.job, service: None };
        let report = self.served.backend.state().tasks(scope, &[TaskId(task)]).expect("a task of the job");
        report.tasks[0].phase
    }

    /// Lets the service know at once that this life of a task has been silent for too long.
    pub(crate) async fn miss(&self, task: i32, incarnation: u64) {
        let silent = vec![(TaskId(task), Incarnation(incarnation))];
        let command = Command::Task(task::Command::Expire { job: self.job, silent });
        self.served.gateway.submit(command).await.expect("in memory").expect("it always works");
        assert_eq!(self.phase(task), Phase::Error, "it was connected with that life");
    }

    /// Waits until the service takes the task for lost.
    pub(crate) async fn until_lost(&self, task: i32) {
        until("the task is missed", || self.phase(task) == Phase::Error).await;
    }

    /// A client without an agent's manners.
    pub(crate) async fn raw(&self) -> CoordinationServiceClient<Channel> {
        CoordinationServiceClient::new(self.served.connect().await)
    }
}

/// What calls without an agent's manners say about the service that they mean.
pub(crate) fn incarnations() -> Option<pb::Incarnations> {
    Some(pb::Incarnations { service_incarnation: SERVICE, ..Default::default() })
}

fn polls_of(agent: &Agent) -> impl Fn(&Command) -> bool + use<> {
    let id = TaskId(agent.task());
    move |command: &Command| match command {
        Command::Task(task::Command::Poll { task, .. }) => *task == id,
        _ => false,
    }
}

/// A call under way.
pub(crate) struct Call<T> {
    outcome: JoinHandle<Result<T, Status>>,
}

impl<T: Send + 'static> Call<T> {
    pub(crate) fn new(call: impl Future<Output = Result<T, Status>> + Send + 'static) -> Self {
        Self { outcome: tokio::spawn(call) }
    }

    /// What came of it.
    pub(crate) async fn end(self) -> Result<T, Status> {
        tripod_wait::within("an answer", self.outcome).await.expect("no panic")
    }

    /// Checks that there is no answer yet.
    pub(crate) async fn waits(&mut self)
    where
        T: Debug,
    {
        if let Ok(outcome) = timeout(A_WHILE, &mut self.outcome).await {
            panic!("it should wait: {outcome:?}");
        }
    }
}
