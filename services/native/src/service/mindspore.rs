//! `tripod.v1.Mindspore`.

use std::time::Duration;

use prost::Message;
use tokio::time::{Instant, timeout_at};
use tonic::{Request, Response, Status};
use tripod_gateway::{Consistency, Gateway};
use tripod_port::{CallBytes, CallContext, Short};
use tripod_proto::tripod::v1::mindspore_server::Mindspore;
use tripod_proto::tripod::v1::{
    MindsporeAbortRequest, MindsporeAbortResponse, MindsporeEvents, MindsporeEventsRequest, MindsporeNodes,
    MindsporeNodesRequest, MindsporePlan, MindsporePlanRequest, MindsporeScaleRequest,
    MindsporeScaleResponse, MindsporeState, MindsporeStateRequest, MindsporeSwitchRequest,
    MindsporeSwitchResponse, Stamp,
};
use tripod_state::mindspore::{self, Answer, Refusal, cluster};
use tripod_state::{Answer as AnyAnswer, Command, DomainId, Envelope, Fault, Scope, State, Topic};

use crate::{admitted, decode, encode, resolve, status};

/// How long a call waits for events at most; who wants more asks again.
const EVENTS_WAIT_MAX: Duration = Duration::from_secs(30);

pub(super) struct Service {
    gateway: Gateway,
}

/// A change of a cluster that an operator asks for.
struct Write {
    /// As it was named; empty: `default`.
    job: String,
    stamp: Option<Stamp>,
    /// The cluster's generation that it is meant for, if it is meant for one.
    generation: Option<u64>,
    request: cluster::Request,
}

impl Service {
    pub(super) fn new(gateway: Gateway) -> Self {
        Self { gateway }
    }

    async fn read<T>(
        &self,
        consistency: Consistency,
        look: impl FnOnce(&State) -> Result<T, Fault>,
    ) -> Result<T, Status> {
        let read = self.gateway.read(consistency, look).await;
        read.map_err(|outage| status::of_outage(&outage))?.map_err(|fault| status::of_fault(&fault))
    }

    /// Looks at what may be a node for each of thousands, while apply does not wait. What is made of it counts for the
    /// call.
    async fn look<T: Message + 'static>(
        &self,
        call: Option<CallBytes>,
        job: String,
        look: impl FnOnce(&State, Scope) -> Result<T, Fault> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        let no_room = |short: Short| status::of_outage(&short.into());
        let making = match &call {
            Some(call) => Some(call.making().await.map_err(no_room)?),
            None => None,
        };
        let named = job.clone();
        let look = move |_, state: &State| look(state, scope_of(state, &named)?);
        let read = self.gateway.read_aside(Consistency::Linearizable, look).await;
        let found = read.map_err(|outage| status::of_outage(&outage))?;
        let found = found.map_err(|fault| status::mindspore::of(&fault, shown(&job)))?;
        let mut answer = Response::new(found);
        if let Some(making) = making {
            let made = making.made(answer.get_ref().encoded_len() as u64).map_err(no_room)?;
            answer.extensions_mut().insert(made);
        }
        Ok(answer)
    }

    /// Has a change made, once if it is stamped. Whether it is meant for another generation apply sees. It is looked at before,
    /// too, for where the level has no command that says so; but not of one that may have been made already, which is what changed
    /// it: apply has the reply, or knows that it is lost.
    async fn write(&self, write: Write) -> Result<Answer, Status> {
        let Write { job, stamp, generation, request } = write;
        let stamp = stamp.map(decode::stamp).transpose()?;
        let look = |state: &State| {
            let scope = scope_of(state, &job)?;
            let current = state.cluster(scope)?.generation;
            let command = Command::Mindspore(match generation {
                Some(generation) => mindspore::Command::Planned { scope, generation, request },
                None => mindspore::Command::Cluster { scope, request },
            });
            let is_settled = stamp.is_some_and(|stamp| state.is_settled(stamp));
            let other = generation.filter(|planned| *planned != current && !is_settled);
            Ok((command, other.map(|planned| Refusal::Outdated { planned, current })))
        };
        let (command, outdated) = self.read(Consistency::Linearizable, look).await?;
        if let Some(refusal) = outdated {
            return Err(status::mindspore::of(&Fault::from(refusal), shown(&job)));
        }
        let submitted = match stamp {
            Some(stamp) => self.gateway.submit_stamped(Envelope { stamp: Some(stamp), command }).await,
            None => self.gateway.submit(command).await,
        };
        let reply = submitted.map_err(|outage| status::of_outage(&outage))?;
        match reply.map_err(|fault| status::mindspore::of(&fault, shown(&job)))? {
            AnyAnswer::Mindspore(answer) => Ok(answer),
            other => Err(status::unexpected(&other)),
        }
    }
}

#[tonic::async_trait]
impl Mindspore for Service {
    async fn state(
        &self,
        request: Request<MindsporeStateRequest>,
    ) -> Result<Response<MindsporeState>, Status> {
        admitted::about_job(request.extensions(), &request.get_ref().job)?;
        let job = request.into_inner().job;
        let look = |state: &State| encode::mindspore::state(state, scope_of(state, &job)?);
        self.read(Consistency::Linearizable, look).await.map(Response::new)
    }

    async fn nodes(
        &self,
        request: Request<MindsporeNodesRequest>,
    ) -> Result<Response<MindsporeNodes>, Status> {
        admitted::about_job(request.extensions(), &request.get_ref().job)?;
        let call = CallContext::bytes(request.extensions()).cloned();
        self.look(call, request.into_inner().job, encode::mindspore::nodes).await
    }

    async fn events(
        &self,
        request: Request<MindsporeEventsRequest>,
    ) -> Result<Response<MindsporeEvents>, Status> {
        admitted::about_job(request.extensions(), &request.get_ref().job)?;
        let MindsporeEventsRequest { job, after, wait_ms } = request.into_inner();
        let deadline = Instant::now() + Duration::from_millis(wait_ms).min(EVENTS_WAIT_MAX);
        let scope = self.read(Consistency::Linearizable, |state| scope_of(state, &job)).await?;
        // Before the first look, or an event between the two would be waited for in vain.
        let mut watch = self.gateway.watch(Topic::Domain(DomainId::Mindspore, scope.job));
        loop {
            let found = self.read(Consistency::Local, |state| state.cluster_events(scope, after)).await?;
            let is_over = Instant::now() >= deadline;
            if is_over || found.missed > 0 || !found.events.is_empty() {
                return Ok(Response::new(encode::mindspore::events(found)));
            }
            // That time is over is seen above.
            _ = timeout_at(deadline, watch.changed()).await;
        }
    }

    async fn plan_scale(
        &self,
        request: Request<MindsporePlanRequest>,
    ) -> Result<Response<MindsporePlan>, Status> {
        admitted::about_job(request.extensions(), &request.get_ref().job)?;
        let call = CallContext::bytes(request.extensions()).cloned();
        let MindsporePlanRequest { job, change } = request.into_inner();
        let change = decode::mindspore::change(change)?;
        let look =
            move |state: &State, scope| state.cluster_plan(scope, &change).map(encode::mindspore::plan);
        self.look(call, job, look).await
    }

    async fn scale(
        &self,
        request: Request<MindsporeScaleRequest>,
    ) -> Result<Response<MindsporeScaleResponse>, Status> {
        admitted::about_job(request.extensions(), &request.get_ref().job)?;
        let MindsporeScaleRequest { job, change, generation, stamp } = request.into_inner();
        let request = decode::mindspore::scale(change)?;
        match self.write(Write { job, stamp, generation, request }).await? {
            Answer::Scaling { generation } => Ok(Response::new(MindsporeScaleResponse { generation })),
            other => Err(status::unexpected(&AnyAnswer::Mindspore(other))),
        }
    }

    async fn abort(
        &self,
        request: Request<MindsporeAbortRequest>,
    ) -> Result<Response<MindsporeAbortResponse>, Status> {
        admitted::about_job(request.extensions(), &request.get_ref().job)?;
        let MindsporeAbortRequest { job, stamp, generation } = request.into_inner();
        let request = cluster::Request::Abort;
        match self.write(Write { job, stamp, generation, request }).await? {
            Answer::Noted => Ok(Response::new(MindsporeAbortResponse {})),
            other => Err(status::unexpected(&AnyAnswer::Mindspore(other))),
        }
    }

    async fn switch(
        &self,
        request: Request<MindsporeSwitchRequest>,
    ) -> Result<Response<MindsporeSwitchResponse>, Status> {
        admitted::about_job(request.extensions(), &request.get_ref().job)?;
        let MindsporeSwitchRequest { job, switch, body, stamp, generation } = request.into_inner();
        let request = cluster::Request::Switch { switch: decode::mindspore::switch(switch)?, body };
        match self.write(Write { job, stamp, generation, request }).await? {
            Answer::Switching { switch } => Ok(Response::new(MindsporeSwitchResponse { switch })),
            other => Err(status::unexpected(&AnyAnswer::Mindspore(other))),
        }
    }
}

/// The job of that name in one state.
fn scope_of(state: &State, job: &str) -> Result<Scope, Fault> {
    resolve::in_state(state, job).map(resolve::scope)
}

/// As its name is written in commands.
fn shown(job: &str) -> &str {
    if job.is_empty() { resolve::DEFAULT_JOB } else { job }
}
