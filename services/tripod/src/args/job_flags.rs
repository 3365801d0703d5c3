//! What a job's creator decides, as flags: for `job create`, and for job `default` of a server.

use clap::{ArgAction, Args, ValueEnum};
use tripod_client::wire;
use tripod_state::ids::DurationMs;
use tripod_state::job;

use crate::args::seconds::Seconds;

/// A job's parameters besides its number of tasks. Absent ones become the cluster's defaults.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct JobFlags {
    /// A task that is silent for this long has failed; its client gives up after half of it [default: 100]
    #[arg(long, value_name = "SECONDS")]
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

impl JobFlags {
    /// For a call to the cluster.
    pub(crate) fn to_wire(&self, tasks: u32) -> wire::JobSpec {
        let milliseconds = |length: Option<Seconds>| length.map_or(0, Seconds::milliseconds);
        let poll = match self.poll {
            None => wire::PollMode::Unspecified,
            Some(Poll::Hold) => wire::PollMode::Hold,
            Some(Poll::Release) => wire::PollMode::Release,
        };
        wire::JobSpec {
            tasks,
            heartbeat_timeout_ms: milliseconds(self.heartbeat_timeout),
            register_timeout_ms: milliseconds(self.register_timeout),
            shutdown_timeout_ms: self.shutdown_timeout.map(Seconds::milliseconds),
            recoverable: self.recoverable,
            shutdown_barrier: self.shutdown_barrier.map(|switch| switch == Switch::On),
            poll: poll.into(),
        }
    }

    /// For a command of this process's own.
    pub(crate) fn to_spec(&self, tasks: u32) -> job::Spec {
        let default = job::Spec::of_tasks(tasks);
        let or = |length: Option<Seconds>, default: DurationMs| {
            length.map_or(default, |length| DurationMs(length.milliseconds()))
        };
        job::Spec {
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
            ..default
        }
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
        flags.extend(self.poll.map(|poll| format!("--poll={}", word(&poll))));
        flags
    }
}

fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

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
        assert_eq!(parse(&[]).to_spec(3), job::Spec::of_tasks(3));
        assert_eq!(parse(&[]).to_wire(3), wire::JobSpec { tasks: 3, ..Default::default() });
        assert!(parse(&[]).to_flags().is_empty());
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
        ]);
        let passed = flags.to_flags();
        let again = parse(&passed.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(again, flags);
        let spec = again.to_spec(2);
        assert_eq!(spec.heartbeat_timeout_ms, DurationMs(2500));
        assert_eq!(spec.shutdown_timeout_ms, DurationMs(0));
        assert!(spec.recoverable && !spec.shutdown_barrier);
        assert_eq!(spec.poll, job::Poll::Hold);
    }
}
