//! One task of a job, as JAX's own client behaves, over dialect N: it registers, beats, meets
//! barriers, and says good-bye. Works against any service of that dialect, jaxlib's own included.

use std::time::Duration;

use anyhow::Context as _;
use tokio::task::{JoinHandle, JoinSet};
use tonic::{Request, Status};
use tripod_calls::Way;
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient;
use tripod_proto::xla::coordination::{
    BarrierRequest, GetKeyValueRequest, HeartbeatRequest, Incarnations, RegisterTaskRequest,
    ShutdownTaskRequest,
};

use crate::connect;

/// How long a job's port may take to open.
const CONNECT_PATIENCE: Duration = Duration::from_secs(20);
/// How long all tasks together may take to register.
const REGISTER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the shutdown barrier may take.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(20);
/// Pause between two heartbeats in the background.
const BEAT_EVERY: Duration = Duration::from_secs(5);

/// A registered task.
#[derive(Debug, Clone)]
pub struct Task {
    id: i32,
    incarnation: u64,
    service_incarnation: u64,
    client: CoordinationServiceClient<Way>,
}

impl Task {
    /// Connects to `address` and registers as task `id`; returns once all tasks of the job have.
    ///
    /// # Errors
    /// No connection, or the service refuses.
    pub async fn register(address: &str, id: i32) -> anyhow::Result<Self> {
        let channel = connect::connect_within(address, CONNECT_PATIENCE).await?;
        Self::register_over(Way::new(channel, None), address, id).await
    }

    async fn register_over(way: Way, address: &str, id: i32) -> anyhow::Result<Self> {
        let mut client = CoordinationServiceClient::new(way);
        let incarnation = rand::random();
        let mut request = Request::new(RegisterTaskRequest { incarnation, source_task_id: id });
        request.set_timeout(REGISTER_TIMEOUT);
        let registered = tokio::time::timeout(REGISTER_TIMEOUT, client.register_task(request)).await;
        let registered =
            registered.with_context(|| format!("task {id}: not everybody registered in time"))?;
        let answer = registered.with_context(|| format!("cannot register task {id} at {address}"))?;
        Ok(Self { id, incarnation, service_incarnation: answer.into_inner().service_incarnation, client })
    }

    /// Says that this task lives.
    ///
    /// # Errors
    /// The service's status; also if another service answers.
    pub async fn heartbeat(&mut self) -> Result<(), Status> {
        let request = HeartbeatRequest {
            incarnations: Some(self.incarnations()),
            incarnation: self.incarnation,
            source_task_id: self.id,
        };
        let answer = self.client.heartbeat(request).await?.into_inner();
        if answer.service_incarnation != self.service_incarnation {
            return Err(Status::data_loss("another service incarnation answered"));
        }
        Ok(())
    }

    /// Waits until all tasks of the job have called instance `counter` of the barrier `name`.
    ///
    /// # Errors
    /// The service's status.
    pub async fn barrier(&mut self, name: &str, counter: i64, timeout: Duration) -> Result<(), Status> {
        let request = BarrierRequest {
            incarnations: Some(self.incarnations()),
            barrier_id: name.to_owned(),
            barrier_timeout_in_ms: i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX),
            // An empty list means every task.
            task_ids: Vec::new(),
            source_task_id: self.id,
            counter,
        };
        let answer = self.client.barrier(request).await?.into_inner();
        if answer.counter != counter {
            return Err(Status::data_loss(format!("instance {} answered for {counter}", answer.counter)));
        }
        Ok(())
    }

    /// Waits until somebody has written a key, and gives its value.
    ///
    /// # Errors
    /// The service's status.
    pub async fn key(&mut self, key: &str) -> Result<bytes::Bytes, Status> {
        let request = GetKeyValueRequest { key: key.to_owned(), incarnations: Some(self.incarnations()) };
        let answer = self.client.get_key_value(request).await?.into_inner();
        Ok(answer.kv.unwrap_or_default().value)
    }

    /// Leaves the job; returns once all tasks leave.
    ///
    /// # Errors
    /// The service's status, or no answer in time.
    pub async fn shut_down(mut self) -> Result<(), Status> {
        let request =
            ShutdownTaskRequest { incarnations: Some(self.incarnations()), source_task_id: self.id };
        let left = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.client.shutdown_task(request)).await;
        left.unwrap_or_else(|_| Err(Status::deadline_exceeded("the shutdown barrier does not pass")))?;
        Ok(())
    }

    /// Beats in the background until the returned value is dropped.
    #[must_use]
    pub fn keep_alive(&self) -> Beating {
        let mut task = self.clone();
        Beating(tokio::spawn(async move {
            loop {
                tokio::time::sleep(BEAT_EVERY).await;
                // A beat that fails is repeated soon; the task's own calls show a lasting failure.
                let _ = task.heartbeat().await;
            }
        }))
    }

    fn incarnations(&self) -> Incarnations {
        Incarnations {
            task_id: self.id,
            task_incarnation: self.incarnation,
            service_incarnation: self.service_incarnation,
        }
    }
}

/// A heartbeat in the background; dropping it stops it.
#[derive(Debug)]
pub struct Beating(JoinHandle<()>);

impl Drop for Beating {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Registers tasks 0 to `tasks`-1, spread over `addresses` in turn.
///
/// # Errors
/// One of them cannot.
pub async fn register_all(addresses: &[String], tasks: usize) -> anyhow::Result<Vec<Task>> {
    anyhow::ensure!(!addresses.is_empty(), "no address to register at: no node has announced one yet");
    let mut joining = JoinSet::new();
    for (id, address) in (0..i32::try_from(tasks).context("too many tasks")?).zip(addresses.iter().cycle()) {
        let address = address.clone();
        joining.spawn(async move { Task::register(&address, id).await });
    }
    joined(joining).await
}

/// The same, with as many streams of calls that all of them share, to the addresses in turn.
///
/// # Errors
/// No connection, or one of them cannot register.
pub async fn register_all_on(
    streams: usize,
    addresses: &[String],
    tasks: usize,
) -> anyhow::Result<Vec<Task>> {
    anyhow::ensure!(!addresses.is_empty(), "no address to register at: no node has announced one yet");
    anyhow::ensure!(streams > 0, "tasks need a stream");
    let mut ways = Vec::new();
    for address in addresses.iter().cycle().take(streams) {
        let channel = connect::connect_within(address, CONNECT_PATIENCE).await?;
        let stream = connect::stream(&channel)?;
        ways.push((Way::new(channel, Some(stream)), address.clone()));
    }
    let mut joining = JoinSet::new();
    for (id, way) in (0..i32::try_from(tasks).context("too many tasks")?).zip(ways.iter().cycle()) {
        let (way, address) = way.clone();
        joining.spawn(async move { Task::register_over(way, &address, id).await });
    }
    joined(joining).await
}

/// All tasks, in the order of their numbers.
async fn joined(mut joining: JoinSet<anyhow::Result<Task>>) -> anyhow::Result<Vec<Task>> {
    let mut registered = Vec::with_capacity(joining.len());
    while let Some(task) = joining.join_next().await {
        registered.push(task.context("a task of the load generator panicked")??);
    }
    registered.sort_by_key(|task| task.id);
    Ok(registered)
}

/// Shuts all tasks down together, as the shutdown barrier demands.
///
/// # Errors
/// The first failure.
pub async fn shut_down_all(tasks: Vec<Task>) -> anyhow::Result<()> {
    let mut leaving: JoinSet<Result<(), Status>> = tasks.into_iter().map(Task::shut_down).collect();
    while let Some(left) = leaving.join_next().await {
        left.context("a task of the load generator panicked")?.context("a task cannot leave the job")?;
    }
    Ok(())
}
