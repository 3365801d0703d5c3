//! The class of machine that figures come from, without its name.

use std::process::Command;

/// Nobody shall take figures of a slow build for ours.
const BUILD: &str = if cfg!(debug_assertions) { "**development build**" } else { "release build" };

/// One line: cores, memory, kernel, load, and the commit and build that were measured.
pub(super) fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = read("/proc/meminfo").and_then(|text| memory_gib(&text)).unwrap_or(0);
    let kernel = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    // What follows the number names the builder, not the class.
    let kernel = kernel.split('-').next().unwrap_or_default().trim();
    let load =
        read("/proc/loadavg").and_then(|text| text.split(' ').next().map(str::to_owned)).unwrap_or_default();
    let commit = output("git", &["describe", "--always", "--dirty"]).unwrap_or_else(|| "unknown".into());
    format!(
        "{cores} shared cores, {memory} GiB of memory, Linux {kernel}, loopback network, data on the system's \
         temporary directory; load average {load} before the run; {BUILD} of commit {commit}."
    )
}

/// The first line that a program prints, to name its version.
pub(super) fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(|line| line.trim().to_owned())
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn memory_gib(meminfo: &str) -> Option<u64> {
    let kib = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().strip_suffix("kB")?;
    // To the nearest: the kernel keeps some for itself.
    Some((kib.trim().parse::<u64>().ok()? + (1 << 19)) >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_in_gibibytes() {
        assert_eq!(memory_gib("MemTotal:       24689532 kB\nMemFree: 1 kB\n"), Some(24));
        assert_eq!(memory_gib("MemFree: 1 kB\n"), None);
    }
}
