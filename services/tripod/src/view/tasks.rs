//! Task ids in words.

/// Ranges of ids that are named.
const RANGES_MAX: usize = 8;

/// So many tasks, of whom the first are known, ascending: `task 3`, `tasks 0, 1, 4-9 and 17 more`, `2 tasks`,
/// `nobody`.
pub(crate) fn named(first: &[i32], count: usize) -> String {
    match (first, count) {
        (_, 0) => "nobody".to_owned(),
        ([], 1) => "1 task".to_owned(),
        ([], count) => format!("{count} tasks"),
        (_, 1) => format!("task {}", ids(first, 1)),
        _ => format!("tasks {}", ids(first, count)),
    }
}

/// The ids alone: `0, 1, 4-9 and 17 more`.
pub(crate) fn ids(first: &[i32], count: usize) -> String {
    let mut ranges: Vec<(i32, i32)> = Vec::new();
    let mut shown = 0;
    for &id in first {
        let room = ranges.len() < RANGES_MAX;
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == id => *last = id,
            _ if room => ranges.push((id, id)),
            _ => break,
        }
        shown += 1;
    }
    let ranges: Vec<_> = ranges.into_iter().map(range).collect();
    let ranges = ranges.join(", ");
    match count.saturating_sub(shown) {
        0 => ranges,
        more => format!("{ranges} and {more} more"),
    }
}

/// Two neighbours are read more easily as a list.
fn range((first, last): (i32, i32)) -> String {
    match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_become_ranges() {
        assert_eq!(ids(&[1], 1), "1");
        assert_eq!(ids(&[0, 1, 2, 5, 7, 8], 6), "0-2, 5, 7, 8");
    }

    #[test]
    fn those_that_are_not_named_are_counted() {
        assert_eq!(ids(&[0, 1, 2], 10), "0-2 and 7 more");
        let odd: Vec<i32> = (0..100).filter(|id| id % 2 == 1).collect();
        assert_eq!(ids(&odd, 1_000), "1, 3, 5, 7, 9, 11, 13, 15 and 992 more");
    }

    #[test]
    fn tasks_are_named_as_far_as_they_are_known() {
        assert_eq!(named(&[], 0), "nobody");
        assert_eq!(named(&[], 1), "1 task");
        assert_eq!(named(&[], 2), "2 tasks");
        assert_eq!(named(&[4], 1), "task 4");
        assert_eq!(named(&[4, 5], 2), "tasks 4, 5");
    }
}
