//! `tripod.v1.Jobs`.

use prost::Message as _;
use tonic::{Request, Response, Status};
use tripod_gateway::{Consistency, Gateway};
use tripod_port::{CallContext, Short};
use tripod_proto::tripod::v1::jobs_server::Jobs;
use tripod_proto::tripod::v1::{
    CreateJobRequest, DeleteJobRequest, DeleteJobResponse, EndTaskRequest, EndTaskResponse, GetJobRequest,
    Job, ListJobsRequest, ListJobsResponse, NoteHostRequest, NoteHostResponse, NoteJobRequest,
    NoteJobResponse,
};
use tripod_state::ids::{Incarnation, TaskId};
use tripod_state::{Answer, Command, Fault, State, job, task};

use crate::{decode, encode, resolve, status};

/// Open barriers of a job that are shown: each one costs as much time as it has members, while the state is
/// locked, and nobody reads more.
const BARRIERS_SHOWN: usize = 32;

/// Tasks of a job that is looked at while apply waits: more take longer than it may.
const TASKS_AT_ONCE: u64 = 1_024;

pub(super) struct Service {
    gateway: Gateway,
}

impl Service {
    pub(super) fn new(gateway: Gateway) -> Self {
        Self { gateway }
    }

    async fn submit(&self, command: job::Command) -> Result<Answer, Status> {
        status::answer(self.gateway.submit(Command::Job(command)).await)
    }

    async fn read<T>(&self, look: impl Fn(&State) -> T) -> Result<T, Status> {
        let read = self.gateway.read(Consistency::Linearizable, look).await;
        read.map_err(|outage| status::of_outage(&outage))
    }
}

#[tonic::async_trait]
impl Jobs for Service {
    async fn create(&self, request: Request<CreateJobRequest>) -> Result<Response<Job>, Status> {
        let answer = self.submit(decode::create_job(request.into_inner())?).await?;
        let Answer::Job(summary) = answer else { return Err(status::unexpected(&answer)) };
        let members = self.read(State::members).await?;
        Ok(Response::new(encode::job(&summary, &members)))
    }

    async fn get(&self, request: Request<GetJobRequest>) -> Result<Response<Job>, Status> {
        let call = CallContext::bytes(request.extensions()).cloned();
        let name = request.into_inner().name;
        let tasks = |state: &State| state.job_named(&name).map_or(0, |job| state.sizes(job).1);
        if self.read(tasks).await? <= TASKS_AT_ONCE {
            let found = self.read(|state| in_full(state, &name)).await?;
            return found.map(Response::new).map_err(|fault| status::of_fault(&fault));
        }
        let no_room = |short: Short| status::of_outage(&short.into());
        let making = match &call {
            Some(call) => Some(call.making().await.map_err(no_room)?),
            None => None,
        };
        let look = move |_, state: &State| in_full(state, &name);
        let read = self.gateway.read_aside(Consistency::Linearizable, look).await;
        let found = read.map_err(|outage| status::of_outage(&outage))?;
        let mut answer = found.map(Response::new).map_err(|fault| status::of_fault(&fault))?;
        if let Some(making) = making {
            let made = making.made(answer.get_ref().encoded_len() as u64).map_err(no_room)?;
            answer.extensions_mut().insert(made);
        }
        Ok(answer)
    }

    async fn list(&self, _: Request<ListJobsRequest>) -> Result<Response<ListJobsResponse>, Status> {
        let sized = |state: &State, job: job::Summary| (state.bytes_of(job.id).unwrap_or_default(), job);
        let all = |state: &State| state.jobs().into_iter().map(|job| sized(state, job)).collect::<Vec<_>>();
        let (jobs, members) = self.read(|state| (all(state), state.members())).await?;
        let jobs = jobs.iter().map(|(memory_bytes, summary)| Job {
            memory_bytes: *memory_bytes,
            ..encode::job(summary, &members)
        });
        let jobs = jobs.collect();
        Ok(Response::new(ListJobsResponse { jobs }))
    }

    async fn delete(
        &self,
        request: Request<DeleteJobRequest>,
    ) -> Result<Response<DeleteJobResponse>, Status> {
        self.submit(job::Command::Delete { name: request.into_inner().name }).await?;
        Ok(Response::new(DeleteJobResponse {}))
    }

    async fn note(&self, request: Request<NoteJobRequest>) -> Result<Response<NoteJobResponse>, Status> {
        let NoteJobRequest { name, note } = request.into_inner();
        self.submit(job::Command::Note { name, note }).await?;
        Ok(Response::new(NoteJobResponse {}))
    }

    async fn end_task(&self, request: Request<EndTaskRequest>) -> Result<Response<EndTaskResponse>, Status> {
        let EndTaskRequest { name, task_id, incarnation } = request.into_inner();
        let found = self.read(|state| resolve::in_state(state, &name)).await?;
        let job = found.map_err(|fault| status::of_fault(&fault))?;
        let (task, incarnation) = (TaskId(task_id), Incarnation(incarnation));
        status::answer(self.gateway.lost(job, task, incarnation).await)?;
        Ok(Response::new(EndTaskResponse {}))
    }

    async fn note_host(
        &self,
        request: Request<NoteHostRequest>,
    ) -> Result<Response<NoteHostResponse>, Status> {
        let NoteHostRequest { name, task_id, incarnation, host } = request.into_inner();
        let found = self.read(|state| resolve::in_state(state, &name)).await?;
        let job = found.map_err(|fault| status::of_fault(&fault))?;
        let (scope, task, incarnation) = (resolve::scope(job), TaskId(task_id), Incarnation(incarnation));
        let note = task::Command::NoteHost { scope, task, incarnation, host };
        status::answer(self.gateway.submit(Command::Task(note)).await)?;
        Ok(Response::new(NoteHostResponse {}))
    }
}

/// Everything about the job of that name.
fn in_full(state: &State, name: &str) -> Result<Job, Fault> {
    let id = resolve::in_state(state, name)?;
    let summary = state.job(id).ok_or_else(|| resolve::unknown(name))?;
    let scope = resolve::scope(id);
    let (tasks, barriers) = (state.tasks(scope, &[])?, state.barriers(scope, BARRIERS_SHOWN)?);
    let note = state.job_note(id).unwrap_or_default().to_owned();
    let memory_bytes = state.bytes_of(id).unwrap_or_default();
    let silence_limit_ms = |task: &task::Info| {
        let silence = state.silence(id, task.task, task.incarnation, None);
        silence.map_or(0, |silence| silence.tolerated_ms.0)
    };
    let mut job = encode::job_in_full(&summary, &state.members(), &tasks, &barriers);
    for (shown, task) in job.tasks.iter_mut().zip(&tasks.tasks) {
        shown.silence_limit_ms = silence_limit_ms(task);
        let process = state.process(id, task.task, task.incarnation).unwrap_or_default();
        shown.host = process.host.to_owned();
        if process.ended && shown.reason == status::SILENT {
            shown.reason = status::ENDED.to_owned();
            shown.error =
                format!("the process of task {} has ended, as whoever started it has said", task.task);
        }
    }
    Ok(Job { note, memory_bytes, ..job })
}
