//! The life of an agent: it registers, beats, polls, fails and leaves.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tonic::codec::CompressionEncoding;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};
use tripod_coordination::{COORDINATION_KEY, MISMATCH_KEY};
use tripod_proto::xla::coordination as pb;
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient;

use super::barriers::Counters;
use super::config::Config;
use crate::support::payloads::payload;

/// What follows the failed attempts of a heartbeat that never reached the service.
const BEAT_PAUSES: [Duration; 3] =
    [Duration::from_micros(1000), Duration::from_micros(1300), Duration::from_micros(1700)];
/// How long an agent waits after a failed heartbeat: an error means nothing if it is leaving.
const SECOND_THOUGHT: Duration = Duration::from_secs(1);
/// The longest pause between two attempts to register is two to this power, in milliseconds.
const BACKOFF_EXPONENT_MAX: u32 = 14;

/// One process of a job. Dropped, it dies without a word.
pub(crate) struct Agent {
    pub(super) shared: Arc<Shared>,
}

/// What an agent's calls share.
pub(super) struct Shared {
    pub(super) client: CoordinationServiceClient<Channel>,
    pub(super) task: i32,
    pub(super) incarnation: u64,
    pub(super) config: Config,
    pub(super) counters: Mutex<Counters>,
    /// Of the service, as it was told at registration.
    service: OnceLock<u64>,
    state: watch::Sender<State>,
    /// What the program was told by its error callback.
    told: watch::Sender<Option<Status>>,
    over: watch::Sender<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Disconnected,
    Connected,
    Failed,
}

impl Agent {
    pub(crate) fn new(channel: Channel, task: i32, incarnation: u64, config: Config) -> Self {
        let mut client = CoordinationServiceClient::new(channel);
        if config.compresses {
            client = client.send_compressed(CompressionEncoding::Gzip);
        }
        let shared = Shared {
            client,
            task,
            incarnation,
            config,
            counters: Mutex::default(),
            service: OnceLock::new(),
            state: watch::Sender::new(State::Disconnected),
            told: watch::Sender::new(None),
            over: watch::Sender::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn task(&self) -> i32 {
        self.shared.task
    }

    pub(crate) fn incarnation(&self) -> u64 {
        self.shared.incarnation
    }

    pub(super) fn polls(&self) -> bool {
        self.shared.config.polls
    }

    /// Registers, and from then on beats and polls.
    pub(crate) fn connect(&self) -> impl Future<Output = Result<(), Status>> + Send + use<> {
        Arc::clone(&self.shared).connect()
    }

    /// Leaves, unless it is not connected any more or says no goodbye; then ends all calls of its own.
    pub(crate) fn shut_down(&self) -> impl Future<Output = Result<(), Status>> + Send + use<> {
        Arc::clone(&self.shared).shut_down()
    }

    /// Ends as upstream's agent does when it is destroyed: it leaves, whatever comes of it.
    pub(crate) async fn destroy(self) {
        drop(self.shut_down().await);
    }

    /// What the error callback was told, if it ran.
    pub(crate) fn error(&self) -> Option<Status> {
        self.shared.told.borrow().clone()
    }

    /// Waits until the error callback runs, and gives what it is told.
    pub(crate) async fn failed(&self) -> Status {
        let mut told = self.shared.told.subscribe();
        let told = tripod_wait::within("an error", told.wait_for(Option::is_some)).await;
        told.expect("the agent is here").clone().expect("waited for it")
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.shared.over.send_replace(true);
    }
}

impl Shared {
    async fn connect(self: Arc<Self>) -> Result<(), Status> {
        let deadline = Instant::now() + self.config.init_timeout + self.config.spare;
        let mut attempt = 0;
        let refused = loop {
            let refused = match self.register(deadline).await {
                Ok(service) => {
                    self.service.set(service).expect("an agent connects once");
                    self.state.send_replace(State::Connected);
                    tokio::spawn(Arc::clone(&self).beat_on());
                    if self.config.polls {
                        tokio::spawn(Arc::clone(&self).poll());
                    }
                    return Ok(());
                }
                Err(refused) => refused,
            };
            attempt = BACKOFF_EXPONENT_MAX.min(attempt + 1);
            sleep(Duration::from_millis(1 << attempt)).await;
            if Instant::now() >= deadline || !may_register_again(&refused) {
                break refused;
            }
        };
        self.fail(&refused);
        Err(refused)
    }

    async fn register(&self, deadline: Instant) -> Result<u64, Status> {
        let limit = deadline.saturating_duration_since(Instant::now());
        let message = pb::RegisterTaskRequest { incarnation: self.incarnation, source_task_id: self.task };
        let mut client = self.client.clone();
        let reply = within(limit, message, async move |request| client.register_task(request).await).await?;
        Ok(reply.service_incarnation)
    }

    async fn beat_on(self: Arc<Self>) {
        let interval = self.config.heartbeat_timeout / 2;
        while timeout(interval, self.is_over()).await.is_err() {
            match self.beat(interval).await {
                Ok(service) if Some(&service) == self.service.get() => {}
                Ok(other) => self.fail(&Status::aborted(format!("another service answers: {other}"))),
                Err(status) => {
                    self.note_mismatch(&status);
                    if timeout(SECOND_THOUGHT, self.is_over()).await.is_ok() {
                        return;
                    }
                    self.fail(&status);
                }
            }
        }
    }

    /// One heartbeat, which is sent again at once if it did not get through.
    async fn beat(&self, limit: Duration) -> Result<u64, Status> {
        let mut pauses = BEAT_PAUSES.into_iter();
        loop {
            let (incarnation, source_task_id) = (self.incarnation, self.task);
            let message = pb::HeartbeatRequest { incarnations: self.life(), incarnation, source_task_id };
            let mut client = self.client.clone();
            let sent = within(limit, message, async move |request| client.heartbeat(request).await).await;
            match (sent, pauses.next()) {
                (Ok(reply), _) => return Ok(reply.service_incarnation),
                (Err(status), Some(pause)) if matches!(status.code(), Code::Unavailable | Code::Unknown) => {
                    sleep(pause).await;
                }
                (Err(status), _) => return Err(status),
            }
        }
    }

    /// Waits for an error, once; if the service ends the poll without one, that was all.
    async fn poll(self: Arc<Self>) {
        let message = pb::PollForErrorRequest { incarnations: self.life(), source_task_id: self.task };
        let mut client = self.client.clone();
        tokio::select! {
            () = self.is_over() => {}
            polled = self.told(client.poll_for_error(message)) => match polled {
                Ok(_) => self.fail(&Status::internal("a poll was answered OK, which ends the process")),
                Err(status) if status.code() == Code::Cancelled => {}
                Err(status) => self.fail(&status),
            },
        }
    }

    async fn shut_down(self: Arc<Self>) -> Result<(), Status> {
        let mut outcome = Ok(());
        if self.config.says_goodbye && *self.state.borrow() == State::Connected {
            let limit = self.config.shutdown_timeout + self.config.spare;
            let message = pb::ShutdownTaskRequest { incarnations: self.life(), source_task_id: self.task };
            let mut client = self.client.clone();
            let left = within(limit, message, async move |request| client.shutdown_task(request).await);
            outcome = left.await.map(drop);
        }
        if let Err(status) = &outcome {
            self.fail(status);
        }
        self.over.send_replace(true);
        if outcome.is_ok() && *self.state.borrow() == State::Failed {
            outcome = Err(Status::failed_precondition("the agent was in error when it was to shut down"));
        }
        self.state.send_replace(State::Disconnected);
        outcome
    }

    /// Runs a call and looks whether its error says that the service has begun another life.
    pub(super) async fn told<T>(
        &self,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Status> {
        let outcome = call.await.map(Response::into_inner);
        outcome.inspect_err(|status| self.note_mismatch(status))
    }

    /// [`Self::told`], for a call that ends when the agent does.
    pub(super) async fn told_unless_over<T>(
        &self,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Status> {
        tokio::select! {
            () = self.is_over() => Err(Status::cancelled("the agent is over")),
            outcome = self.told(call) => outcome,
        }
    }

    /// The lives of agent and service, as calls carry them.
    pub(super) fn life(&self) -> Option<pb::Incarnations> {
        Some(pb::Incarnations {
            task_id: 0,
            task_incarnation: self.incarnation,
            service_incarnation: self.service.get().copied().unwrap_or(0),
        })
    }

    /// An agent in error begins no barrier and asks for no tasks.
    pub(super) fn check_running(&self) -> Result<(), Status> {
        if *self.state.borrow() == State::Failed {
            return Err(Status::failed_precondition("the agent is in error"));
        }
        Ok(())
    }

    fn note_mismatch(&self, status: &Status) {
        if payload(status, MISMATCH_KEY).is_some() {
            self.fail(status);
        }
    }

    /// Runs the error callback, if this is the first error.
    fn fail(&self, status: &Status) {
        let first = |state: &mut State| std::mem::replace(state, State::Failed) != State::Failed;
        if self.state.send_if_modified(first) {
            self.told.send_replace(Some(status.clone()));
        }
    }

    async fn is_over(&self) {
        let mut over = self.over.subscribe();
        // The sender is in `self`.
        drop(over.wait_for(|over| *over).await);
    }
}

/// Whether a refused registration is repeated: the refusal does not come from the service, or an earlier life of
/// the task may still be there, or the service may not have begun.
fn may_register_again(status: &Status) -> bool {
    payload(status, COORDINATION_KEY).is_none() || matches!(status.code(), Code::Aborted | Code::Internal)
}

/// A call with a time limit, of which the service is told.
async fn within<M, R>(
    limit: Duration,
    message: M,
    call: impl AsyncFnOnce(Request<M>) -> Result<Response<R>, Status>,
) -> Result<R, Status> {
    let begun = Instant::now();
    let mut request = Request::new(message);
    request.set_timeout(limit);
    match call(request).await {
        // The library below this model says so where gRPC tells that the time is over.
        Err(status) if status.code() == Code::Cancelled && begun.elapsed() >= limit => {
            Err(Status::deadline_exceeded("Deadline Exceeded"))
        }
        outcome => outcome.map(Response::into_inner),
    }
}
