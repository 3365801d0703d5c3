//! Identities, as certificates have them behind the cluster.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::identity::Refusal;
use crate::ids::{CertificateName, JobName, PersonName, TaskId};
use crate::job::spec::check_name;

/// Who somebody is. Its names are of 63 characters at most.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Identity {
    Node(CertificateName),
    Operator(PersonName),
    Viewer(PersonName),
    /// All tasks of the job on a host.
    Agent(JobName),
    /// A task of the job; `None`: any.
    Task {
        job: JobName,
        task: Option<TaskId>,
    },
    Driver(JobName),
    Worker(JobName),
    Store(JobName),
}

impl Identity {
    /// That of a path as certificates have it, `job/train/task/3`; `None` if it is none.
    #[must_use]
    pub fn of_path(path: &str) -> Option<Self> {
        let mut parts = path.split('/');
        let (kind, name) = (parts.next()?, parts.next()?);
        let identity = match kind {
            "node" => Self::Node(name.into()),
            "operator" => Self::Operator(name.into()),
            "viewer" => Self::Viewer(name.into()),
            "job" => Self::of_job(name.into(), parts.next()?, &mut parts)?,
            _ => return None,
        };
        (parts.next().is_none() && identity.check().is_ok()).then_some(identity)
    }

    fn of_job(job: JobName, kind: &str, rest: &mut std::str::Split<'_, char>) -> Option<Self> {
        Some(match kind {
            "agent" => Self::Agent(job),
            "driver" => Self::Driver(job),
            "worker" => Self::Worker(job),
            "store" => Self::Store(job),
            "task" => {
                let task = match rest.next() {
                    Some(number) => Some(TaskId(number.parse().ok()?)),
                    None => None,
                };
                Self::Task { job, task }
            }
            _ => return None,
        })
    }

    /// The job to which it is confined.
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

    /// Whether a certificate can say it.
    ///
    /// # Errors
    /// [`Refusal::Malformed`].
    pub fn check(&self) -> Result<(), Fault> {
        let name = match self {
            Self::Node(name) => name.as_str(),
            Self::Operator(name) | Self::Viewer(name) => name.as_str(),
            Self::Agent(job)
            | Self::Task { job, .. }
            | Self::Driver(job)
            | Self::Worker(job)
            | Self::Store(job) => job.as_str(),
        };
        let task_fits = !matches!(self, Self::Task { task: Some(TaskId(number)), .. } if *number < 0);
        if task_fits && check_name(name).is_ok() { Ok(()) } else { Err(Refusal::Malformed.into()) }
    }
}

/// Its path.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(name) => write!(f, "node/{name}"),
            Self::Operator(name) => write!(f, "operator/{name}"),
            Self::Viewer(name) => write!(f, "viewer/{name}"),
            Self::Agent(job) => write!(f, "job/{job}/agent"),
            Self::Task { job, task: None } => write!(f, "job/{job}/task"),
            Self::Task { job, task: Some(task) } => write!(f, "job/{job}/task/{task}"),
            Self::Driver(job) => write!(f, "job/{job}/driver"),
            Self::Worker(job) => write!(f, "job/{job}/worker"),
            Self::Store(job) => write!(f, "job/{job}/store"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_it_is_shown_and_nothing_else_is_read() {
        let longest = format!("job/{}/task/2147483647", "j".repeat(63));
        for path in [
            "node/n1",
            "operator/ann",
            "viewer/victor",
            "job/train/agent",
            "job/train/task",
            "job/train/task/0",
            "job/train/driver",
            "job/train/worker",
            "job/train/store",
            longest.as_str(),
        ] {
            assert_eq!(Identity::of_path(path).map(|identity| identity.to_string()).as_deref(), Some(path));
        }
        let long = format!("node/{}", "n".repeat(64));
        for path in [
            "",
            "node",
            "node/",
            "node/N1",
            "node/n1/x",
            "job/train",
            "job/train/boss",
            "job/train/agent/1",
            "job/train/task/",
            "job/train/task/-1",
            "job/train/task/1/2",
            "job//agent",
            "listener/train",
            "legacy",
            long.as_str(),
        ] {
            assert_eq!(Identity::of_path(path), None, "{path}");
        }
    }
}
