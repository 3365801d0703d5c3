//! What stands behind the cluster in an identity's URI.

use std::fmt;

use crate::{JobName, NodeName, PersonName, Refused, TaskNumber};

/// As what somebody calls.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A voter or a learner.
    Node(NodeName),
    /// A person or a program that operates the cluster, or the jobs that a grant says.
    Operator(PersonName),
    /// A person or a program that looks.
    Viewer(PersonName),
    /// All tasks of the job on a host.
    Agent(JobName),
    /// A task of the job.
    Task {
        /// Its job.
        job: JobName,
        /// Which of its tasks; `None`: any.
        number: Option<TaskNumber>,
    },
    /// A program that gives work to the job's scheduler.
    Driver(JobName),
    /// A process that does such work.
    Worker(JobName),
    /// A process that keeps the job's objects.
    Store(JobName),
}

impl Kind {
    /// The job to which it is confined; `None` for nodes, operators and viewers, of whom grants say that.
    #[must_use]
    pub fn job(&self) -> Option<&JobName> {
        match self {
            Self::Node(_) | Self::Operator(_) | Self::Viewer(_) => None,
            Self::Agent(job)
            | Self::Task { job, .. }
            | Self::Driver(job)
            | Self::Worker(job)
            | Self::Store(job) => Some(job),
        }
    }

    /// Reads a path behind the cluster, without the `/` before it.
    pub(crate) fn parse(path: &str) -> Result<Self, Refused> {
        let mut segments = path.split('/');
        let mut next = || segments.next().unwrap_or_default();
        let kind = match (next(), next()) {
            ("node", name) => Self::Node(name.parse()?),
            ("operator", name) => Self::Operator(name.parse()?),
            ("viewer", name) => Self::Viewer(name.parse()?),
            ("job", job) => {
                let job = job.parse()?;
                match next() {
                    "agent" => Self::Agent(job),
                    "task" => {
                        let number = segments.next().map(str::parse).transpose()?;
                        Self::Task { job, number }
                    }
                    "driver" => Self::Driver(job),
                    "worker" => Self::Worker(job),
                    "store" => Self::Store(job),
                    _ => return Err(Refused::Kind),
                }
            }
            _ => return Err(Refused::Kind),
        };
        if segments.next().is_some() { Err(Refused::Rest) } else { Ok(kind) }
    }
}

/// The path behind the cluster, without the `/` before it.
impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(name) => write!(out, "node/{name}"),
            Self::Operator(name) => write!(out, "operator/{name}"),
            Self::Viewer(name) => write!(out, "viewer/{name}"),
            Self::Agent(job) => write!(out, "job/{job}/agent"),
            Self::Task { job, number: None } => write!(out, "job/{job}/task"),
            Self::Task { job, number: Some(number) } => write!(out, "job/{job}/task/{number}"),
            Self::Driver(job) => write!(out, "job/{job}/driver"),
            Self::Worker(job) => write!(out, "job/{job}/worker"),
            Self::Store(job) => write!(out, "job/{job}/store"),
        }
    }
}
