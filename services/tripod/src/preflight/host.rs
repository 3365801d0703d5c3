//! Limits of the process that a node would be.

use nix::sys::resource::{Resource, getrlimit};

use super::{Check, Plan, Verdict};

/// Each client holds a connection, each job has a port; besides, a node opens some dozens of files.
const FILES_GOOD: u64 = 8192;
/// A node without clients, with its job ports.
const FILES_LEAST: u64 = 256;

/// How many files and connections the process may have open.
pub(super) fn open_files(plan: &Plan) -> Check {
    let ranges = [plan.job_ports, plan.mindspore_ports].into_iter().flatten();
    let ports = ranges.map(|range| u64::from(range.count())).sum();
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, hard)) => judge(soft, hard, ports),
        Err(error) => Check::new("open-files", Verdict::Fail, format!("cannot be told: {error}")),
    }
}

fn judge(soft: u64, hard: u64, ports: u64) -> Check {
    // A node raises its own limit as far as it may.
    let verdict = match hard {
        hard if hard < FILES_LEAST + ports => Verdict::Fail,
        hard if hard < FILES_GOOD + ports => Verdict::Warn,
        _ => Verdict::Ok,
    };
    let check = Check::new("open-files", verdict, format!("limit {soft}, can be raised to {hard}"))
        .figure("limit", soft)
        .figure("limit_hard", hard);
    if verdict == Verdict::Ok {
        return check;
    }
    check.next(format!("`ulimit -Hn {}`, or LimitNOFILE= in the unit of systemd", FILES_GOOD + ports))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_limit_is_told_with_the_command_that_raises_it() {
        assert_eq!(judge(1 << 20, 1 << 20, 100).verdict, Verdict::Ok);
        let low = judge(1024, 4096, 100);
        assert_eq!((low.verdict, low.figures["limit"].as_u64()), (Verdict::Warn, Some(1024)));
        assert!(low.next.is_some_and(|next| next.contains("ulimit -Hn 8292")));
        assert_eq!(judge(1024, 1 << 20, 100).verdict, Verdict::Ok, "a node raises it");
        assert_eq!(judge(300, 300, 100).verdict, Verdict::Fail, "the job ports alone need a third of it");
    }
}
