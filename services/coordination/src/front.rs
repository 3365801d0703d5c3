//! The way from a request to the cluster and back, shared by all dialects: who calls, decode, ask,
//! encode. A dialect gives the two ends.

use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use tonic::{Code, Request, Response, Status};
use tripod_gateway::{Consistency, Gateway, JobBinding, Outage, SetBeat};
use tripod_port::label::Label;
use tripod_port::{CallContext, Stopping, deadline, refusal};
use tripod_state::ids::{DurationMs, Incarnation, JobId, TaskId};
use tripod_state::{Answer, Command, Fault, Reply, Scope, State, Ticket};

use crate::answer::unexpected;
use crate::caller::{self, Caller};
use crate::dialect::Dialect;
use crate::names::{Names, Voice};
use crate::presence::{self, Life};
use crate::speaker::Speakers;
use crate::{origin, own_task, status};

/// How much later than anything else that happened with it an error is told to polls.
///
/// One event wakes the held calls of a client all at once, and whichever answer its connection takes
/// first is first there. A client that hears of an error ends its process at once; upstream answers the
/// barriers and the callers that ask who is alive first, and their answers must not be lost here either:
/// without a delay 10 of 48 jaxlib processes lost one (scenarios `live_not_recoverable` and
/// `killed_peer_in_barrier`, two busy cores), with 2 ms none of 248, but with 20 ms 3 of 93 on a machine
/// with twenty times the work it can do. Long enough for such a machine, too, and nothing beside the
/// heartbeat timeout of seconds that went before.
const LAST_WORD: Duration = Duration::from_millis(250);

/// Keys of a job that are looked through while apply waits: more take longer than it may.
const KEYS_AT_ONCE: u64 = 4_096;

/// Bytes of a job's keys of which many listings may be made at the same time.
const MADE_AT_ONCE: u64 = 1 << 20;

/// How long the last attempt of a poll waits for the cluster to say whether there is an error.
const LAST_POLL_PATIENCE: Duration = Duration::from_secs(1);

/// Names the compression of a request's message.
const COMPRESSION: &str = "grpc-encoding";

/// The task for which the connection of a call speaks, if it is one.
pub(crate) fn speaker<M>(request: &Request<M>, caller: Caller) -> Option<TaskId> {
    let calls = CallContext::connection_calls(request.extensions())?;
    calls.kept::<Speakers>().of(caller.job).map(|(task, _)| task)
}

/// The outcome of a call.
pub(crate) type Outcome<T> = Result<Response<T>, Status>;

/// A gateway as one dialect of one port sees it. Cheap to clone: calls of dialect T have one each.
#[derive(Clone)]
pub(crate) struct Front {
    shared: Arc<Shared>,
    /// By which the caller of one call knows tasks.
    names: Names,
}

struct Shared {
    gateway: Gateway,
    binding: JobBinding,
    dialect: Dialect,
}

/// The job of a call, or the refusal that names the missing one: noted with the request, so that it is
/// looked for once.
#[derive(Clone)]
struct Found(Result<JobId, Fault>);

impl Front {
    pub(crate) fn new(gateway: Gateway, binding: JobBinding, dialect: Dialect) -> Self {
        Self { shared: Arc::new(Shared { gateway, binding, dialect }), names: Names::default() }
    }

    /// A call that is a command: replicates it and waits for its outcome.
    pub(crate) async fn command<M, R>(
        &self,
        request: Request<M>,
        decode: impl FnOnce(Caller, &M) -> Command + Send,
        encode: impl FnOnce(Answer) -> Result<R, Status> + Send,
    ) -> Outcome<R>
    where
        M: Message,
    {
        let (caller, command) = {
            // A call may wait for hours, needs its headers no more, and past this block has no room for them either.
            let asked = request;
            self.understand(&asked, decode).await?
        };
        let reply = caller.call(&self.shared.gateway, command).await;
        self.answer(reply, encode)
    }

    /// A registration. Until the task's first heartbeat the connection by which it came stands for it.
    pub(crate) async fn register<M, R>(
        &self,
        request: Request<M>,
        decode: impl FnOnce(Caller, &M) -> Command + Send,
        encode: impl FnOnce(Answer) -> Result<R, Status> + Send,
    ) -> Outcome<R>
    where
        M: Message,
    {
        let (caller, command, followed) = {
            let asked = request;
            let (caller, command) = self.understand(&asked, decode).await?;
            // The connection of an agent is not the task's, and the agent tells of that.
            let life = Life::of(&command).filter(|_| !caller.lasting);
            let command = command.with_origin(|| origin::of(&asked));
            // Only of who comes by itself something is asked of the request when all others have come, too. All others have
            // no room for it.
            (caller, command, life.map(|life| Box::new((life, asked))))
        };
        let reply = caller.call(&self.shared.gateway, command).await;
        if let (Some(followed), Ok(Ok(_))) = (&followed, &reply) {
            let (life, request) = &**followed;
            life.heard(request);
            presence::follow(&self.shared.gateway, request, *life);
        }
        self.answer(reply, encode)
    }

    /// Who makes a call, and what the cluster is to execute for it.
    async fn understand<M>(
        &self,
        request: &Request<M>,
        decode: impl FnOnce(Caller, &M) -> Command + Send,
    ) -> Result<(Caller, Command), Status>
    where
        M: Message,
    {
        let caller = self.caller(request).await?;
        let command = decode(caller, request.get_ref());
        own_task::check(request.extensions(), own_task::sender(&command))?;
        Ok((caller, command))
    }

    /// What an agent tells of the connection of a task that has registered so. Gives whether it is to tell it again.
    pub(crate) async fn tell<M>(
        &self,
        request: &Request<M>,
        decode: impl FnOnce(Caller, &M) -> Command + Send,
        (connection, gone): (u64, bool),
    ) -> Result<bool, Status>
    where
        M: Message,
    {
        let command = decode(self.caller(request).await?, request.get_ref());
        match Life::of(&command) {
            Some(life) => Ok(life.tell(&self.shared.gateway, connection, gone).await),
            None => Ok(false),
        }
    }

    /// A call that waits for something that no command began. `asker`: whose it is, if it says so.
    pub(crate) async fn wait<M, R>(
        &self,
        request: Request<M>,
        asker: Option<TaskId>,
        decode: impl FnOnce(Caller, &M) -> Ticket + Send,
        encode: impl FnOnce(M, Answer) -> Result<R, Status> + Send,
    ) -> Outcome<R>
    where
        M: Message,
    {
        let (ticket, asker, asked) = {
            // As a command's: of the request only its message is kept.
            let whole = request;
            let caller = self.caller(&whole).await?;
            let asker = asker.or_else(|| speaker(&whole, caller));
            (decode(caller, whole.get_ref()), asker, whole.into_inner())
        };
        let reply = self.shared.gateway.wait_as(ticket, asker).await;
        self.answer(reply, |answer| encode(asked, answer))
    }

    /// A heartbeat, which stays out of the log.
    pub(crate) async fn heartbeat<M, R>(
        &self,
        request: Request<M>,
        decode: impl FnOnce(Caller, &M) -> (Scope, TaskId, Incarnation) + Send,
        encode: impl FnOnce(Answer) -> Result<R, Status> + Send,
    ) -> Outcome<R>
    where
        M: Message,
    {
        let (scope, task, incarnation) = decode(self.caller(&request).await?, request.get_ref());
        own_task::check(request.extensions(), Some(task))?;
        let interval = self.interval(&request);
        let reply = self.shared.gateway.heartbeat(scope, task, incarnation, interval).await;
        if let (Ok(Ok(_)), Some(calls)) = (&reply, CallContext::connection_calls(request.extensions())) {
            calls.kept::<Speakers>().heard(scope.job, task, incarnation);
        }
        self.answer(reply, encode)
    }

    /// A heartbeat as one of a set, which nobody tells just now.
    pub(crate) async fn set_beat<M>(
        &self,
        request: &Request<M>,
        decode: impl FnOnce(Caller, &M) -> (Scope, TaskId, Incarnation) + Send,
    ) -> Result<SetBeat, Status>
    where
        M: Message,
    {
        let (scope, task, incarnation) = decode(self.caller(request).await?, request.get_ref());
        Ok(SetBeat { scope, task, incarnation, interval: self.interval(request) })
    }

    /// When the client of a heartbeat sends the next one: clients of N and T wait for an answer that long, and no
    /// longer. Those of L wait for two minutes, however often they send heartbeats.
    fn interval<M>(&self, request: &Request<M>) -> Option<DurationMs> {
        if self.shared.dialect == Dialect::L {
            return None;
        }
        let given = deadline::given(request.metadata().as_ref())?;
        Some(DurationMs(u64::try_from(given.as_millis()).unwrap_or(u64::MAX)))
    }

    /// A call that looks at the state as of all writes acknowledged so far.
    pub(crate) async fn read<M, T, R>(
        &self,
        request: Request<M>,
        look: impl FnOnce(&State, Caller, &M) -> Result<T, Fault> + Send,
        encode: impl FnOnce(M, T) -> R + Send,
    ) -> Outcome<R>
    where
        M: Message,
        T: Send,
    {
        let caller = self.caller(&request).await?;
        let asked = request.into_inner();
        match self.shared.gateway.read(Consistency::Linearizable, |state| look(state, caller, &asked)).await {
            Ok(Ok(found)) => Ok(Response::new(encode(asked, found))),
            Ok(Err(fault)) => Err(self.refuse(&fault)),
            Err(outage) => Err(status::of_outage(&outage)),
        }
    }

    /// [`Self::read`] of all keys of a job, which may be many.
    pub(crate) async fn read_keys<M, T, R>(
        &self,
        request: Request<M>,
        look: impl FnOnce(&State, Caller, &M) -> Result<T, Fault> + Send + 'static,
        encode: impl FnOnce(T) -> R + Send,
    ) -> Outcome<R>
    where
        R: Message,
        M: Message + 'static,
        T: Send + 'static,
    {
        let caller = self.caller(&request).await?;
        let sizes =
            |state: &State| (state.sizes(caller.job).0, state.job(caller.job).map(|job| job.key_bytes));
        let sizes = self.shared.gateway.read(Consistency::Local, sizes).await;
        let (keys, bytes) = sizes.map_err(|outage| status::of_outage(&outage))?;
        let making = match CallContext::bytes(request.extensions()) {
            Some(call) if bytes.unwrap_or_default() > MADE_AT_ONCE => {
                Some(call.making().await.map_err(refusal::of_short)?)
            }
            _ => None,
        };
        let mut answer = if keys <= KEYS_AT_ONCE {
            self.read(request, look, |_, found| encode(found)).await?
        } else {
            let asked = request.into_inner();
            let look = move |_, state: &State| look(state, caller, &asked);
            match self.shared.gateway.read_aside(Consistency::Linearizable, look).await {
                Ok(Ok(found)) => Response::new(encode(found)),
                Ok(Err(fault)) => return Err(self.refuse(&fault)),
                Err(outage) => return Err(status::of_outage(&outage)),
            }
        };
        if let Some(making) = making {
            let made = making.made(answer.get_ref().encoded_len() as u64).map_err(refusal::of_short)?;
            answer.extensions_mut().insert(made);
        }
        Ok(answer)
    }

    /// A poll for errors; there is no good outcome. Clients end their process on every answer to a
    /// poll but CANCELLED, which only ends the polling: so the cluster's own trouble is told as that.
    pub(crate) async fn poll<M>(
        &self,
        request: Request<M>,
        decode: impl Fn(Caller, &M) -> Command + Send,
    ) -> Status
    where
        M: Message,
    {
        let mut lasting = false;
        let reply = match self.find_caller(&request).await {
            Ok(Ok(caller)) => {
                lasting = caller.lasting;
                let sender = own_task::sender(&decode(caller, request.get_ref()));
                if let Err(refused) = own_task::check(request.extensions(), sender) {
                    return refused;
                }
                let told = if lasting {
                    let command = decode(caller, request.get_ref());
                    // An agent has one of these for each of its tasks, as long as they live.
                    drop(request);
                    Some(caller.call(&self.shared.gateway, command).await)
                } else {
                    self.ask_for_errors(caller, &request, decode).await
                };
                let Some(told) = told else { return status::of_last_poll() };
                told
            }
            Ok(Err(fault)) => Ok(Err(fault)),
            Err(outage) => Err(outage),
        };
        let status = match reply {
            Ok(Ok(answer)) => unexpected(&answer),
            Err(outage) if lasting => status::of_outage(&outage),
            Ok(Err(fault)) => self.refuse(&fault),
            Err(outage) => {
                tracing::debug!(%outage, "poll for errors released");
                status::of_released_poll(&outage)
            }
        };
        // A poll that merely ends must do so while its connection lasts: nobody repeats the last attempt.
        if status.code() != Code::Cancelled {
            tokio::time::sleep(LAST_WORD).await;
        }
        status
    }

    /// The answer to a poll of a client that comes by itself. Where the end of this connection would reach it
    /// as an error, nothing is waited for: `None` if the cluster does not say in time whether there is an error.
    async fn ask_for_errors<M>(
        &self,
        caller: Caller,
        request: &Request<M>,
        decode: impl Fn(Caller, &M) -> Command + Send,
    ) -> Option<Result<Reply, Outage>>
    where
        M: Message,
    {
        let ask = |caller: Caller| caller.call(&self.shared.gateway, decode(caller, request.get_ref()));
        if !caller.attempt.is_last() {
            let stopping = Stopping::of(request);
            tokio::select! {
                reply = ask(caller) => return Some(reply),
                () = stopping.releases_polls() => {}
            }
        }
        tokio::time::timeout(LAST_POLL_PATIENCE, ask(caller.for_the_last_time())).await.ok()
    }

    /// This front for one call, with the names that the call's job gives to its tasks.
    pub(crate) async fn introduce<M>(&self, request: &mut Request<M>) -> Self
    where
        M: Sync,
    {
        let mut front = self.clone();
        // Without a job there are no names; the call itself will be told why.
        if let Ok(found) = self.find_job(request).await {
            if let Ok(job) = found {
                let look = |state: &State| state.job_spec(job).map(Names::of);
                // A job's specification never changes, so this node's word is enough.
                let names = self.shared.gateway.read(Consistency::Local, look).await;
                front.names = names.ok().flatten().unwrap_or_default();
            }
            request.extensions_mut().insert(Found(found));
        }
        front
    }

    pub(crate) fn names_mut(&mut self) -> &mut Names {
        &mut self.names
    }

    pub(crate) fn voice(&self) -> Voice<'_> {
        Voice::new(self.shared.dialect, &self.names)
    }

    pub(crate) fn gateway(&self) -> &Gateway {
        &self.shared.gateway
    }

    pub(crate) async fn caller<M>(&self, request: &Request<M>) -> Result<Caller, Status>
    where
        M: Message,
    {
        match self.find_caller(request).await {
            Ok(Ok(caller)) => Ok(caller),
            Ok(Err(fault)) => Err(self.refuse(&fault)),
            Err(outage) => Err(status::of_outage(&outage)),
        }
    }

    async fn find_caller<M>(&self, request: &Request<M>) -> Result<Result<Caller, Fault>, Outage>
    where
        M: Message,
    {
        weigh(request)?;
        let found = self.find_job(request).await?;
        Ok(found.map(|job| Caller::of(request.metadata(), job)))
    }

    async fn find_job<M>(&self, request: &Request<M>) -> Result<Result<JobId, Fault>, Outage>
    where
        M: Sync,
    {
        if let Some(Found(found)) = request.extensions().get() {
            return Ok(found.clone());
        }
        let wanted = caller::job_name(request.metadata());
        let label = request.extensions().get::<Label>().map(|Label(label)| label.as_str());
        self.shared.binding.find(&self.shared.gateway, wanted, label).await
    }

    pub(crate) fn answer<R>(
        &self,
        reply: Result<Reply, Outage>,
        encode: impl FnOnce(Answer) -> Result<R, Status>,
    ) -> Outcome<R> {
        match reply {
            Ok(Ok(answer)) => encode(answer).map(Response::new),
            Ok(Err(fault)) => Err(self.refuse(&fault)),
            Err(outage) => Err(status::of_outage(&outage)),
        }
    }

    fn refuse(&self, fault: &Fault) -> Status {
        status::of_fault(fault, self.voice())
    }
}

/// Counts a message as it was unpacked: until then it counts as the largest that it can be.
fn weigh<M: Message>(request: &Request<M>) -> Result<(), Outage> {
    if request.metadata().contains_key(COMPRESSION)
        && let Some(call) = CallContext::bytes(request.extensions())
    {
        call.message(request.get_ref().encoded_len() as u64)?;
    }
    Ok(())
}
