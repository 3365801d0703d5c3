//! What a token proves of whoever bears it.

use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::ids::{DurationMs, JobName, TaskId};
use crate::job::spec::check_name;
use crate::limits::{JOIN_TOKEN_LIFETIME_MS_MAX, TOKEN_LIFETIME_MS_MAX};
use crate::token::Refusal;

/// As what a token lets its bearer call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// A node that is to become a member. One use.
    Join,
    /// All tasks of a job on a host.
    Agent,
    /// A task of a job, or any of its tasks.
    Task,
    /// A process that does the work of a job's scheduler.
    Worker,
    /// A program that gives work to a job's scheduler.
    Driver,
    /// A process that keeps a job's objects.
    Store,
    /// A person or a program that operates the cluster.
    Operator,
    /// A person or a program that looks.
    Viewer,
}

/// What a token proves.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Bearer {
    pub kind: Kind,
    /// To which it is confined; of agents, tasks, workers, drivers and stores. By name, as certificates are: an agent's may
    /// be there before its job is.
    pub job: Option<JobName>,
    /// The one task that it may be; of tasks only. `None`: any.
    pub task: Option<TaskId>,
    /// Whom it is for: an operator's or a viewer's name. Of others it may be empty, and is for people.
    pub name: String,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Join,
        Self::Agent,
        Self::Task,
        Self::Worker,
        Self::Driver,
        Self::Store,
        Self::Operator,
        Self::Viewer,
    ];

    /// As a token says it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Join => "join",
            Self::Agent => "agent",
            Self::Task => "task",
            Self::Worker => "worker",
            Self::Driver => "driver",
            Self::Store => "store",
            Self::Operator => "operator",
            Self::Viewer => "viewer",
        }
    }

    /// The kind of that word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Whether it is confined to a job.
    #[must_use]
    pub const fn is_of_a_job(self) -> bool {
        match self {
            Self::Agent | Self::Task | Self::Worker | Self::Driver | Self::Store => true,
            Self::Join | Self::Operator | Self::Viewer => false,
        }
    }

    /// How long one may live at most.
    #[must_use]
    pub const fn lifetime_max(self) -> DurationMs {
        match self {
            Self::Join => DurationMs(JOIN_TOKEN_LIFETIME_MS_MAX),
            _ => DurationMs(TOKEN_LIFETIME_MS_MAX),
        }
    }

    /// How often one can be used; `None`: until it ends.
    #[must_use]
    pub const fn uses(self) -> Option<u32> {
        match self {
            Self::Join => Some(1),
            _ => None,
        }
    }
}

impl Bearer {
    /// Whether it has what its kind needs, and nothing else.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] names the field.
    pub fn check(&self) -> Result<(), Fault> {
        let kind = self.kind.word();
        match (&self.job, self.kind.is_of_a_job()) {
            (Some(job), true) => drop(check_name(job.as_str())?),
            (None, true) => return Err(invalid("job", format!("a token of kind {kind} is for one job"))),
            (Some(_), false) => return Err(invalid("job", format!("a token of kind {kind} is for no job"))),
            (None, false) => {}
        }
        match self.task {
            Some(_) if self.kind != Kind::Task => {
                return Err(invalid("task", format!("a token of kind {kind} is for no task")));
            }
            Some(task) if task.0 < 0 => return Err(invalid("task", "must not be below 0".to_owned())),
            _ => {}
        }
        let needs_name = matches!(self.kind, Kind::Operator | Kind::Viewer);
        match self.name.as_str() {
            "" if needs_name => Err(invalid("name", format!("a token of kind {kind} is for somebody"))),
            "" => Ok(()),
            name => check_name(name).map(drop).map_err(|_| {
                let rule =
                    "use 1 to 63 characters of a-z, 0-9, `-`, `_` and `.`, the first a letter or a digit";
                invalid("name", rule.to_owned())
            }),
        }
    }
}

pub(super) fn invalid(field: &str, reason: String) -> Fault {
    Refusal::Invalid { field: field.to_owned(), reason }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(kind: Kind) -> Bearer {
        let job = kind.is_of_a_job().then(|| JobName::from("train"));
        let name = if matches!(kind, Kind::Operator | Kind::Viewer) { "alice" } else { "" };
        Bearer { kind, job, task: None, name: name.to_owned() }
    }

    #[test]
    fn every_kind_has_a_word_of_its_own() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of_word(kind.word()), Some(kind));
        }
        assert_eq!(Kind::of_word("owner"), None);
    }

    #[test]
    fn a_bearer_has_what_its_kind_needs_and_nothing_else() {
        for kind in Kind::ALL {
            assert_eq!(bearer(kind).check(), Ok(()), "{kind:?}");
            let job = if kind.is_of_a_job() { None } else { Some(JobName::from("train")) };
            assert!(Bearer { job, ..bearer(kind) }.check().is_err(), "{kind:?}");
            let numbered = Bearer { task: Some(TaskId(3)), ..bearer(kind) };
            assert_eq!(numbered.check().is_ok(), kind == Kind::Task, "{kind:?}");
            assert!(Bearer { name: "Alice".to_owned(), ..bearer(kind) }.check().is_err(), "{kind:?}");
        }
        assert!(Bearer { name: String::new(), ..bearer(Kind::Operator) }.check().is_err());
        assert!(Bearer { task: Some(TaskId(-1)), ..bearer(Kind::Task) }.check().is_err());
        assert!(Bearer { job: Some(JobName::from("A")), ..bearer(Kind::Agent) }.check().is_err());
    }
}
