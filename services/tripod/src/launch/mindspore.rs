//! What the environment of a program of MindSpore says: where its scheduler is, and which node of how many it is itself.

use tripod_client::wire::TaskGroup;
use tripod_proto::code::Code;

use crate::failure::Failure;
use crate::launch::numbers::Variables;

const ROLE: &str = "MS_ROLE";
const WORKERS: &str = "MS_WORKER_NUM";
const SERVERS: &str = "MS_SERVER_NUM";
const NODE: &str = "MS_NODE_ID";
const HOST: &str = "MS_SCHED_HOST";
const PORT: &str = "MS_SCHED_PORT";
/// The role of the process that a job of ours takes the place of.
const SCHEDULER: &str = "MS_SCHED";

/// The variables to set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MindsporeEnvironment {
    variables: Vec<(&'static str, String)>,
    /// What the user should know of how these came about.
    pub(crate) notes: Vec<String>,
}

/// Which task of which job the program is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) groups: &'a [TaskGroup],
    pub(crate) tasks: u32,
    pub(crate) task: u32,
    /// Where its agent listens for it.
    pub(crate) agent: &'a str,
}

/// A group's name as MindSpore calls the role; `None` if it has none of that name.
fn role_of(group: &str) -> Option<&'static str> {
    match group {
        "worker" | "MS_WORKER" => Some("MS_WORKER"),
        "ps" | "MS_PSERVER" => Some("MS_PSERVER"),
        "server" | "MS_SERVER" => Some("MS_SERVER"),
        _ => None,
    }
}

impl MindsporeEnvironment {
    /// Where the scheduler is is ours to say. Who the program is the user may have said already: that is kept.
    ///
    /// # Errors
    /// Wrong usage: the program is to be a scheduler itself, or its task is in a group of no role.
    pub(crate) fn of(place: Place<'_>, variable: Variables<'_>) -> Result<Self, Failure> {
        if variable(ROLE).as_deref() == Some(SCHEDULER) {
            return Err(Failure::new(
                Code::FlagsConflict,
                format!(
                    "{ROLE} is {SCHEDULER}, and the job is the scheduler: start workers and servers only"
                ),
            ));
        }
        let role = place.role()?;
        let workers = place.count(|role| role == "MS_WORKER");
        let (host, port) = place.agent.rsplit_once(':').unwrap_or((place.agent, ""));
        let mut environment = Self { variables: Vec::new(), notes: Vec::new() };
        for (name, value) in [(HOST, host.to_owned()), (PORT, port.to_owned())] {
            if let Some(given) = variable(name).filter(|given| *given != value) {
                environment.note(format!("{name} is {value}, where the agent is, and not {given}"));
            }
            environment.variables.push((name, value));
        }
        for (name, value) in [
            (ROLE, role.to_owned()),
            (WORKERS, workers.to_string()),
            (SERVERS, (place.tasks - workers).to_string()),
            (NODE, place.task.to_string()),
        ] {
            match variable(name) {
                None => environment.variables.push((name, value)),
                Some(given) if given != value => {
                    environment.note(format!(
                        "{name} stays {given}, as it was given; by the job it would be {value}"
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(environment)
    }

    pub(crate) fn variables(self) -> Vec<(&'static str, String)> {
        self.variables
    }

    fn note(&mut self, note: String) {
        self.notes.push(note);
    }
}

impl Place<'_> {
    /// Tasks are numbered through the groups, in their order; without groups all are workers.
    fn role(&self) -> Result<&'static str, Failure> {
        let mut before = 0;
        for TaskGroup { name, tasks } in self.groups {
            before += tasks;
            if self.task < before {
                return role_of(name).ok_or_else(|| {
                    Failure::new(
                        Code::FlagsConflict,
                        format!(
                            "task {} is in group `{name}`, which is no role of MindSpore; groups are worker, ps and server",
                            self.task
                        ),
                    )
                });
            }
        }
        Ok("MS_WORKER")
    }

    fn count(&self, is: impl Fn(&str) -> bool) -> u32 {
        if self.groups.is_empty() {
            return self.tasks;
        }
        let counted = self.groups.iter().filter(|group| role_of(&group.name).is_some_and(&is));
        counted.map(|group| group.tasks).sum::<u32>().min(self.tasks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(groups: &[TaskGroup], tasks: u32, task: u32) -> Place<'_> {
        Place { groups, tasks, task, agent: "127.0.0.1:7792" }
    }

    fn group(name: &str, tasks: u32) -> TaskGroup {
        TaskGroup { name: name.into(), tasks }
    }

    fn nothing(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn a_worker_is_told_six_things() {
        let told = MindsporeEnvironment::of(place(&[], 8, 3), &nothing).expect("legal");
        let expected = [
            ("MS_SCHED_HOST", "127.0.0.1"),
            ("MS_SCHED_PORT", "7792"),
            ("MS_ROLE", "MS_WORKER"),
            ("MS_WORKER_NUM", "8"),
            ("MS_SERVER_NUM", "0"),
            ("MS_NODE_ID", "3"),
        ];
        assert_eq!(told.notes, [""; 0]);
        assert_eq!(told.variables(), expected.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn tasks_of_groups_have_their_roles_in_order() {
        let groups = [group("worker", 2), group("ps", 1), group("server", 1)];
        let role = |task| {
            let told =
                MindsporeEnvironment::of(place(&groups, 4, task), &nothing).expect("legal").variables();
            let of = |name| told.iter().find(|(told, _)| *told == name).expect("set").1.clone();
            (of("MS_ROLE"), of("MS_WORKER_NUM"), of("MS_SERVER_NUM"), of("MS_NODE_ID"))
        };
        let told = |role: &str, node: &str| (role.into(), "2".into(), "2".into(), node.into());
        assert_eq!(role(1), told("MS_WORKER", "1"));
        assert_eq!(role(2), told("MS_PSERVER", "2"));
        assert_eq!(role(3), told("MS_SERVER", "3"));
        let chief = [group("chief", 1), group("worker", 1)];
        let refused =
            MindsporeEnvironment::of(place(&chief, 2, 0), &nothing).expect_err("no role").to_string();
        assert!(refused.contains("group `chief`, which is no role of MindSpore"), "{refused}");
    }

    #[test]
    fn what_the_user_said_of_the_program_is_kept_and_what_of_its_scheduler_is_not_and_both_are_told() {
        let given = |name: &str| {
            let value = match name {
                "MS_ROLE" => "MS_PSERVER",
                "MS_NODE_ID" => "gpu-3",
                "MS_WORKER_NUM" => "8",
                "MS_SCHED_HOST" => "10.0.0.1",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let told = MindsporeEnvironment::of(place(&[], 8, 3), &given).expect("legal");
        assert_eq!(
            told.notes,
            [
                "MS_SCHED_HOST is 127.0.0.1, where the agent is, and not 10.0.0.1",
                "MS_ROLE stays MS_PSERVER, as it was given; by the job it would be MS_WORKER",
                "MS_NODE_ID stays gpu-3, as it was given; by the job it would be 3",
            ]
        );
        let names: Vec<_> = told.variables().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["MS_SCHED_HOST", "MS_SCHED_PORT", "MS_SERVER_NUM"]);
    }

    #[test]
    fn a_program_that_is_to_be_the_scheduler_is_refused() {
        let given = |name: &str| (name == "MS_ROLE").then(|| "MS_SCHED".to_owned());
        let refused = MindsporeEnvironment::of(place(&[], 2, 0), &given).expect_err("refused").to_string();
        assert!(refused.contains("the job is the scheduler"), "{refused}");
    }
}
