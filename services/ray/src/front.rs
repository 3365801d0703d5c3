//! The way from a call to the cluster and back: whose job it is, who calls, decode, ask, encode.

use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Response, Status};
use tripod_dial::Dialler;
use tripod_gate::Admitted;
use tripod_gateway::{Consistency, Gateway, JobBinding};
use tripod_proto::metadata;
use tripod_proto::tripod::v1::RayBatchRequest;
use tripod_state::ids::JobId;
use tripod_state::ray::ids::WorkerId;
use tripod_state::ray::{self, Answer, Ray};
use tripod_state::{Command, Scope, State};

use crate::caller::Caller;
use crate::leader::Known;
use crate::pulse::Pulse;
use crate::{admitted, batch, status};

/// A gateway as the calls of one port see it.
#[derive(Clone)]
pub(crate) struct Front {
    pub(crate) gateway: Gateway,
    pub(crate) binding: JobBinding,
    pub(crate) pulse: Pulse,
    pub(crate) leader: Known,
    pub(crate) dialler: Dialler,
}

/// What a call was answered, and what goes beside it.
pub(crate) struct Answered {
    pub(crate) job: JobId,
    pub(crate) answer: Answer,
    pub(crate) replayed: bool,
    /// The caller can go to the leader.
    can_follow: bool,
}

impl Front {
    /// A call that is a command: replicates it and gives its answer.
    pub(crate) async fn ask<M>(
        &self,
        request: Request<M>,
        decode: impl FnOnce(&Caller, M) -> Result<ray::Request, Status> + Send,
    ) -> Result<Answered, Status>
    where
        M: Send,
    {
        let (metadata, _, message) = request.into_parts();
        let caller = Caller::of(&metadata)?;
        let asked = decode(&caller, message)?;
        let job = self.job(&metadata).await?;
        self.submit(job, &caller, asked).await
    }

    /// Replicates a request of a caller.
    pub(crate) async fn submit(
        &self,
        job: JobId,
        caller: &Caller,
        request: ray::Request,
    ) -> Result<Answered, Status> {
        self.pulse.named(job, &caller.origin, &request);
        self.pulse.unfit(job, &request).await;
        let request = self.hinted(job, request).await;
        let scope = Scope { job, service: None };
        let command = ray::Command::Ask { scope, origin: caller.origin, request };
        let (answer, replayed) = status::answer(self.gateway.submit(Command::Ray(command)).await)?;
        Ok(Answered { job, answer, replayed, can_follow: caller.session.is_some() })
    }

    /// Replicates a batch of a caller.
    pub(crate) async fn batch(
        &self,
        job: JobId,
        mut caller: Caller,
        admitted: Option<&Admitted>,
        message: RayBatchRequest,
    ) -> Result<Answered, Status> {
        admitted::has_parts(admitted, &message.calls)?;
        if let Some(worker) = message.workerid {
            caller.origin.process = Some(WorkerId(worker));
        }
        self.submit(job, &caller, batch::decode(message.calls)?).await
    }

    /// Where there is an idle worker for the only task of a request, it is named with it: a cluster with little to do
    /// needs one command for a task instead of two. This node may know less than the leader; what does not hold is
    /// not done.
    async fn hinted(&self, job: JobId, mut request: ray::Request) -> ray::Request {
        if let Some((task, needs, hint)) = lone_task(&mut request) {
            let look = |state: &State| {
                let ray = state.ray(job)?;
                match needs {
                    Some(needs) => ray.hint_with(task, needs),
                    None => ray.hint(task),
                }
            };
            *hint = self.gateway.read(Consistency::Local, look).await.ok().flatten();
        }
        request
    }

    pub(crate) async fn job(&self, metadata: &tonic::metadata::MetadataMap) -> Result<JobId, Status> {
        let wanted = metadata.get(metadata::JOB).and_then(|name| name.to_str().ok());
        // The host that was dialled says nothing here: schedulers are dialled by addresses.
        match self.binding.find(&self.gateway, wanted, None).await {
            Ok(Ok(job)) => Ok(job),
            Ok(Err(fault)) => Err(status::of_fault(&fault)),
            Err(outage) => Err(status::of_outage(&outage)),
        }
    }

    /// Looks at a job's scheduler; one that has none yet is like an empty one.
    pub(crate) async fn read<T>(
        &self,
        freshness: Consistency,
        job: JobId,
        look: impl FnOnce(&Ray) -> T + Send,
    ) -> Result<T, Status> {
        let look = |state: &State| match state.ray(job) {
            Some(ray) => look(ray),
            None => look(&Ray::default()),
        };
        self.gateway.read(freshness, look).await.map_err(|outage| status::of_outage(&outage))
    }

    /// The answer, with what is told beside every answer.
    pub(crate) fn respond<R>(
        &self,
        answered: Answered,
        encode: impl FnOnce(Answer) -> Result<R, Status>,
    ) -> Result<Response<R>, Status> {
        let Answered { answer, replayed, can_follow, .. } = answered;
        let mut response = Response::new(encoded(answer, replayed, encode)?);
        if replayed {
            response.metadata_mut().insert(metadata::RAY_REPLAYED, MetadataValue::from_static("1"));
        }
        if can_follow {
            self.leader.borrow().tell(response.metadata_mut());
        }
        Ok(response)
    }
}

/// The answer, encoded.
pub(crate) fn encoded<R>(
    answer: Answer,
    replayed: bool,
    encode: impl FnOnce(Answer) -> Result<R, Status>,
) -> Result<R, Status> {
    encode(answer).map_err(|status| match status.code() {
        // The answer of an earlier call, which was another one: the client's mistake and not ours.
        Code::Internal if replayed => status::reused(),
        _ => status,
    })
}

/// The only task that a request submits, with what it needs, and the place for the hint.
type LoneTask<'a> = (&'a ray::Task, Option<&'a ray::Needs>, &'a mut Option<WorkerId>);

fn lone_task(request: &mut ray::Request) -> Option<LoneTask<'_>> {
    match request {
        ray::Request::Submit { task, hint, .. } => Some((task, None, hint)),
        ray::Request::SubmitWith { task, hint, needs, .. } => Some((task, Some(needs), hint)),
        ray::Request::Batch(requests) => {
            let is_task = |request: &&mut ray::Request| {
                matches!(request, ray::Request::Submit { .. } | ray::Request::SubmitWith { .. })
            };
            let mut tasks = requests.iter_mut().filter(is_task);
            let only = tasks.next()?;
            if tasks.next().is_some() { None } else { lone_task(only) }
        }
        _ => None,
    }
}
