//! A job at a served port, its tasks as raw clients, and calls that wait in the background.

use std::array;
use std::fmt::Debug;
use std::future::Future;

use tokio::task::JoinHandle;
use tonic::Code;
use tonic::Status;
use tonic::transport::Channel;
use tripod_gateway::Options;
use tripod_state::ids::{DurationMs, Incarnation, JobId, TaskId};
use tripod_state::job::{Poll, Spec};
use tripod_state::{Command, task};

use super::task::{Outcome, Task};
use super::worker::Worker;
use super::{Served, until};

/// One job and the connection that its tasks share.
pub(crate) struct Stage {
    pub(crate) served: Served,
    pub(crate) job: JobId,
    channel: Channel,
    tasks: u32,
}

/// A call that waits on the service.
#[derive(Debug)]
pub(crate) struct HeldCall<T>(JoinHandle<Outcome<T>>);

/// A job as upstream's own tests have it: polls are held, and everybody leaves alone.
pub(crate) fn plain(tasks: u32) -> Spec {
    Spec { poll: Poll::Hold, shutdown_timeout_ms: DurationMs(0), ..Spec::of_tasks(tasks) }
}

impl Stage {
    pub(crate) async fn set(spec: Spec) -> Self {
        Self::with_options(spec, Options::default()).await
    }

    /// [`Self::set`], with a gateway of that patience.
    pub(crate) async fn with_options(spec: Spec, options: Options) -> Self {
        let served = Served::start(options).await;
        let tasks = spec.tasks;
        let job = served.create(spec).await;
        let channel = served.connect().await;
        Self { served, job, channel, tasks }
    }

    /// A [`plain`] job whose tasks are all connected.
    pub(crate) async fn connected<const N: usize>() -> (Self, [Task; N]) {
        let stage = Self::set(plain(u32::try_from(N).expect("a small job"))).await;
        let tasks = stage.connect().await;
        (stage, tasks)
    }

    /// A [`plain`] job of one task, connected, of which nothing is accepted soon after it has left.
    pub(crate) async fn with_short_grace() -> (Self, Task) {
        let spec = Spec { heartbeat_timeout_ms: DurationMs(1500), ..plain(1) };
        let stage = Self::set(spec).await;
        let [task] = stage.connect().await;
        (stage, task)
    }

    /// A task, or somebody who says that he is one.
    pub(crate) fn task(&self, id: i32) -> Task {
        Task::new(&self.channel, id)
    }

    /// The same as a client of dialect T.
    pub(crate) fn worker(&self, id: i32) -> Worker {
        Worker::new(&self.channel, id)
    }

    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// All tasks, none of them registered.
    pub(crate) fn tasks<const N: usize>(&self) -> [Task; N] {
        assert_eq!(N, self.tasks as usize, "the size of the job");
        array::from_fn(|id| self.task(i32::try_from(id).expect("a small job")))
    }

    /// All tasks, registered.
    pub(crate) async fn connect<const N: usize>(&self) -> [Task; N] {
        let tasks = self.tasks();
        register(&tasks).await;
        tasks
    }

    /// Starts a call and waits until the service has taken it in, where it is expected to wait.
    pub(crate) async fn hold<T, C>(&self, call: C) -> HeldCall<T>
    where
        T: Debug + Send + 'static,
        C: Future<Output = Outcome<T>> + Send + 'static,
    {
        let gateway = &self.served.gateway;
        let (index, waiting) = (gateway.applied_index(), gateway.waiting_calls());
        let held = HeldCall(tokio::spawn(call));
        let arrived = || gateway.applied_index() > index || gateway.waiting_calls() > waiting;
        until("the call arrives or ends", || arrived() || held.0.is_finished()).await;
        self.still_holds(&held).await;
        held
    }

    /// Checks that a call has no answer, by an exchange after which it would be here.
    pub(crate) async fn still_holds<T: Debug>(&self, held: &HeldCall<T>) {
        for _ in 0..2 {
            refused(self.task(0).try_get("no such key").await, Code::NotFound);
        }
        assert!(!held.0.is_finished(), "the call has ended");
    }

    /// The leader has not heard of these tasks for longer than their timeout.
    pub(crate) async fn silence(&self, tasks: &[&Task]) {
        let life = |task: &&Task| (TaskId(task.id), Incarnation(task.life));
        let silent = tasks.iter().map(life).collect();
        let command = task::Command::Expire { job: self.job, silent };
        let reply = self.served.gateway.submit(Command::Task(command)).await.expect("in memory");
        reply.expect("it always works");
    }
}

impl<T: Debug> HeldCall<T> {
    /// The outcome of the call, which is about to end.
    pub(crate) async fn end(self) -> Outcome<T> {
        self.0.await.expect("an answer in time")
    }

    /// Gives the call up, as a client that goes away.
    pub(crate) async fn hang_up(self) {
        self.0.abort();
        assert!(self.0.await.expect_err("it has no answer").is_cancelled(), "it was given up");
    }
}

/// Registers tasks together, for each waits for the others.
pub(crate) async fn register(tasks: &[Task]) {
    let calls: Vec<_> = tasks.iter().map(|task| tokio::spawn(task.register())).collect();
    for call in calls {
        call.await.expect("no panic").expect("registered");
    }
}

/// The status of a call that must have failed with `code`.
#[track_caller]
pub(crate) fn refused<T: Debug>(outcome: Outcome<T>, code: Code) -> Status {
    let status = outcome.expect_err("it must be refused");
    assert_eq!(status.code(), code, "{}", status.message());
    status
}

/// Repeats a call until it fails, and gives the failure.
pub(crate) async fn until_refused<T, C>(mut call: impl FnMut() -> C) -> Status
where
    C: Future<Output = Outcome<T>>,
{
    let refused = tripod_wait::until_async("a refusal", || {
        let call = call();
        async move { call.await.err() }
    });
    refused.await
}
