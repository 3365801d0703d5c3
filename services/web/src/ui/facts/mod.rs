//! What there is to say, out of one state: plain values, without a clock and without the network.

pub(crate) mod barriers;
pub(crate) mod cluster;
pub(crate) mod graph;
pub(crate) mod headline;
pub(crate) mod hosts;
pub(crate) mod job;
pub(crate) mod jobs;
pub(crate) mod scheduler;
pub(crate) mod task;

use std::fmt::Write as _;

use tripod_state::ids::TaskId;

/// Ranges of tasks that are named.
pub(crate) const RANGES_MAX: usize = 64;

/// Ascending numbers as ranges: `0-1,3`; at most so many, and how many numbers are in those that are left out.
pub(crate) fn ranges(tasks: impl IntoIterator<Item = TaskId>, most: usize) -> (String, u64) {
    let mut runs: Vec<(i32, i32)> = Vec::new();
    let mut left_out = 0;
    for TaskId(task) in tasks {
        let is_full = runs.len() == most;
        match runs.last_mut() {
            Some((_, last)) if i64::from(*last) + 1 == i64::from(task) && left_out == 0 => *last = task,
            _ if is_full => left_out += 1,
            _ => runs.push((task, task)),
        }
    }
    let mut text = String::new();
    for (first, last) in runs {
        let comma = if text.is_empty() { "" } else { "," };
        let shown = if first == last {
            write!(text, "{comma}{first}")
        } else {
            write!(text, "{comma}{first}-{last}")
        };
        shown.expect("a text grows");
    }
    (text, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_tasks_are_named_in_few_words() {
        let named = |tasks: &[i32], most| ranges(tasks.iter().copied().map(TaskId), most);
        assert_eq!(named(&[0, 1, 3], 9), ("0-1,3".to_owned(), 0));
        assert_eq!(named(&[], 9), (String::new(), 0));
        assert_eq!(named(&[1, 3, 5, 6, 7], 2), ("1,3".to_owned(), 3));
    }
}
