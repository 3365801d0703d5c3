//! Processes that have ended, tasks that were given up, and tasks that are in error.

use crate::Code;
use crate::facts::{Facts, Standing};
use crate::finding::{Finding, Sure, Where};
use crate::words::{age, clock, plain, ranges, short, tasks};

/// The first that ended are the cause; the others ended because of them. So many of those are told each in a line.
const LINES_MAX: usize = 4;
/// Processes that ended within so long of the first one are told with it.
const TOGETHER_MS: u64 = 1_000;

pub(super) fn find(facts: &Facts) -> Vec<Finding> {
    let mut found: Vec<Finding> = ended(facts).into_iter().chain(gone(facts)).collect();
    if found.is_empty() {
        found.extend(in_error(facts));
    }
    found
}

fn numbers(facts: &Facts, standing: Standing) -> Vec<i32> {
    let all = (0_i32..).zip(&facts.tasks);
    all.filter(|(_, task)| task.standing == standing).map(|(number, _)| number).collect()
}

fn ended(facts: &Facts) -> Option<Finding> {
    let all = numbers(facts, Standing::Ended);
    let when =
        |task: i32| facts.task(task).and_then(|task| task.end.as_ref()).map_or(u64::MAX, |end| end.at_ms);
    let first = all.iter().copied().min_by_key(|task| when(*task))?;
    let named: Vec<i32> =
        all.iter().copied().filter(|task| when(*task) <= when(first).saturating_add(TOGETHER_MS)).collect();
    let end = facts.task(first).and_then(|task| task.end.clone());
    let place = if end.as_ref().is_some_and(|end| end.out_of_memory) { Where::Host } else { Where::Program };
    let how = match &end {
        Some(end) => format!("{} at {}", plain(&end.how), clock(end.at_ms)),
        None => "ended, as whoever started it saw".to_owned(),
    };
    let mut lines: Vec<_> =
        named.iter().take(LINES_MAX).map(|task| (task.to_string(), line(facts, *task))).collect();
    lines.extend(failed_too(facts));
    let more = if named.len() > 1 {
        format!("; so did {} others within a second", named.len() - 1)
    } else {
        String::new()
    };
    Some(Finding {
        code: Code::Ended,
        place,
        sure: by_one_clock(facts, &all),
        text: format!("the process of task {first} {how}{more}"),
        since_ago_ms: end.map(|end| facts.now_ms.saturating_sub(end.at_ms)),
        tasks: named,
        parties: Vec::new(),
        lines,
        next: vec![format!(
            "look at the log of task {first}; tripod job show {} --state ended,error",
            facts.job.name
        )],
    })
}

/// When a process ended is told by its host, so of those of several hosts nobody knows which one was the first.
fn by_one_clock(facts: &Facts, ended: &[i32]) -> Sure {
    let mut hosts = ended.iter().map(|task| facts.task(*task).map_or("", |task| task.host.as_str()));
    let first = hosts.next().unwrap_or_default();
    let is_one = !first.is_empty() && hosts.all(|host| host == first);
    if ended.len() == 1 || is_one { Sure::Certain } else { Sure::Likely }
}

/// Where the process of a task was.
fn process(facts: &Facts, number: i32) -> String {
    facts.process(number).unwrap_or_else(|| "host unknown".to_owned())
}

fn line(facts: &Facts, number: i32) -> String {
    let Some(task) = facts.task(number) else { return String::new() };
    let host = process(facts, number);
    let Some(end) = &task.end else { return host };
    let last = if end.last_line.is_empty() {
        String::new()
    } else {
        format!("  last line: {}", plain(&end.last_line))
    };
    format!("{host}  {} ago{last}", age(facts.now_ms.saturating_sub(end.at_ms)))
}

fn gone(facts: &Facts) -> Option<Finding> {
    let lost = numbers(facts, Standing::Lost);
    let first = *lost.first()?;
    let limit = facts.task(first).map_or(0, |task| task.silence_limit_ms);
    let silent = if limit > 0 { format!(": silent for more than {}", age(limit)) } else { String::new() };
    let hosts = lost
        .iter()
        .take(LINES_MAX)
        .filter_map(|task| facts.process(*task).map(|process| (task.to_string(), process)));
    Some(Finding {
        code: Code::Gone,
        place: Where::HostOrNetwork,
        sure: Sure::Likely,
        text: format!("{} {} given up{silent}", tasks(&lost), if lost.len() == 1 { "was" } else { "were" }),
        since_ago_ms: None,
        lines: hosts.chain(failed_too(facts)).collect(),
        tasks: lost,
        parties: Vec::new(),
        next: vec![format!(
            "look at the host and the log of task {first}: `tripod run` would say how it ended"
        )],
    })
}

/// Tasks that are in error besides, before or after: the state does not say in which order, the job's events do.
fn failed_too(facts: &Facts) -> Option<(String, String)> {
    let failed = numbers(facts, Standing::Failed);
    let own = by_themselves(facts, &failed);
    let own = if own.is_empty() { String::new() } else { format!(" (by themselves: {})", ranges(&own)) };
    let order = format!("the order: tripod job events {}", facts.job.name);
    let line = format!("in error too: {}{own}; {order}", ranges(&failed));
    (!failed.is_empty()).then(|| ("failed".to_owned(), line))
}

/// Those of them whose error is their own.
fn by_themselves(facts: &Facts, failed: &[i32]) -> Vec<i32> {
    let is_own =
        |task: &i32| facts.task(*task).and_then(|task| task.error.as_ref()).is_some_and(|it| it.is_own);
    failed.iter().copied().filter(is_own).collect()
}

/// Tasks that say themselves what is wrong come before those that were ended because of others.
fn in_error(facts: &Facts) -> Option<Finding> {
    let failed = numbers(facts, Standing::Failed);
    let own = by_themselves(facts, &failed);
    let (named, others): (Vec<i32>, Vec<i32>) =
        failed.into_iter().partition(|task| own.is_empty() || own.binary_search(task).is_ok());
    let first = *named.first()?;
    let error = |number: i32| facts.task(number).and_then(|task| task.error.as_ref());
    let why = error(first).map_or_else(String::new, |error| format!(": {}", short(&error.text)));
    let line = |number: &i32| {
        let host = process(facts, *number);
        let text = error(*number).map_or_else(String::new, |error| format!("  {}", short(&error.text)));
        (number.to_string(), format!("{host}{text}"))
    };
    let too = (!others.is_empty())
        .then(|| ("failed".to_owned(), format!("because of others: {}", ranges(&others))));
    Some(Finding {
        code: Code::InError,
        place: Where::Program,
        sure: Sure::Certain,
        text: format!("{} {} in error{why}", tasks(&named), if named.len() == 1 { "is" } else { "are" }),
        since_ago_ms: None,
        lines: named.iter().take(LINES_MAX).map(line).chain(too).collect(),
        tasks: named,
        parties: Vec::new(),
        next: vec![format!(
            "look at the log of task {first}; tripod job events {} --kind failed,ended-by-others",
            facts.job.name
        )],
    })
}
