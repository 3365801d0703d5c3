//! How much memory the replicated state may take, as flags of a server.

use clap::Args;
use tripod_proto::code::Code;
use tripod_raft::StateLimits;

use crate::failure::Failure;

/// The least that either may be: a job's tables take a part of it before anything is in them.
const MIB_MIN: u64 = 8;
/// The most: a petabyte.
const MIB_MAX: u64 = 1 << 30;

/// Limits of memory; the leader's count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct StateFlags {
    /// Memory that one job may take on each node, in MiB: keys, values, barriers, tasks, everything; the same on every
    /// node. A full job begins nothing new, and goes on with what is under way (T2211) [default: 4096, or half of
    /// --state-memory-mib]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(MIB_MIN..=MIB_MAX))]
    pub(crate) job_memory_mib: Option<u64>,

    /// The same for all jobs and sessions together (T2212); the process takes more, for snapshots and for what is on its
    /// way: give it half of the machine's memory at most [default: 8192]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(MIB_MIN..=MIB_MAX))]
    pub(crate) state_memory_mib: Option<u64>,
}

impl StateFlags {
    /// # Errors
    /// Wrong usage: one job may take more than all together.
    pub(crate) fn to_limits(&self) -> Result<StateLimits, Failure> {
        let default = StateLimits::default();
        let bytes = |mib: u64| mib << 20;
        let state_bytes = self.state_memory_mib.map_or(default.state_bytes, bytes);
        let job_bytes = self.job_memory_mib.map_or(default.job_bytes.min(state_bytes / 2), bytes);
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(job: Option<u64>, state: Option<u64>) -> Result<(u64, u64), String> {
        let flags = StateFlags { job_memory_mib: job, state_memory_mib: state };
        let limits = flags.to_limits().map_err(|failure| failure.to_string())?;
        Ok((limits.job_bytes >> 20, limits.state_bytes >> 20))
    }

    #[test]
    fn a_job_may_take_half_of_what_there_is_unless_somebody_says_otherwise() {
        assert_eq!(limits(None, None), Ok((4_096, 8_192)));
        assert_eq!(limits(None, Some(64)), Ok((32, 64)));
        assert_eq!(limits(Some(64), None), Ok((64, 8_192)));
        let refused = limits(Some(9_000), None).expect_err("it is more than all");
        assert!(refused.contains("T1102 flags-conflict: --job-memory-mib 9000"), "{refused}");
    }
}
