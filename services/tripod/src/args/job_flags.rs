//! What a job's creator decides, as flags: for `job create`, and for job `default` of a server.

use clap::{ArgAction, Args, ValueEnum};
use tripod_client::wire;
use tripod_proto::code::Code;
use tripod_state::ids::DurationMs;
use tripod_state::job::{self, Listener};
use tripod_state::limits::{HEARTBEAT_TIMEOUT_MS_MIN, TIMEOUT_MS_MAX};

use crate::args::members::{Groups, Member};
use crate::args::seconds::Seconds;
use crate::failure::Failure;
use crate::view::count;

/// A job's parameters besides its number of tasks. Absent ones become the cluster's defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct JobFlags {
    /// A task that is silent for this long has failed. Its program must be told the same (JAX: `heartbeat_timeout_seconds` of
    /// `initialize`, 100 s by default): it sends a heartbeat after each half of its own timeout and never learns the job's.
    /// If its own is longer the job waits as long as that, and says so [default: 100]
    #[arg(long, value_name = "SECONDS", value_parser = heartbeat_timeout)]
    pub(crate) heartbeat_timeout: Option<Seconds>,

    /// How long tasks wait for each other at shutdown; 0: not at all [default: 300]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) shutdown_timeout: Option<Seconds>,

    /// How long tasks wait for each other at the start [default: 3600]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) register_timeout: Option<Seconds>,

    /// Tasks may restart, and their failures are not told to the others
    #[arg(
        long,
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        value_name = "true|false",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub(crate) recoverable: bool,

    /// Whether tasks wait for each other at shutdown [default: on]
    #[arg(long, value_name = "on|off")]
    pub(crate) shutdown_barrier: Option<Switch>,

    /// How tasks learn of errors: by a call that is held (as jaxlib's own service does it), or with the
    /// next heartbeat, so that no call hangs on a connection that may break [default: release]
    #[arg(long, value_name = "hold|release")]
    pub(crate) poll: Option<Poll>,

    /// A task that was lost may come back as another life
    #[arg(
        long,
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        value_name = "true|false",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub(crate) reconnect: bool,

    /// Tasks under several names, as TensorFlow has them; their sum is the number of tasks
    #[arg(long, value_name = "NAME:TASKS,...")]
    pub(crate) members: Option<Groups>,

    /// Where a task listens for errors that are told by calling it, as TensorFlow's tasks do; may be given
    /// several times
    #[arg(long = "member", value_name = "NAME:INDEX=HOST:PORT,...", value_delimiter = ',')]
    pub(crate) listeners: Vec<Member>,
}

/// A flag that is on or off, and absent for the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

/// How tasks learn of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Poll {
    Hold,
    Release,
}

/// A heartbeat timeout that the cluster would take: a wrong one is told before anything is started.
fn heartbeat_timeout(text: &str) -> Result<Seconds, String> {
    let length: Seconds = text.parse()?;
    if (HEARTBEAT_TIMEOUT_MS_MIN..=TIMEOUT_MS_MAX).contains(&length.milliseconds()) {
        return Ok(length);
    }
    Err(format!(
        "must be {} to {} seconds: below, a task that is only busy would be taken for dead",
        HEARTBEAT_TIMEOUT_MS_MIN / 1_000,
        TIMEOUT_MS_MAX / 1_000
    ))
}

impl JobFlags {
    /// Whether they say anything that only counts when a job is created. How tasks learn of errors also
    /// counts where polls are answered.
    pub(crate) fn describe_a_new_job(&self) -> bool {
        *self != Self { poll: self.poll, ..Self::default() }
    }

    /// How many tasks the job has: as many as the flag beside these says, or as all groups have together.
    ///
    /// # Errors
    /// Wrong usage: both are given and contradict each other.
    pub(crate) fn tasks(&self, given: Option<u32>) -> Result<Option<u32>, Failure> {
        match (given, self.members.as_ref()) {
            (Some(given), Some(groups)) if given != groups.tasks() => Err(Failure::new(
                Code::FlagsConflict,
                format!(
                    "--members {groups} are {}, and --tasks is {given}; leave one of the two out",
                    count(groups.tasks(), "task")
                ),
            )),
            (given, groups) => Ok(given.or(groups.map(Groups::tasks))),
        }
    }

    /// For a call to the cluster.
    ///
    /// # Errors
    /// Wrong usage: a task that listens is in no group.
    pub(crate) fn to_wire(&self, tasks: u32) -> Result<wire::JobSpec, Failure> {
        let milliseconds = |length: Option<Seconds>| length.map_or(0, Seconds::milliseconds);
        let poll = match self.poll {
            None => wire::PollMode::Unspecified,
            Some(Poll::Hold) => wire::PollMode::Hold,
            Some(Poll::Release) => wire::PollMode::Release,
        };
        let listeners = self.listeners()?.into_iter();
        Ok(wire::JobSpec {
            tasks,
            heartbeat_timeout_ms: milliseconds(self.heartbeat_timeout),
            register_timeout_ms: milliseconds(self.register_timeout),
            shutdown_timeout_ms: self.shutdown_timeout.map(Seconds::milliseconds),
            recoverable: self.recoverable,
            shutdown_barrier: self.shutdown_barrier.map(|switch| switch == Switch::On),
            poll: poll.into(),
            reconnect: self.reconnect,
            groups: self
                .groups()
                .iter()
                .map(|group| wire::TaskGroup { name: group.name.clone(), tasks: group.tasks })
                .collect(),
            listeners: listeners
                .map(|listener| wire::TaskListener { task_id: listener.task.0, address: listener.address })
                .collect(),
        })
    }

    /// For a command of this process's own.
    ///
    /// # Errors
    /// As [`Self::to_wire`].
    pub(crate) fn to_spec(&self, tasks: u32) -> Result<job::Spec, Failure> {
        let default = job::Spec::of_tasks(tasks);
        let or = |length: Option<Seconds>, default: DurationMs| {
            length.map_or(default, |length| DurationMs(length.milliseconds()))
        };
        Ok(job::Spec {
            tasks,
            heartbeat_timeout_ms: or(self.heartbeat_timeout, default.heartbeat_timeout_ms),
            shutdown_timeout_ms: or(self.shutdown_timeout, default.shutdown_timeout_ms),
            register_timeout_ms: or(self.register_timeout, default.register_timeout_ms),
            recoverable: self.recoverable,
            shutdown_barrier: self
                .shutdown_barrier
                .map_or(default.shutdown_barrier, |switch| switch == Switch::On),
            poll: match self.poll {
                None => default.poll,
                Some(Poll::Hold) => job::Poll::Hold,
                Some(Poll::Release) => job::Poll::Release,
            },
            reconnect: self.reconnect,
            groups: self.groups().to_vec(),
            listeners: self.listeners()?,
        })
    }

    fn groups(&self) -> &[job::Group] {
        self.members.as_ref().map_or(&[], Groups::as_slice)
    }

    /// By task id. Without groups, a task is known by its number, whatever it is called.
    fn listeners(&self) -> Result<Vec<Listener>, Failure> {
        let numbering = job::Spec { groups: self.groups().to_vec(), ..job::Spec::of_tasks(1) };
        let listener = |member: &Member| match numbering.task(&member.group, member.index) {
            Some(task) => Ok(Listener { task, address: member.address.clone() }),
            None => Err(Failure::new(
                Code::FlagsConflict,
                format!("--member {member}: --members has no such task"),
            )),
        };
        let mut listeners: Vec<_> = self.listeners.iter().map(listener).collect::<Result<_, _>>()?;
        listeners.sort_by_key(|listener| listener.task);
        Ok(listeners)
    }

    /// As they are written on a command line: what `dev` passes on to its nodes.
    pub(crate) fn to_flags(&self) -> Vec<String> {
        let lengths = [
            ("--heartbeat-timeout", self.heartbeat_timeout),
            ("--shutdown-timeout", self.shutdown_timeout),
            ("--register-timeout", self.register_timeout),
        ];
        let mut flags = Vec::new();
        for (flag, length) in lengths {
            flags.extend(length.map(|length| format!("{flag}={}", length.to_flag())));
        }
        if self.recoverable {
            flags.push("--recoverable".into());
        }
        flags.extend(self.shutdown_barrier.map(|switch| format!("--shutdown-barrier={}", word(&switch))));
        flags.extend(self.poll_flag());
        if self.reconnect {
            flags.push("--reconnect".into());
        }
        flags.extend(self.members.as_ref().map(|groups| format!("--members={groups}")));
        flags.extend(self.listeners.iter().map(|member| format!("--member={member}")));
        flags
    }

    /// The flag that agents understand too.
    pub(crate) fn poll_flag(&self) -> Option<String> {
        self.poll.map(|poll| format!("--poll={}", word(&poll)))
    }
}

fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use tripod_state::ids::TaskId;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        flags: JobFlags,
    }

    fn parse(flags: &[&str]) -> JobFlags {
        let line = std::iter::once("test").chain(flags.iter().copied());
        Line::try_parse_from(line).expect("legal").flags
    }

    #[test]
    fn no_flags_mean_the_defaults() {
        assert_eq!(parse(&[]).to_spec(3).expect("legal"), job::Spec::of_tasks(3));
        assert_eq!(parse(&[]).to_wire(3).expect("legal"), wire::JobSpec { tasks: 3, ..Default::default() });
        assert!(parse(&[]).to_flags().is_empty());
    }

    #[test]
    fn a_heartbeat_timeout_that_no_cluster_takes_is_refused_at_once() {
        for wrong in ["0", "-1", "0.5", "31622401", "nan", "soon"] {
            let flag = format!("--heartbeat-timeout={wrong}");
            Line::try_parse_from(["test", &flag]).expect_err(wrong);
        }
        let told = heartbeat_timeout("0").expect_err("refused");
        assert!(told.starts_with("must be 1 to 31622400 seconds"), "{told}");
    }

    #[test]
    fn flags_passed_on_to_a_node_mean_the_same_there() {
        let flags = parse(&[
            "--heartbeat-timeout=2.5",
            "--shutdown-timeout=0",
            "--register-timeout=30",
            "--recoverable",
            "--shutdown-barrier=off",
            "--poll=hold",
            "--reconnect",
            "--members=chief:1,worker:1",
            "--member=worker:0=b:1,chief:0=a:1",
        ]);
        let passed = flags.to_flags();
        let again = parse(&passed.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(again, flags);
        let spec = again.to_spec(2).expect("legal");
        assert_eq!(spec.heartbeat_timeout_ms, DurationMs(2500));
        assert_eq!(spec.shutdown_timeout_ms, DurationMs(0));
        assert!(spec.recoverable && !spec.shutdown_barrier);
        assert_eq!(spec.poll, job::Poll::Hold);
        assert!(spec.reconnect);
        assert_eq!(spec.group_of(TaskId(1)), Some(("worker", 0)));
        let listeners: Vec<_> = spec.listeners.iter().map(|at| (at.task.0, at.address.as_str())).collect();
        assert_eq!(listeners, [(0, "a:1"), (1, "b:1")], "in order of task id");
    }

    #[test]
    fn groups_say_how_many_tasks_there_are() {
        let flags = parse(&["--members=chief:1,worker:4"]);
        let tasks = |given| flags.tasks(given).map_err(|failure| failure.to_string());
        assert_eq!((tasks(None), tasks(Some(5))), (Ok(Some(5)), Ok(Some(5))));
        let expected =
            "T1102 flags-conflict: --members chief:1,worker:4 are 5 tasks, and --tasks is 3; leave one of the two out".to_owned();
        assert_eq!(tasks(Some(3)), Err(expected));
        assert_eq!(parse(&[]).tasks(None).expect("nobody says"), None);
    }

    #[test]
    fn a_listener_must_be_a_member() {
        let flags = parse(&["--members=worker:1", "--member=worker:1=a:1"]);
        let text = flags.to_wire(1).expect_err("refused").to_string();
        assert_eq!(text, "T1102 flags-conflict: --member worker:1=a:1: --members has no such task");
    }
}
