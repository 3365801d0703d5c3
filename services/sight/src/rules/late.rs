//! Tasks that have not been heard for longer than their heartbeats take.

use std::collections::BTreeMap;

use crate::Code;
use crate::facts::{Facts, Standing, Task};
use crate::finding::{Finding, Sure, Where};
use crate::rules::frozen;
use crate::words::{age, plain, tasks};

/// A heartbeat may be so much later than its interval, at least: a busy machine delays it.
const SLACK_MS: u64 = 2_000;
const LINES_MAX: usize = 4;

pub(super) fn find(facts: &Facts) -> Vec<Finding> {
    let late: Vec<i32> =
        (0_i32..).zip(&facts.tasks).filter(|(_, task)| is_late(task)).map(|(id, _)| id).collect();
    let frozen = frozen::find(facts, &late);
    // Their tasks ascend, as all do.
    let is_frozen = |task: &i32| frozen.iter().any(|found| found.tasks.binary_search(task).is_ok());
    let late: Vec<i32> = late.into_iter().filter(|task| !is_frozen(task)).collect();
    let mut by_host = BTreeMap::<&str, Vec<i32>>::new();
    for number in &late {
        by_host.entry(facts.task(*number).map_or("", |task| task.host.as_str())).or_default().push(*number);
    }
    let silent = |host: &str, numbers: &[i32]| {
        let all = facts
            .tasks
            .iter()
            .filter(|task| task.host == host && task.standing == Standing::Connected)
            .count();
        !host.is_empty() && numbers.len() > 1 && numbers.len() == all
    };
    let (hosts, rest): (Vec<_>, Vec<_>) =
        by_host.into_iter().partition(|(host, numbers)| silent(host, numbers));
    let mut rest: Vec<i32> = rest.into_iter().flat_map(|(_, numbers)| numbers).collect();
    rest.sort_unstable();
    let hosts = hosts.into_iter().map(|(host, numbers)| host_silent(facts, host, numbers));
    let rest = (!rest.is_empty()).then(|| single(facts, rest));
    hosts.chain(frozen).chain(rest).collect()
}

/// It sends a heartbeat at least each half of what it may be silent.
fn is_late(task: &Task) -> bool {
    let interval = task.silence_limit_ms / 2;
    let allowed = interval + (interval / 4).max(SLACK_MS);
    task.standing == Standing::Connected
        && task.silence_limit_ms > 0
        && task.beat_age_ms.is_some_and(|beat_age| beat_age > allowed)
}

fn longest(facts: &Facts, numbers: &[i32]) -> u64 {
    numbers.iter().filter_map(|task| facts.task(*task)?.beat_age_ms).max().unwrap_or(0)
}

/// Where it is, and how long it may still be silent.
pub(super) fn line(facts: &Facts, number: i32) -> (String, String) {
    let task = facts.task(number);
    let beat = task.and_then(|task| task.beat_age_ms).unwrap_or(0);
    let limit = task.map_or(0, |task| task.silence_limit_ms);
    let process = facts.process(number).map_or_else(String::new, |process| format!("{process}  "));
    let left = limit.saturating_sub(beat);
    (number.to_string(), format!("{process}heartbeat {} ago, given up in {}", age(beat), age(left)))
}

fn host_silent(facts: &Facts, host: &str, numbers: Vec<i32>) -> Finding {
    let since = longest(facts, &numbers);
    Finding {
        code: Code::HostSilent,
        place: Where::HostOrNetwork,
        sure: Sure::Likely,
        text: format!(
            "host {} is silent: all of its {} were not heard for {}",
            plain(host),
            tasks(&numbers),
            age(since)
        ),
        since_ago_ms: Some(since),
        lines: numbers.iter().take(LINES_MAX).map(|task| line(facts, *task)).collect(),
        tasks: numbers,
        parties: Vec::new(),
        next: vec![format!("look whether host {} answers", plain(host))],
    }
}

fn single(facts: &Facts, numbers: Vec<i32>) -> Finding {
    let since = longest(facts, &numbers);
    let verb = if numbers.len() == 1 { "was" } else { "were" };
    Finding {
        code: Code::Late,
        place: Where::HostOrNetwork,
        sure: Sure::Likely,
        text: format!(
            "{} {verb} not heard for {}, longer than between heartbeats",
            tasks(&numbers),
            age(since)
        ),
        since_ago_ms: Some(since),
        lines: numbers.iter().take(LINES_MAX).map(|task| line(facts, *task)).collect(),
        next: vec![format!(
            "look at the process of task {}: stopped (state T), waiting for a disk (D), or gone",
            numbers[0]
        )],
        tasks: numbers,
        parties: Vec::new(),
    }
}
