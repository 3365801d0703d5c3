//! `tripod.v1.Jobs`.

use std::time::Duration;

use prost::Message as _;
use tokio::time::timeout;
use tonic::{Request, Response, Status};
use tripod_audit::{Auditor, Record};
use tripod_gate::Admitted;
use tripod_gateway::{Consistency, Gateway, HeldState};
use tripod_port::{CallContext, Short};
use tripod_proto::tripod::v1::jobs_server::Jobs;
use tripod_proto::tripod::v1::{
    AsOf, CreateJobRequest, DeleteJobRequest, DeleteJobResponse, EndTaskRequest, EndTaskResponse,
    GetJobRequest, Job, ListJobsRequest, ListJobsResponse, NoteHostRequest, NoteHostResponse, NoteJobRequest,
    NoteJobResponse,
};
use tripod_state::ids::{Incarnation, JobId, TaskId};
use tripod_state::task::Origin;
use tripod_state::{Answer, Command, Fault, State, job, task};

use crate::audited::{audited, call};
use crate::{admitted, decode, encode, resolve, status};

/// Open barriers of a job that are shown: each one costs as much time as it has members, while the state is
/// locked, and nobody reads more.
const BARRIERS_SHOWN: usize = 32;

/// Tasks of a job that is looked at while apply waits: more take longer than it may.
const TASKS_AT_ONCE: u64 = 1_024;

/// How long a look waits for somebody to lead before it is content with what this node remembers: longer than an election
/// usually takes.
const LEADER_PATIENCE: Duration = Duration::from_secs(1);

pub(super) struct Service {
    gateway: Gateway,
    auditor: Auditor,
}

impl Service {
    pub(super) fn new(gateway: Gateway, auditor: Auditor) -> Self {
        Self { gateway, auditor }
    }

    async fn submit(&self, command: job::Command) -> Result<Answer, Status> {
        status::answer(self.gateway.submit(Command::Job(command)).await)
    }

    async fn read<T>(&self, look: impl Fn(&State) -> T) -> Result<T, Status> {
        self.read_as(Consistency::Linearizable, look).await
    }

    async fn read_as<T>(&self, consistency: Consistency, look: impl Fn(&State) -> T) -> Result<T, Status> {
        self.gateway.read(consistency, look).await.map_err(|outage| status::of_outage(&outage))
    }

    /// The same, and when the leader heard its tasks.
    async fn with_ages(&self, mut job: Job) -> Job {
        let tasks = u32::try_from(job.tasks.len()).unwrap_or(u32::MAX);
        if job.as_of.is_some() {
            return job;
        }
        let Some(ages) = self.gateway.heartbeat_ages(JobId(job.id), tasks).await else { return job };
        for task in &mut job.tasks {
            let heard = ages.get(&TaskId(task.task_id));
            let own = heard.filter(|(incarnation, _)| incarnation.0 == task.incarnation);
            task.heard_ms_ago = own.map(|(_, age)| age.0);
        }
        Job { heard_told: true, ..job }
    }

    /// What this node has to go by if nobody answers for the cluster within [`LEADER_PATIENCE`]; the time is not in it yet.
    async fn memory_without_a_leader(&self) -> Option<AsOf> {
        let why = match timeout(LEADER_PATIENCE, self.read(|_| ())).await {
            Ok(Ok(())) => return None,
            Ok(Err(status)) => status.message().to_owned(),
            Err(_) => format!("no leader within {} s", LEADER_PATIENCE.as_secs()),
        };
        let status = self.gateway.admin().status();
        Some(AsOf { node_id: status.node.0, index: status.applied.0, now_ms: 0, why })
    }
}

#[tonic::async_trait]
impl Jobs for Service {
    async fn create(&self, request: Request<CreateJobRequest>) -> Result<Response<Job>, Status> {
        admitted::about_job(request.extensions(), &request.get_ref().name)?;
        let record = call(request.extensions(), "Jobs/Create");
        let told = request.into_inner();
        let record = Record { job: told.name.as_str().into(), ..record };
        let create = async {
            let answer = self.submit(decode::create_job(told)?).await?;
            let Answer::Job(summary) = answer else { return Err(status::unexpected(&answer)) };
            let members = self.read(State::members).await?;
            Ok::<_, Status>(Response::new(encode::job(&summary, &members)))
        };
        audited(&self.auditor, record, create).await
    }

    async fn get(&self, request: Request<GetJobRequest>) -> Result<Response<Job>, Status> {
        admitted::about_job(request.extensions(), &request.get_ref().name)?;
        let call = CallContext::bytes(request.extensions()).cloned();
        let GetJobRequest { name, or_from_memory } = request.into_inner();
        let as_of = if or_from_memory { self.memory_without_a_leader().await } else { None };
        let consistency = if as_of.is_some() { Consistency::Local } else { Consistency::Linearizable };
        let tasks = |state: &State| state.job_named(&name).map_or(0, |job| state.sizes(job).1);
        if self.read_as(consistency, tasks).await? <= TASKS_AT_ONCE {
            let found = self.read_as(consistency, |state| in_full(state, &name, as_of.clone())).await?;
            let job = found.map_err(|fault| status::of_fault(&fault))?;
            return Ok(Response::new(self.with_ages(job).await));
        }
        let no_room = |short: Short| status::of_outage(&short.into());
        let making = match &call {
            Some(call) => Some(call.making().await.map_err(no_room)?),
            None => None,
        };
        let look = move |_, state: &State| in_full(state, &name, as_of);
        let read = self.gateway.read_aside(consistency, look).await;
        let found = read.map_err(|outage| status::of_outage(&outage))?;
        let job = found.map_err(|fault| status::of_fault(&fault))?;
        let mut answer = Response::new(self.with_ages(job).await);
        if let Some(making) = making {
            let made = making.made(answer.get_ref().encoded_len() as u64).map_err(no_room)?;
            answer.extensions_mut().insert(made);
        }
        Ok(answer)
    }

    async fn list(&self, request: Request<ListJobsRequest>) -> Result<Response<ListJobsResponse>, Status> {
        let admitted = Admitted::of(request.extensions());
        let sized = |state: &State, job: job::Summary| (state.bytes_of(job.id).unwrap_or_default(), job);
        let all = |state: &State| state.jobs().into_iter().map(|job| sized(state, job)).collect::<Vec<_>>();
        let (jobs, members) = self.read(|state| (all(state), state.members())).await?;
        let is_shown =
            |job: &job::Summary| admitted.is_none_or(|admitted| admitted.shows_job(job.name.as_str()));
        let jobs = jobs.iter().filter(|(_, summary)| is_shown(summary)).map(|(memory_bytes, summary)| Job {
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
        admitted::about_job(request.extensions(), &request.get_ref().name)?;
        let record = call(request.extensions(), "Jobs/Delete");
        let name = request.into_inner().name;
        let record = Record { job: name.as_str().into(), ..record };
        let delete = async {
            self.submit(job::Command::Delete { name }).await?;
            Ok::<_, Status>(Response::new(DeleteJobResponse {}))
        };
        audited(&self.auditor, record, delete).await
    }

    async fn note(&self, request: Request<NoteJobRequest>) -> Result<Response<NoteJobResponse>, Status> {
        admitted::about_job(request.extensions(), &request.get_ref().name)?;
        let record = call(request.extensions(), "Jobs/Note");
        let NoteJobRequest { name, note } = request.into_inner();
        let record = Record { job: name.as_str().into(), ..record };
        let keep = async {
            self.submit(job::Command::Note { name, note }).await?;
            Ok::<_, Status>(Response::new(NoteJobResponse {}))
        };
        audited(&self.auditor, record, keep).await
    }

    async fn end_task(&self, request: Request<EndTaskRequest>) -> Result<Response<EndTaskResponse>, Status> {
        admitted::about_job(request.extensions(), &request.get_ref().name)?;
        let EndTaskRequest { name, task_id, incarnation, end } = request.into_inner();
        let found = self.read(|state| resolve::in_state(state, &name)).await?;
        let job = found.map_err(|fault| status::of_fault(&fault))?;
        let (task, incarnation) = (TaskId(task_id), Incarnation(incarnation));
        let outcome = match end {
            Some(end) => self.gateway.ended(job, task, incarnation, decode::process_end(end)).await,
            None => self.gateway.lost(job, task, incarnation).await,
        };
        status::answer(outcome)?;
        Ok(Response::new(EndTaskResponse {}))
    }

    async fn note_host(
        &self,
        request: Request<NoteHostRequest>,
    ) -> Result<Response<NoteHostResponse>, Status> {
        admitted::about_job(request.extensions(), &request.get_ref().name)?;
        let NoteHostRequest { name, task_id, incarnation, host, pid, launcher, process } =
            request.into_inner();
        let found = self.read(|state| resolve::in_state(state, &name)).await?;
        let job = found.map_err(|fault| status::of_fault(&fault))?;
        let (scope, task, incarnation) = (resolve::scope(job), TaskId(task_id), Incarnation(incarnation));
        if let Some(process) = process {
            let tasks = self.read_as(Consistency::Local, |state| state.tasks_of(job)).await?;
            if u32::try_from(task_id).is_ok_and(|task| task < tasks) {
                let held = HeldState::of_letter(&process.state).map(|state| (state, process.waits_in));
                self.gateway.note_held((job, task, incarnation), held);
            }
            return Ok(Response::new(NoteHostResponse {}));
        }
        let note = if pid == 0 && launcher.is_empty() {
            task::Command::NoteHost { scope, task, incarnation, host }
        } else {
            let origin = Box::new(Origin::started(host, pid, launcher));
            task::Command::NoteOrigin { scope, task, incarnation, origin }
        };
        status::answer(self.gateway.submit(Command::Task(note)).await)?;
        Ok(Response::new(NoteHostResponse {}))
    }
}

/// Everything about the job of that name. `as_of`: the node remembers it, and nobody else was asked.
fn in_full(state: &State, name: &str, as_of: Option<AsOf>) -> Result<Job, Fault> {
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
        shown.host = state.host(id, task.task, task.incarnation).to_owned();
        shown.origin = state.origin(id, task.task, task.incarnation).map(encode::origin);
        if process.ended && shown.reason == status::SILENT {
            shown.reason = status::ENDED.to_owned();
            shown.error =
                format!("the process of task {} has ended, as whoever started it has said", task.task);
        }
        let standing = state.standing(id, task.task);
        if standing == Some(task::Standing::Ended) {
            shown.reason = status::ENDED.to_owned();
        }
        shown.standing = standing.map_or("", task::Standing::word).to_owned();
        shown.end = state.end_of(id, task.task, task.incarnation).map(encode::process_end);
    }
    let as_of = as_of.map(|as_of| AsOf { now_ms: state.now_ms().0, ..as_of });
    Ok(Job { note, memory_bytes, as_of, ..job })
}
