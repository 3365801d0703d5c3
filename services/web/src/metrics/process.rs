//! What the system tells of this process. A figure that it does not tell is not shown.

use std::fs;

/// Ticks of a second in `/proc/self/stat`: a fact of Linux on every platform that it runs on (`USER_HZ`).
const TICKS: f64 = 100.0;
/// The limit of open files in `/proc/self/limits`.
const FILES_LIMIT: &str = "Max open files";

/// Figures of this process.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Process {
    pub(super) memory_bytes: Option<u64>,
    pub(super) cpu_seconds: Option<f64>,
    pub(super) open_fds: Option<u64>,
    pub(super) max_fds: Option<u64>,
    /// Since 1970.
    pub(super) started_seconds: Option<f64>,
}

impl Process {
    /// Reads five small files, which are in memory.
    pub(super) fn look() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let stat = text("/proc/self/stat");
        Self {
            memory_bytes: memory_bytes(&text("/proc/self/status")),
            cpu_seconds: cpu_seconds(&stat),
            max_fds: max_fds(&text("/proc/self/limits")),
            started_seconds: started_seconds(&stat, &text("/proc/stat")),
            open_fds: fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as u64),
        }
    }
}

fn memory_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// The fields behind the program's name, which is in brackets and may hold blanks: the 12th and 13th of them
/// are the ticks in the program and in the system.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u32>().ok();
    Some((f64::from(ticks()?) + f64::from(ticks()?)) / TICKS)
}

/// The soft limit; a machine may have none.
fn max_fds(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(FILES_LIMIT))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The 20th field behind the program's name are the ticks from the machine's start to the process's.
fn started_seconds(stat: &str, of_machine: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let ticks: f64 = rest.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let booted = of_machine.lines().find_map(|line| line.strip_prefix("btime "))?;
    let booted: f64 = booted.trim().parse().ok()?;
    Some(booted + ticks / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_what_linux_writes() {
        assert_eq!(memory_bytes("Name:\ttripod\nVmRSS:\t   29012 kB\nThreads:\t9\n"), Some(29_012 * 1024));
        let stat = "71 (a (b) c) S 1 71 71 0 -1 4194560 5000 0 0 0 150 50 0 0 20 0 9 0 100 1 2";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        let limits = "Max processes  1  2  processes\nMax open files            1024      4096      files\n";
        assert_eq!((max_fds(limits), max_fds("")), (Some(1024), None));
        assert_eq!(started_seconds(stat, "cpu 1 2\nbtime 1700000000\n"), Some(1_700_000_001.0));
        assert_eq!((started_seconds(stat, ""), started_seconds("1 (a) S", "btime 1\n")), (None, None));
        assert_eq!((memory_bytes("Name:\tx"), cpu_seconds("1 (a) S")), (None, None));
    }

    #[test]
    fn this_process_has_memory_time_and_files() {
        let process = Process::look();
        assert!(process.memory_bytes.is_some_and(|bytes| bytes > 1 << 20), "{process:?}");
        assert!(process.cpu_seconds.is_some(), "{process:?}");
        assert!(process.open_fds.is_some_and(|files| files > 2), "{process:?}");
        assert!(process.max_fds >= process.open_fds, "{process:?}");
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        let age = now.as_secs_f64() - process.started_seconds.expect("it is told");
        assert!((-5.0..86_400.0).contains(&age), "it started {age} s ago");
    }
}
