//! Hosts of many tasks in few bytes: each name once, and runs of tasks on names that follow each other.

use std::collections::HashMap;

/// So many tasks on each of so many names, from this one on: `[FIRST, NAMES, TASKS]`.
type Run = (usize, usize, usize);

/// The names in the order in which they come first, and the runs in the order of the tasks. Eight tasks on each of a hundred
/// hosts in turn are one run, and so is one task on each.
pub(crate) fn runs<'a>(hosts: impl IntoIterator<Item = &'a str>) -> (Vec<&'a str>, Vec<Run>) {
    let mut names = Vec::new();
    let mut places = HashMap::new();
    let mut runs: Vec<Run> = Vec::new();
    // The name at which tasks stand just now, and how many.
    let mut last: Option<(usize, usize)> = None;
    for host in hosts {
        let place = *places.entry(host).or_insert_with(|| {
            names.push(host);
            names.len() - 1
        });
        last = match last {
            Some((name, tasks)) if name == place => Some((name, tasks + 1)),
            other => {
                add(&mut runs, other);
                Some((place, 1))
            }
        };
    }
    add(&mut runs, last);
    (names, runs)
}

/// Adds tasks on one name, to the last run if that goes on so.
fn add(runs: &mut Vec<Run>, more: Option<(usize, usize)>) {
    let Some((place, tasks)) = more else { return };
    match runs.last_mut() {
        Some((first, names, each)) if *first + *names == place && *each == tasks => *names += 1,
        _ => runs.push((place, 1, tasks)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_once_and_runs_go_on_over_them() {
        let of = |hosts: &[&'static str]| runs(hosts.iter().copied());
        assert_eq!(of(&[]), (vec![], vec![]));
        assert_eq!(of(&["a", "a", "b", "b", "c"]), (vec!["a", "b", "c"], vec![(0, 2, 2), (2, 1, 1)]));
        assert_eq!(of(&["a", "b", "c", "a", "b", "c"]), (vec!["a", "b", "c"], vec![(0, 3, 1), (0, 3, 1)]));
        assert_eq!(of(&["", "a", "a", ""]), (vec!["", "a"], vec![(0, 1, 1), (1, 1, 2), (0, 1, 1)]));
    }
}
