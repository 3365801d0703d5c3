//! How much memory a command needs, and for what: so that who leads can refuse it before it is replicated.
//!
//! What ends something, says that it ended, or makes it smaller needs nothing: it must always get through, for it is the
//! way back. What goes on with something that is there, as an arrival at a barrier that others wait at, needs a little,
//! and is refused last: a gang that is under way is to come to its end. What begins something is refused first.

use crate::bounds::listed;
use crate::command::{Command, Envelope};
use crate::fault::CITED_TEXT_BYTES_MAX;
use crate::ids::{BarrierName, JobId};
use crate::job::record::Job;
use crate::mindspore::{cluster, topology};
use crate::ray::Request;
use crate::state::State;
use crate::{barrier, job, kv, mars, mindspore, ray, runtime, task};

/// What is taken for something new besides what its caller says: its place in tables and indexes.
const ELEMENT_BYTES: u64 = 1 << 10;
/// What is taken for each task, device or id of a list: in a command the smallest of them have one byte.
const LISTED_BYTES: u64 = 64;
/// What a job has from the beginning.
const JOB_BYTES: u64 = 4 << 10;

/// What a command needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// Whose memory; `None`: what belongs to no job.
    pub job: Option<JobId>,
    pub purpose: Purpose,
    /// How much, roughly: rather too much than too little.
    pub bytes: u64,
}

/// What a command needs memory for, from what is refused last to what is refused first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Nothing: it ends something, or is bounded by itself.
    Nothing,
    /// To go on with what is there.
    GoOn,
    /// For something new.
    Begin,
}

/// The most that a command can need that is `encoded` bytes long in the log, whatever the state is. `None`: only a state can
/// tell.
#[must_use]
pub fn at_most(command: &Command, encoded: usize) -> Option<u64> {
    let bytes = encoded as u64;
    match command {
        Command::Retried(command) => at_most(command, encoded),
        Command::By(by) => at_most(&by.command, encoded),
        Command::Kv(_) => Some(key_bytes(bytes)),
        Command::Barrier(barrier::Command::Arrive { tasks, .. }) => Some(barrier_bytes(bytes, tasks.len())),
        _ => None,
    }
}

impl State {
    /// What a command needs that is `encoded` bytes long in the log. One that was executed and is asked for again needs
    /// nothing.
    #[must_use]
    pub fn need(&self, envelope: &Envelope, encoded: usize) -> Need {
        if envelope.stamp.is_some_and(|stamp| self.sessions.remembers(stamp)) {
            return Need { job: None, purpose: Purpose::Nothing, bytes: 0 };
        }
        self.need_of(&envelope.command, encoded as u64)
    }

    fn need_of(&self, command: &Command, encoded: u64) -> Need {
        let of_job = |id: JobId, needs: &dyn Fn(&Job) -> (Purpose, u64)| {
            // What is about no job is refused by apply.
            let (purpose, bytes) = self.jobs.get(id).map_or((Purpose::Nothing, 0), needs);
            Need { job: Some(id), purpose, bytes: if purpose == Purpose::Nothing { 0 } else { bytes } }
        };
        match command {
            Command::Retried(command) => self.need_of(command, encoded),
            Command::By(by) => self.need_of(&by.command, encoded),
            Command::Job(job::Command::Create { spec, .. }) => {
                let listed = listed_bytes(spec.groups.len() + spec.listeners.len());
                let bytes = encoded.saturating_add(JOB_BYTES).saturating_add(listed);
                Need { job: None, purpose: Purpose::Begin, bytes }
            }
            Command::Kv(command) => of_job(command.scope().job, &|job| of_key(job, command, encoded)),
            Command::Task(command) => of_job(command.scope().job, &|job| of_task(job, command, encoded)),
            Command::Barrier(command) => {
                of_job(command.scope().job, &|job| of_barrier(job, command, encoded))
            }
            Command::Runtime(command) => {
                of_job(command.scope().job, &|job| of_runtime(job, command, encoded))
            }
            Command::Ray(ray::Command::Ask { scope, origin, request }) => {
                let (purpose, besides) = of_request(request);
                let bytes = encoded.saturating_add(besides);
                of_job(scope.job, &|job| {
                    let again = origin.stamp.is_some_and(|stamp| {
                        job.domains.ray.as_ref().is_some_and(|ray| ray.sessions.remembers(stamp))
                    });
                    if again { (Purpose::Nothing, 0) } else { (purpose, bytes) }
                })
            }
            Command::Mindspore(mindspore::Command::Topology { scope, request }) => {
                of_job(scope.job, &|job| of_topology(job, request, encoded))
            }
            Command::Mindspore(
                mindspore::Command::Cluster { scope, request }
                | mindspore::Command::Planned { scope, request, .. },
            ) => of_job(scope.job, &|_| of_cluster(request, encoded)),
            Command::Mars(mars::Command::Ask { scope, request, .. }) => {
                of_job(scope.job, &|_| of_mars(request, encoded))
            }
            // Notes are as many as jobs, and sessions, nodes and tokens have bounds of their own, in bytes.
            Command::Job(job::Command::Delete { .. } | job::Command::Note { .. })
            | Command::Ray(ray::Command::Lead { .. })
            | Command::Mindspore(mindspore::Command::Lead { .. })
            | Command::Mars(mars::Command::Lead { .. })
            | Command::Session(_)
            | Command::Member(_)
            | Command::Level(_)
            | Command::Token(_)
            | Command::Identity(_) => Need { job: None, purpose: Purpose::Nothing, bytes: 0 },
        }
    }
}

fn of_key(job: &Job, command: &kv::Command, encoded: u64) -> (Purpose, u64) {
    let known = |key: &str| job.store.get(&kv::normalize(key)).map(|entry| entry.value.len());
    let purpose = match command {
        kv::Command::Insert { key, value, .. }
        | kv::Command::InsertAs { key, value, .. }
        | kv::Command::CompareAndSet { key, value, .. } => match known(key) {
            Some(length) if value.len() <= length => Purpose::Nothing,
            Some(_) | None => Purpose::Begin,
        },
        // A number is never long.
        kv::Command::Increment { key, .. } if known(key).is_some() => Purpose::GoOn,
        kv::Command::Increment { .. } => Purpose::Begin,
        kv::Command::Delete { .. } => Purpose::Nothing,
    };
    (purpose, key_bytes(encoded))
}

fn key_bytes(encoded: u64) -> u64 {
    encoded.saturating_add(ELEMENT_BYTES)
}

fn of_task(job: &Job, command: &task::Command, encoded: u64) -> (Purpose, u64) {
    match command {
        task::Command::ExchangeDevices { task, devices, .. } => {
            let again = job.tasks.get(*task).devices.is_some();
            let purpose = if again { Purpose::GoOn } else { Purpose::Begin };
            (purpose, encoded.saturating_add(listed_bytes(devices.len())).saturating_add(ELEMENT_BYTES))
        }
        task::Command::Register { .. } | task::Command::NoteInterval { .. } => (Purpose::GoOn, ELEMENT_BYTES),
        task::Command::RegisterFrom { .. } => {
            (Purpose::GoOn, encoded.saturating_add(ELEMENT_BYTES).saturating_add(ELEMENT_BYTES))
        }
        // For people alone: it waits until there is room.
        task::Command::NoteHost { .. } => (Purpose::Begin, encoded.saturating_add(ELEMENT_BYTES)),
        task::Command::NoteOrigin { .. } => {
            let elements = ELEMENT_BYTES.saturating_add(ELEMENT_BYTES);
            (Purpose::Begin, encoded.saturating_add(encoded).saturating_add(elements))
        }
        task::Command::Alive { tasks, .. } => {
            (Purpose::GoOn, listed_bytes(tasks.len()).saturating_add(ELEMENT_BYTES))
        }
        // Every open barrier of the task may cite the text.
        task::Command::ReportError { message, .. } => {
            let cited = message.len().min(CITED_TEXT_BYTES_MAX) as u64;
            let barriers = job.barriers.open().len() as u64;
            (Purpose::GoOn, encoded.saturating_add(cited.saturating_mul(barriers)))
        }
        task::Command::Shutdown { .. }
        | task::Command::Reset { .. }
        | task::Command::Poll { .. }
        | task::Command::Expire { .. }
        | task::Command::Pushed { .. }
        | task::Command::RefuseBeat { .. }
        | task::Command::End { .. }
        | task::Command::Ended { .. } => (Purpose::Nothing, 0),
    }
}

fn of_barrier(job: &Job, command: &barrier::Command, encoded: u64) -> (Purpose, u64) {
    let is_known = |name: &str| job.barriers.get(&BarrierName::from(name)).is_some();
    match command {
        barrier::Command::Arrive { barrier, .. } if is_known(barrier) => (Purpose::GoOn, ELEMENT_BYTES),
        barrier::Command::Arrive { tasks, .. } => (Purpose::Begin, barrier_bytes(encoded, tasks.len())),
        barrier::Command::Cancel { barrier, .. } if is_known(barrier) => (Purpose::Nothing, 0),
        barrier::Command::Cancel { .. } => (Purpose::Begin, barrier_bytes(encoded, 0)),
        barrier::Command::Expire { .. } => (Purpose::Nothing, 0),
    }
}

/// Of a barrier that begins.
fn barrier_bytes(encoded: u64, tasks: usize) -> u64 {
    encoded.saturating_add(listed_bytes(tasks)).saturating_add(2 * ELEMENT_BYTES)
}

fn of_runtime(job: &Job, command: &runtime::Command, encoded: u64) -> (Purpose, u64) {
    let is_known = |id| job.runtime.as_ref().is_some_and(|runtime| runtime.barrier(id).is_some());
    let bytes = encoded.saturating_add(ELEMENT_BYTES);
    match command {
        runtime::Command::Enumerate { .. } | runtime::Command::Put { .. } => (Purpose::Begin, bytes),
        runtime::Command::Connect { .. } => (Purpose::GoOn, bytes),
        runtime::Command::ConnectFrom { .. } => (Purpose::GoOn, bytes.saturating_add(ELEMENT_BYTES)),
        runtime::Command::Arrive { barrier, .. } if is_known(barrier) => (Purpose::GoOn, ELEMENT_BYTES),
        runtime::Command::GiveUp { barrier, .. } if is_known(barrier) => (Purpose::Nothing, 0),
        runtime::Command::Arrive { .. } | runtime::Command::GiveUp { .. } => (Purpose::Begin, bytes),
        runtime::Command::Withdraw { .. }
        | runtime::Command::Shutdown { .. }
        | runtime::Command::GiveUpShutdown { .. } => (Purpose::Nothing, 0),
    }
}

fn of_topology(job: &Job, request: &topology::Request, encoded: u64) -> (Purpose, u64) {
    let topology = job.domains.topology.as_deref();
    let purpose = match request {
        topology::Request::Register { .. } => Purpose::GoOn,
        topology::Request::Write { name, value } => {
            let known = topology.and_then(|topology| topology.metadata().get(name.as_str()));
            let fits = known.map_or(value.is_empty(), |before| value.len() <= before.len());
            if fits { Purpose::Nothing } else { Purpose::Begin }
        }
        topology::Request::Unregister { .. } | topology::Request::Delete { .. } => Purpose::Nothing,
    };
    (purpose, encoded.saturating_add(ELEMENT_BYTES))
}

fn of_cluster(request: &cluster::Request, encoded: u64) -> (Purpose, u64) {
    let purpose = match request {
        cluster::Request::Register { .. } | cluster::Request::Event { .. } => Purpose::GoOn,
        cluster::Request::ScaleOut { .. } | cluster::Request::Switch { .. } => Purpose::Begin,
        cluster::Request::Finish { .. }
        | cluster::Request::Done { .. }
        | cluster::Request::ScaleIn { .. }
        | cluster::Request::Abort => Purpose::Nothing,
    };
    (purpose, encoded.saturating_add(ELEMENT_BYTES))
}

/// What a chunk takes, and its task and its object when they are there. What is committed is there already; its tasks come
/// window by window.
const CHUNK_BYTES: u64 = 2 << 10;

fn of_mars(request: &mars::Request, encoded: u64) -> (Purpose, u64) {
    use mars::Request as R;
    let chunks = |content: &mars::Graph| (content.chunks.len() as u64).saturating_mul(CHUNK_BYTES);
    let (purpose, besides) = match request {
        R::CreateSession { .. } | R::Upload { .. } | R::Begin { .. } | R::CreateMutable { .. } => {
            (Purpose::Begin, ELEMENT_BYTES)
        }
        R::Submit { content, .. } => (Purpose::Begin, ELEMENT_BYTES.saturating_add(chunks(content))),
        R::Add { part, .. } => (Purpose::Begin, chunks(&part.content)),
        R::Commit { .. } | R::SealMutable { .. } => (Purpose::GoOn, ELEMENT_BYTES),
        R::DeleteSession { .. }
        | R::Stop { .. }
        | R::DeleteGraph { .. }
        | R::Decref { .. }
        | R::DeleteMutable { .. }
        | R::SealReported { .. } => (Purpose::Nothing, 0),
    };
    (purpose, encoded.saturating_add(besides))
}

fn listed_bytes(elements: usize) -> u64 {
    (elements as u64).saturating_mul(LISTED_BYTES)
}

/// With what it takes besides what it says.
fn of_request(request: &Request) -> (Purpose, u64) {
    let (purpose, elements) = match request {
        // The task, and its results.
        Request::Submit { .. } | Request::SubmitWith { .. } => (Purpose::Begin, 2),
        Request::Put { .. }
        | Request::Contain { .. }
        | Request::ExportFunction { .. }
        | Request::ExportVariable { .. } => (Purpose::Begin, 1),
        Request::RegisterStore { .. }
        | Request::RegisterWorker(_)
        | Request::RegisterWorkerWith { .. }
        | Request::RegisterFunction { .. }
        | Request::Describe { .. }
        | Request::Get { .. }
        | Request::Alias { .. }
        | Request::AddReferences { .. } => (Purpose::GoOn, 1),
        Request::Batch(requests) => {
            let all = requests.iter().map(|request| match request {
                // Refused by apply.
                Request::Batch(_) => (Purpose::Nothing, 0),
                request => of_request(request),
            });
            return all.fold((Purpose::Nothing, 0), |(purpose, sum): (Purpose, u64), (next, bytes)| {
                (purpose.max(next), sum.saturating_add(bytes))
            });
        }
        Request::Ready { .. }
        | Request::DropReferences { .. }
        | Request::Idle { .. }
        | Request::GiveBack { .. }
        | Request::KillWorkers
        | Request::FetchFailed { .. }
        | Request::Leave { .. }
        | Request::Cancel { .. } => return (Purpose::Nothing, 0),
    };
    (purpose, listed_bytes(listed(request)).saturating_add(elements * ELEMENT_BYTES))
}
