//! How much memory the replicated state may take, as flags of a server.

use clap::Args;
use tripod_proto::code::Code;
use tripod_raft::StateLimits;

use crate::args::memory_flags::machine_bytes;
use crate::failure::Failure;

/// The least that either may be: a job's tables take a part of it before anything is in them.
const MIB_MIN: u64 = 8;
/// The most: a petabyte.
const MIB_MAX: u64 = 1 << 30;

/// Limits of memory; the leader's count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct StateFlags {
    /// Memory that one job may take on each node, in MiB: keys, values, barriers, tasks, everything; the same on every
    /// node. A full job begins nothing new, and goes on with what is under way (T2211) [default: half of
    /// --state-memory-mib]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(MIB_MIN..=MIB_MAX))]
    pub(crate) job_memory_mib: Option<u64>,

    /// The same for all jobs and sessions together (T2212); the process takes more, for snapshots and for what is on its
    /// way: give it half of the machine's memory at most [default: half of what the machine or its control group has]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(MIB_MIN..=MIB_MAX))]
    pub(crate) state_memory_mib: Option<u64>,
}

impl StateFlags {
    /// # Errors
    /// Wrong usage: one job may take more than all together.
    pub(crate) fn to_limits(&self) -> Result<StateLimits, Failure> {
        self.limits_of(machine_bytes)
    }

    fn limits_of(&self, machine_bytes: impl FnOnce() -> u64) -> Result<StateLimits, Failure> {
        let bytes = |mib: u64| mib << 20;
        let state_bytes = self.state_memory_mib.map_or_else(|| bytes(half_mib(machine_bytes())), bytes);
        let job_bytes = self.job_memory_mib.map_or(state_bytes / 2, bytes);
        if job_bytes > state_bytes {
            return Err(Failure::new(
                Code::FlagsConflict,
                format!(
                    "--job-memory-mib {} is more than all jobs together may take, {} MiB; raise --state-memory-mib, too",
                    job_bytes >> 20,
                    state_bytes >> 20
                ),
            ));
        }
        Ok(StateLimits { job_bytes, state_bytes })
    }

    /// The flags of one of several nodes that share this machine.
    pub(crate) fn of_share(nodes: usize) -> Vec<String> {
        let share = machine_bytes() / u64::try_from(nodes.max(1)).unwrap_or(u64::MAX);
        vec![format!("--state-memory-mib={}", half_mib(share))]
    }
}

/// Half of so many bytes, in MiB, within what the flags take.
fn half_mib(bytes: u64) -> u64 {
    (bytes >> 21).clamp(2 * MIB_MIN, MIB_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(job: Option<u64>, state: Option<u64>) -> Result<(u64, u64), String> {
        let flags = StateFlags { job_memory_mib: job, state_memory_mib: state };
        let limits = flags.limits_of(|| 8 << 30).map_err(|failure| failure.to_string())?;
        Ok((limits.job_bytes >> 20, limits.state_bytes >> 20))
    }

    #[test]
    fn all_jobs_take_half_of_the_machine_and_one_half_of_that_unless_somebody_says_otherwise() {
        assert_eq!(limits(None, None), Ok((2_048, 4_096)));
        assert_eq!(limits(None, Some(64)), Ok((32, 64)));
        assert_eq!(limits(Some(64), None), Ok((64, 4_096)));
        let refused = limits(Some(9_000), None).expect_err("it is more than all");
        assert!(refused.contains("T1102 flags-conflict: --job-memory-mib 9000"), "{refused}");
    }
}
