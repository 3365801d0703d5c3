//! What an identity may have the effect of.

use crate::command::Command;
use crate::fault::Fault;
use crate::identity::{Identity, Refusal};
use crate::ids::{JobId, TaskId};
use crate::state::State;
use crate::{barrier, job, mars, member, mindspore, ray, runtime, session, task};

/// Which job a command is about.
enum About<'a> {
    Job(JobId),
    Named(&'a str),
    None,
}

impl State {
    /// Whether a command, of which everything around it was taken off, may have its effect if this identity proposed it.
    pub(crate) fn authorise(&self, by: &Identity, command: &Command) -> Result<(), Fault> {
        by.check()?;
        if is_of_nodes_only(command) {
            return Err(Refusal::NodesOnly.into());
        }
        self.is_own_job(by, command)?;
        // Whoever leaves by the runtime does not say which task it is.
        match command {
            Command::Task(command) => self.is_own_task(by, command),
            Command::Barrier(
                barrier::Command::Arrive { task, .. } | barrier::Command::Cancel { task, .. },
            )
            | Command::Runtime(
                runtime::Command::Connect { task, .. }
                | runtime::Command::ConnectFrom { task, .. }
                | runtime::Command::Withdraw { task, .. }
                | runtime::Command::Enumerate { task, .. }
                | runtime::Command::Arrive { task, .. },
            ) => speaks_for(by, *task),
            Command::Session(session::Command::Close { session }) => {
                if self.sessions.is_of_another(*session, Some(by), true) {
                    Err(Fault::SessionExpired)
                } else {
                    Ok(())
                }
            }
            Command::Member(command) => self.is_own_node(by, command),
            Command::Session(_)
            | Command::Barrier(_)
            | Command::Runtime(_)
            | Command::Job(_)
            | Command::Kv(_)
            | Command::Level(_)
            | Command::Ray(_)
            | Command::Mindspore(_)
            | Command::Mars(_)
            | Command::Token(_)
            | Command::Retried(_)
            | Command::By(_) => Ok(()),
            Command::Identity(_) => match by {
                Identity::Operator(_) => Ok(()),
                _ => Err(Refusal::OperatorsOnly.into()),
            },
        }
    }

    /// Whether a command of a caller who has proved nothing may have its effect: as it always could, unless nodes are to have
    /// everybody prove who calls.
    pub(crate) fn check_unproved(&self, command: &Command) -> Result<(), Fault> {
        match command {
            Command::Session(session::Command::Close { session })
                if self.sessions.is_of_another(*session, None, self.wants_identities()) =>
            {
                Err(Fault::SessionExpired)
            }
            _ => Ok(()),
        }
    }

    /// Whoever is confined to a job changes nothing of another one. What is about no job that is there is refused by its domain.
    fn is_own_job(&self, by: &Identity, command: &Command) -> Result<(), Fault> {
        let Some(own) = by.job() else { return Ok(()) };
        let is_other = match about(command) {
            About::Job(job) => self.jobs.get(job).is_some_and(|job| job.name != *own),
            About::Named(name) => name != own.as_str(),
            About::None => false,
        };
        if is_other { Err(Refusal::OtherJob.into()) } else { Ok(()) }
    }

    /// A life of a task is registered, spoken for and ended by its own process, by its agent, or by an operator.
    fn is_own_task(&self, by: &Identity, command: &task::Command) -> Result<(), Fault> {
        let Some(task) = command.speaker() else { return Ok(()) };
        match by {
            Identity::Operator(_) | Identity::Agent(_) => Ok(()),
            Identity::Task { task: Some(_), .. } => speaks_for(by, task),
            Identity::Task { task: None, .. } => {
                let job = self.jobs.get(command.scope().job);
                let registrant = job.and_then(|job| job.registrant(task));
                if registrant.is_none_or(|registrant| registrant == by) {
                    Ok(())
                } else {
                    Err(Refusal::OtherProcess { task }.into())
                }
            }
            Identity::Node(_)
            | Identity::Viewer(_)
            | Identity::Driver(_)
            | Identity::Worker(_)
            | Identity::Store(_) => Err(Refusal::OtherProcess { task }.into()),
        }
    }

    /// A node joins, and says where it is and what its certificate calls it, as nobody but itself.
    fn is_own_node(&self, by: &Identity, command: &member::Command) -> Result<(), Fault> {
        let Identity::Node(name) = by else { return Ok(()) };
        let node = match command {
            member::Command::Announce { node, .. } | member::Command::Bind { node, .. } => *node,
            member::Command::Join { peer, .. } => match self.registry.at(peer) {
                Some((node, _)) => node,
                None => return Ok(()),
            },
            member::Command::Begin { .. }
            | member::Command::Cancel { .. }
            | member::Command::End { .. }
            | member::Command::Drain { .. } => return Ok(()),
        };
        match self.names.get(&node) {
            Some(bound) if bound != name => Err(Refusal::OtherNode { node }.into()),
            _ => Ok(()),
        }
    }
}

/// Whoever has the number of a task in its certificate is that one.
fn speaks_for(by: &Identity, task: TaskId) -> Result<(), Fault> {
    match by {
        Identity::Task { task: Some(own), .. } if *own != task => Err(Refusal::OtherTask { task }.into()),
        _ => Ok(()),
    }
}

/// What leaders find out, and decide by themselves.
fn is_of_nodes_only(command: &Command) -> bool {
    match command {
        Command::Level(_)
        | Command::Task(task::Command::Expire { .. } | task::Command::Pushed { .. })
        | Command::Barrier(barrier::Command::Expire { .. })
        | Command::Session(session::Command::ExpireIdle { .. } | session::Command::ExpireOwned { .. })
        | Command::Ray(ray::Command::Lead { .. })
        | Command::Mindspore(mindspore::Command::Lead { .. })
        | Command::Mars(mars::Command::Lead { .. }) => true,
        Command::Session(session::Command::OpenFor { id, .. }) => id.is_node(),
        _ => false,
    }
}

fn about(command: &Command) -> About<'_> {
    match command {
        Command::Task(command) => About::Job(command.scope().job),
        Command::Kv(command) => About::Job(command.scope().job),
        Command::Barrier(command) => About::Job(command.scope().job),
        Command::Runtime(command) => About::Job(command.scope().job),
        Command::Ray(command) => About::Job(command.scope().job),
        Command::Mars(command) => About::Job(command.scope().job),
        Command::Mindspore(command) => About::Job(command.scope().job),
        Command::Job(
            job::Command::Create { name, .. }
            | job::Command::Delete { name }
            | job::Command::Note { name, .. },
        ) => About::Named(name),
        Command::Session(_)
        | Command::Member(_)
        | Command::Level(_)
        | Command::Token(_)
        | Command::Identity(_)
        | Command::Retried(_)
        | Command::By(_) => About::None,
    }
}
