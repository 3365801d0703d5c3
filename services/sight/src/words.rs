//! Times, ages and ranges as people read them.

use std::fmt::Write as _;

/// Ranges that are printed; of more their number.
const RANGES_MAX: usize = 8;
/// Letters of an error that are printed.
const TEXT_CHARS_MAX: usize = 160;

/// `4 m 12 s`, `0.4 s`.
pub(crate) fn age(ms: u64) -> String {
    let (seconds, minutes, hours) = (ms / 1_000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..10_000 => format!("{}.{} s", seconds, ms % 1_000 / 100),
        10_000..60_000 => format!("{seconds} s"),
        60_000..3_600_000 => format!("{minutes} m {} s", seconds % 60),
        3_600_000..86_400_000 => format!("{hours} h {} m", minutes % 60),
        _ => format!("{} d {} h", hours / 24, hours % 24),
    }
}

/// `03:12:07Z`, of milliseconds since the Unix epoch.
pub(crate) fn clock(ms: u64) -> String {
    let seconds = ms / 1_000 % 86_400;
    format!("{:02}:{:02}:{:02}Z", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// `0-232, 234-511`; of many ranges the first, and how many tasks there are.
pub(crate) fn ranges(tasks: &[i32]) -> String {
    let mut found: Vec<(i32, i32)> = Vec::new();
    for task in tasks {
        match found.last_mut() {
            Some((_, last)) if i64::from(*last) + 1 == i64::from(*task) => *last = *task,
            _ => found.push((*task, *task)),
        }
    }
    let mut text = String::new();
    for (first, last) in found.iter().take(RANGES_MAX) {
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = if first == last {
            write!(text, "{comma}{first}")
        } else {
            write!(text, "{comma}{first}-{last}")
        };
    }
    if found.len() > RANGES_MAX {
        let _ = write!(text, ", ... ({} in all)", tasks.len());
    }
    text
}

/// `task 2`, `tasks 2, 5-7`.
pub(crate) fn tasks(numbers: &[i32]) -> String {
    let noun = if numbers.len() == 1 { "task" } else { "tasks" };
    format!("{noun} {}", ranges(numbers))
}

/// `1 waits`, `511 wait`.
pub(crate) fn wait(count: u32) -> String {
    if count == 1 { "1 waits".to_owned() } else { format!("{count} wait") }
}

/// The first line of a text of somebody else's, or its beginning.
pub(crate) fn short(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let mut cut: String = plain(line).chars().take(TEXT_CHARS_MAX).collect();
    if cut.chars().count() < line.chars().count() {
        cut.push_str("...");
    }
    cut
}

/// Whatever could be an order to a terminal is shown as what it is.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_times_and_ranges() {
        let ages = [0, 460, 9_999, 59_999, 252_000, 22_320_000, 90_000_000].map(age);
        assert_eq!(ages, ["0.0 s", "0.4 s", "9.9 s", "59 s", "4 m 12 s", "6 h 12 m", "1 d 1 h"]);
        assert_eq!(clock(1_700_000_000_000), "22:13:20Z");
        assert_eq!(ranges(&[0, 1, 2, 4, 7, 8]), "0-2, 4, 7-8");
        let odd: Vec<i32> = (0..40).map(|task| task * 2).collect();
        assert_eq!(ranges(&odd), "0, 2, 4, 6, 8, 10, 12, 14, ... (40 in all)");
        assert_eq!(
            (tasks(&[2]), tasks(&[2, 3]), ranges(&[])),
            ("task 2".into(), "tasks 2-3".into(), String::new())
        );
        assert_eq!(short("\n a\u{1b}b \nc"), "a\u{fffd}b");
        assert_eq!(short(&"x".repeat(200)).len(), TEXT_CHARS_MAX + 3);
        assert_eq!(plain("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
    }
}
