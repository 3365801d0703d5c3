//! How long the lists of a command may be, before it is encoded and before it is appended.
//!
//! Lists are the one part of a command that can be a thousand times larger in memory than on a wire, and that can make
//! applying it slow on every node. So they are bounded before a command becomes an entry: what is committed can be read
//! back, by every build, in the memory that a node has. Whether a list makes sense is for apply to say; what is refused
//! here makes sense in no state.

use crate::command::Command;
use crate::fault::Fault;
use crate::ids::JobId;
use crate::limits::{DEVICES_MAX, GROUPS_MAX, JOB_TASKS_MAX, LISTED_ANYWAY, NODES_MAX, within};
use crate::mindspore;
use crate::ray::limits::{
    ARGUMENTS_MAX, BATCH_IDS_MAX, BATCH_MAX, CONTAINED_MAX, DIMENSIONS_MAX, HELD_MAX, OBJECTS_MAX, PEERS_MAX,
    QUEUE_MAX, REFERENCES_MAX, RESOURCES_MAX,
};
use crate::ray::{Argument, Decision, Request};
use crate::state::State;
use crate::{barrier, job, level, mars, ray, task};

impl State {
    /// How many tasks a job can have. One that is not there may be a job that this replica has not heard of yet.
    #[must_use]
    pub fn tasks_of(&self, job: JobId) -> u32 {
        self.jobs.get(job).map_or(JOB_TASKS_MAX, |job| job.spec.tasks)
    }
}

impl Command {
    /// Whether its lists are no longer than what they are about can need. For whoever takes commands in. `tasks_of`
    /// tells how many tasks a job can have; it is asked for long lists only.
    ///
    /// # Errors
    /// [`Fault::LimitExceeded`].
    pub fn check_lists(&self, tasks_of: &dyn Fn(JobId) -> u32) -> Result<(), Fault> {
        let check_tasks = |what, job, list: usize| check_tasks(what, list, || tasks_of(job));
        match self {
            Self::Barrier(barrier::Command::Arrive { scope, tasks, .. }) => {
                check_tasks("tasks of a barrier", scope.job, tasks.len())
            }
            Self::Task(command) => match command {
                task::Command::Alive { scope, tasks, .. } => {
                    check_tasks("tasks asked about", scope.job, tasks.len())
                }
                task::Command::Expire { job, silent } => check_tasks("silent tasks", *job, silent.len()),
                task::Command::Pushed { job, tasks } => check_tasks("told tasks", *job, tasks.len()),
                task::Command::ExchangeDevices { devices, .. } => {
                    at_most("devices of a task", devices.len(), DEVICES_MAX as u64)
                }
                task::Command::Register { .. }
                | task::Command::Shutdown { .. }
                | task::Command::Reset { .. }
                | task::Command::ReportError { .. }
                | task::Command::Poll { .. }
                | task::Command::RefuseBeat { .. }
                | task::Command::NoteInterval { .. }
                | task::Command::NoteHost { .. }
                | task::Command::End { .. }
                | task::Command::Ended { .. }
                | task::Command::RegisterFrom { .. }
                | task::Command::NoteOrigin { .. } => Ok(()),
            },
            Self::Job(job::Command::Create { spec, .. }) => {
                at_most("groups of a job", spec.groups.len(), GROUPS_MAX as u64)?;
                at_most("listeners of a job", spec.listeners.len(), u64::from(JOB_TASKS_MAX))
            }
            Self::Level(level::Command::Raise { heard, .. }) => {
                at_most("nodes heard", heard.len(), NODES_MAX as u64)
            }
            Self::Ray(ray::Command::Ask { request, .. }) => check_request(request),
            Self::Ray(ray::Command::Lead { decision, .. }) => check_decision(decision),
            Self::Mindspore(
                mindspore::Command::Cluster { request, .. } | mindspore::Command::Planned { request, .. },
            ) => match request {
                mindspore::cluster::Request::ScaleIn { nodes } => {
                    at_most("nodes that are to leave", nodes.len(), mindspore::limits::NODES_MAX)
                }
                _ => Ok(()),
            },
            Self::Mindspore(mindspore::Command::Lead { decision, .. }) => check_found_out(decision),
            Self::Mars(mars::Command::Ask { request, .. }) => check_mars(request),
            Self::Retried(command) => command.check_lists(tasks_of),
            Self::By(by) => {
                by.identity.check()?;
                by.command.check_lists(tasks_of)
            }
            Self::Job(job::Command::Delete { .. } | job::Command::Note { .. })
            | Self::Kv(_)
            | Self::Barrier(barrier::Command::Cancel { .. } | barrier::Command::Expire { .. })
            | Self::Session(_)
            | Self::Member(_)
            | Self::Token(_)
            | Self::Identity(_)
            | Self::Runtime(_)
            | Self::Mindspore(mindspore::Command::Topology { .. })
            | Self::Mars(mars::Command::Lead { .. })
            | Self::Level(level::Command::Pin { .. } | level::Command::Unpin { .. }) => Ok(()),
        }
    }
}

fn check_mars(request: &mars::Request) -> Result<(), Fault> {
    use mars::Request as R;
    use mars::limits::{DECREF_KEYS_MAX, DIMS_MAX, LABELS_MAX, MUTABLE_CHUNKS_MAX, TARGETS_MAX};
    match request {
        R::CreateSession { labels, .. } => at_most("labels of a session", labels.len(), LABELS_MAX as u64),
        R::Submit { targets, content, .. } => {
            at_most("targets of a graph", targets.len(), TARGETS_MAX)?;
            check_graph(content)
        }
        R::Begin { targets, .. } => at_most("targets of a graph", targets.len(), TARGETS_MAX),
        R::Add { part, .. } => check_graph(&part.content),
        R::Decref { keys, counts, .. } => {
            at_most("keys of one request", keys.len().max(counts.len()), DECREF_KEYS_MAX)
        }
        R::CreateMutable { definition, .. } => {
            let parts: usize = definition.nsplits.iter().map(Vec::len).sum();
            at_most("axes of a mutable tileable", definition.nsplits.len(), DIMS_MAX)?;
            at_most("chunks of a mutable tileable", parts, MUTABLE_CHUNKS_MAX + DIMS_MAX)?;
            let columns = definition.columns.len().max(definition.defaults.len());
            at_most("columns of a frame", columns, mars::limits::COLUMNS_MAX)
        }
        R::SealReported { chunks, .. } => {
            at_most("chunks of a mutable tileable", chunks.len(), MUTABLE_CHUNKS_MAX)
        }
        R::DeleteSession { .. }
        | R::Upload { .. }
        | R::Commit { .. }
        | R::Stop { .. }
        | R::DeleteGraph { .. }
        | R::SealMutable { .. }
        | R::DeleteMutable { .. } => Ok(()),
    }
}

/// A list within a node is bounded with all of its kind: so is what a command takes in memory.
fn check_graph(graph: &mars::Graph) -> Result<(), Fault> {
    use mars::limits::{COMMAND_CHUNKS_MAX, GRAPH_INPUTS_MAX, LISTED_CHUNKS_MAX, SPLITS_MAX, TILEABLES_MAX};
    at_most("chunks in one command", graph.chunks.len(), COMMAND_CHUNKS_MAX)?;
    at_most("tileables of a graph", graph.tileables.len(), TILEABLES_MAX)?;
    let inputs: usize = graph.chunks.iter().map(|chunk| chunk.inputs.len()).sum();
    at_most("inputs of a graph", inputs, GRAPH_INPUTS_MAX)?;
    let dims: usize = graph.chunks.iter().map(|chunk| chunk.shape.len() + chunk.index.len()).sum();
    at_most("axes of a graph's chunks", dims, 2 * mars::limits::DIMS_MAX * COMMAND_CHUNKS_MAX)?;
    let listed: usize = graph.tileables.iter().map(|tileable| tileable.chunks.len()).sum();
    at_most("chunks of a graph's tileables", listed, LISTED_CHUNKS_MAX)?;
    let parts =
        graph.tileables.iter().flat_map(|tileable| tileable.nsplits.iter().map(|axis| 1 + axis.len()));
    at_most("parts of a graph's tileables", parts.sum(), 4 * SPLITS_MAX)?;
    let columns: usize = graph.tileables.iter().map(|tileable| tileable.columns.len()).sum();
    at_most("columns of a graph's tileables", columns, 4 * SPLITS_MAX)
}

fn check_found_out(decision: &mindspore::Decision) -> Result<(), Fault> {
    use mindspore::Decision as D;
    match decision {
        D::TopologySilent { nodes } | D::TopologyHeard { nodes } => {
            at_most("nodes of a cluster", nodes.len(), mindspore::limits::NODES_MAX)
        }
        D::ClusterSilent { nodes } | D::ClusterHeard { nodes } | D::ClusterGaveUp { nodes } => {
            at_most("nodes of a cluster", nodes.len(), mindspore::limits::WITH_LEAVING_MAX)
        }
        D::Echoed { echoes } => {
            at_most("answers of nodes", echoes.len(), mindspore::limits::WITH_LEAVING_MAX)
        }
        D::TopologyTimedOut { .. } | D::ClusterTimedOut { .. } | D::ClusterSwitchEnded { .. } => Ok(()),
    }
}

/// A job has no more tasks than it was created with. Short lists pass: apply says what is wrong with them, in the words
/// of the caller's protocol.
fn check_tasks(what: &str, count: usize, tasks: impl FnOnce() -> u32) -> Result<(), Fault> {
    let count = count as u64;
    if count <= LISTED_ANYWAY {
        return Ok(());
    }
    within(what, count, u64::from(tasks()).max(LISTED_ANYWAY))
}

fn at_most(what: &str, count: usize, limit: u64) -> Result<(), Fault> {
    within(what, count as u64, limit)
}

fn check_request(request: &Request) -> Result<(), Fault> {
    match request {
        Request::Batch(requests) => {
            at_most("requests of a batch", requests.len(), BATCH_MAX)?;
            let mut ids = 0;
            for request in requests {
                // One within another is refused by apply, whatever is in it.
                check_request(request)?;
                ids += listed(request) as u64;
            }
            within("ids in a batch", ids, BATCH_IDS_MAX)
        }
        Request::Submit { task, .. } | Request::SubmitWith { task, .. } => {
            if let Request::SubmitWith { needs, .. } = request {
                at_most("named resources", needs.named_milli.len(), RESOURCES_MAX)?;
            }
            at_most("arguments of a task", task.arguments.len(), ARGUMENTS_MAX)?;
            at_most("ids in a task's arguments", listed(request), ARGUMENTS_MAX)
        }
        Request::AddReferences { objects } | Request::DropReferences { objects } => {
            at_most("references", objects.len(), REFERENCES_MAX)
        }
        Request::Contain { contained, .. } => at_most("ids in an object", contained.len(), CONTAINED_MAX),
        Request::GiveBack { runs, .. } => at_most("tasks given back", runs.len(), u64::from(HELD_MAX)),
        Request::RegisterWorkerWith { offers, .. } => {
            at_most("named resources", offers.named_milli.len(), RESOURCES_MAX)
        }
        Request::Describe { description, .. } => {
            at_most("dimensions of an object", description.shape.len(), DIMENSIONS_MAX)
        }
        Request::RegisterStore { .. }
        | Request::RegisterWorker(_)
        | Request::RegisterFunction { .. }
        | Request::Put { .. }
        | Request::Get { .. }
        | Request::Alias { .. }
        | Request::Ready { .. }
        | Request::FetchFailed { .. }
        | Request::Idle { .. }
        | Request::KillWorkers
        | Request::ExportFunction { .. }
        | Request::ExportVariable { .. }
        | Request::Leave { .. }
        | Request::Cancel { .. } => Ok(()),
    }
}

/// How many elements the lists of one request have together.
pub(crate) fn listed(request: &Request) -> usize {
    match request {
        Request::Submit { task, .. } | Request::SubmitWith { task, .. } => {
            let nested = task.arguments.iter().map(|argument| match argument {
                Argument::Object(_) => 1,
                Argument::Value { nested, .. } => 1 + nested.len(),
            });
            nested.sum()
        }
        Request::AddReferences { objects } | Request::DropReferences { objects } => objects.len(),
        Request::Contain { contained, .. } => contained.len(),
        Request::GiveBack { runs, .. } => runs.len(),
        _ => 0,
    }
}

fn check_decision(decision: &Decision) -> Result<(), Fault> {
    match decision {
        Decision::Assign(assignments) => at_most("assignments", assignments.len(), QUEUE_MAX),
        Decision::Undelivered { runs } | Decision::Unreported { runs } | Decision::Overdue { runs } => {
            at_most("runs", runs.len(), QUEUE_MAX)
        }
        Decision::Expire { peers } => at_most("silent peers", peers.len(), 2 * PEERS_MAX),
        Decision::Done { orders } => at_most("orders done", orders.len(), OBJECTS_MAX),
        Decision::Reconcile { holds, .. } => at_most("objects that a store holds", holds.len(), OBJECTS_MAX),
        Decision::DeliveryFailed { .. }
        | Decision::ExpireSessions { .. }
        | Decision::Rearm { .. }
        | Decision::SetAlgorithm(_) => Ok(()),
    }
}
