//! Who is missing where others wait.

use std::collections::{BTreeMap, BTreeSet};

use crate::Code;
use crate::facts::{Call, CallKind, Facts, Outcome, Place, PlaceKind, Standing};
use crate::finding::{Finding, Sure, Where};
use crate::words::{age, clock, plain, ranges, tasks, wait};

/// Of those who are blamed, so many have a line.
const LINES_MAX: usize = 6;
/// A task at its limit of computing is blamed after the job's longest wait, so many times.
const LONGEST_TIMES: u64 = 2;

/// What one task that is missing does instead.
enum Does {
    /// It is no record, or its process has not registered again.
    NeverCame,
    /// It waits for a key.
    Key(String),
    /// It is in no call.
    Nothing,
    /// It waits for others itself, is known already, or has left: nothing to say.
    Else,
}

/// Missing tasks by the rule that blames them, and what tells two findings of that rule apart; and where others wait for them.
type Blamed<'a> = BTreeMap<(u8, String), (Vec<i32>, &'a Place)>;

/// `known`: tasks of which something is said already.
pub(super) fn find(facts: &Facts, known: &[i32]) -> Vec<Finding> {
    let known: BTreeSet<i32> = known.iter().copied().collect();
    let mut found = Vec::new();
    let mut crossed = BTreeSet::new();
    for (one, other) in pairs(facts) {
        found.push(elsewhere(facts, one, other));
        crossed.extend(one.arrived.iter().chain(&other.arrived).copied());
    }
    let mut kinds = Blamed::new();
    // Each is told with the place where others have waited longest for it.
    let mut told = &known | &crossed;
    for place in longest_first(facts) {
        for task in &place.missing {
            if !told.contains(task)
                && let Some(key) = does(facts, place, *task)
            {
                kinds.entry(key).or_insert_with(|| (Vec::new(), place)).0.push(*task);
                told.insert(*task);
            }
        }
    }
    let gone = came_and_gone(facts, &known);
    let alone = alone_at_keys(facts, &kinds);
    let mut never = None;
    for ((rank, key), (mut who, place)) in kinds {
        who.sort_unstable();
        match rank {
            0 => found.push(waits_for_key(facts, &key, who, Some(place))),
            1 => found.push(busy(facts, place, who)),
            _ => never = Some(never_came(facts, place, who)),
        }
    }
    found.extend(alone);
    found.extend(gone);
    found.extend(never);
    found
}

/// The rank of the rule by which a missing task is blamed, and what tells two findings of that rule apart.
fn does(facts: &Facts, place: &Place, task: i32) -> Option<(u8, String)> {
    let waited = facts.waited_ms(place);
    match what(facts, task) {
        Does::Key(key) if waited > facts.patience.wait_ms => Some((0, key)),
        Does::Nothing => {
            let patience = facts.patience.busy_ms.max(LONGEST_TIMES.saturating_mul(facts.longest_wait_ms()));
            let idle = idle_ms(facts, task).unwrap_or(waited);
            (waited.min(idle) > patience).then(|| (1, place.called()))
        }
        Does::NeverCame if waited > facts.patience.wait_ms => Some((2, String::new())),
        Does::Key(_) | Does::NeverCame | Does::Else => None,
    }
}

fn what(facts: &Facts, task: i32) -> Does {
    let Some(found) = facts.task(task) else { return Does::Else };
    match found.standing {
        Standing::NeverCame => return Does::NeverCame,
        Standing::Connected => {}
        Standing::Registering | Standing::Left | Standing::Lost | Standing::Ended | Standing::Failed => {
            return Does::Else;
        }
    }
    let open = facts.open(task);
    let missing_key = |call: &&Call| {
        call.kind == CallKind::Key && !facts.keys.get(&call.subject).is_some_and(|key| key.exists)
    };
    match open.iter().find(missing_key) {
        Some(call) => Does::Key(call.subject.clone()),
        None if open.is_empty() => Does::Nothing,
        None => Does::Else,
    }
}

/// For how long a task has been in no call; `None`: no call of it is remembered.
fn idle_ms(facts: &Facts, task: i32) -> Option<u64> {
    facts.last(task).iter().filter_map(|call| call.ended.map(|(_, ago)| ago)).min()
}

/// Places where somebody waits, the one where somebody has waited longest first.
fn longest_first(facts: &Facts) -> Vec<&Place> {
    let mut places: Vec<_> = facts.places.iter().filter(|place| place.arrived_count > 0).collect();
    places.sort_by_key(|place| std::cmp::Reverse(facts.waited_ms(place)));
    places
}

/// Places of which each waits for a task that waits at the other one, for long enough at both. Of several that wait for each
/// other each is told with the largest one only: so many groups are so many findings, less one.
fn pairs(facts: &Facts) -> Vec<(&Place, &Place)> {
    let long = |place: &&&Place| facts.waited_ms(place) > facts.patience.wait_ms;
    let places = longest_first(facts);
    let mut places: Vec<&Place> = places.iter().filter(long).copied().collect();
    // The one where somebody has waited longest, of two that are as large.
    places.sort_by_key(|place| std::cmp::Reverse(place.arrived_count));
    let waits_for =
        |one: &Place, other: &Place| one.missing.iter().any(|task| other.arrived.binary_search(task).is_ok());
    let mut pairs = Vec::new();
    while !places.is_empty() {
        let largest = places.remove(0);
        let (crossing, rest): (Vec<&Place>, Vec<&Place>) =
            places.into_iter().partition(|other| waits_for(largest, other) && waits_for(other, largest));
        pairs.extend(crossing.into_iter().map(|other| (largest, other)));
        places = rest;
    }
    pairs
}

/// A program with threads in several calls may yet come by another one.
fn calls_in_threads(facts: &Facts, places: [&Place; 2]) -> bool {
    let mut arrived = places.into_iter().flat_map(|place| &place.arrived);
    arrived.any(|task| facts.open(*task).len() > 1)
}

/// The smaller party is named; of two that are as large neither.
fn elsewhere(facts: &Facts, one: &Place, other: &Place) -> Finding {
    let (large, small) = if one.arrived_count >= other.arrived_count { (one, other) } else { (other, one) };
    let are_equal = large.arrived_count == small.arrived_count;
    let named = if are_equal { Vec::new() } else { small.arrived.clone() };
    let lines = if are_equal {
        [large, small].map(|place| (place.called(), tasks(&place.arrived))).to_vec()
    } else {
        named
            .iter()
            .take(LINES_MAX)
            .map(|task| (task.to_string(), elsewhere_line(facts, large, small, *task)))
            .collect()
    };
    let noun = if small.arrived_count == 1 { "task waits" } else { "tasks wait" };
    let (at, there) = (large.called(), small.called());
    Finding {
        code: Code::Elsewhere,
        place: Where::Program,
        sure: if calls_in_threads(facts, [large, small]) { Sure::Likely } else { Sure::Certain },
        text: format!(
            "{} {noun} at {there}, {} at {at}: they will never meet",
            small.arrived_count, large.arrived_count
        ),
        since_ago_ms: Some(facts.waited_ms(small).min(facts.waited_ms(large))),
        parties: [large, small].map(|place| (name(place), place.arrived.clone())).to_vec(),
        lines,
        next: vec![format!(
            "{} took another way through the program; compare what they do before {at} and {there}",
            if are_equal { "one half".to_owned() } else { tasks(&named) }
        )],
        tasks: named,
    }
}

/// The name of a place, for programs.
fn name(place: &Place) -> String {
    match place.kind {
        PlaceKind::Barrier => place.name.clone(),
        PlaceKind::Registration => "registration".to_owned(),
        PlaceKind::Shutdown => "shutdown".to_owned(),
        PlaceKind::Devices => "devices".to_owned(),
    }
}

fn elsewhere_line(facts: &Facts, large: &Place, small: &Place, task: i32) -> String {
    let call = facts.open(task).iter().find(|call| small.is_of(call));
    let since = call.map_or_else(|| facts.waited_ms(small), |call| call.since_ago_ms);
    let mut before: Vec<&str> = facts.last(task).iter().map(|call| call.subject.as_str()).collect();
    before.retain(|subject| !subject.is_empty());
    before.reverse();
    let calls = if before.is_empty() {
        String::new()
    } else {
        format!("; its last calls: {}", plain(&before.join(", ")))
    };
    let never = !facts.last(task).iter().any(|call| large.is_of(call));
    let never = if never && !before.is_empty() {
        format!("; {} is not among them", large.called())
    } else {
        String::new()
    };
    format!("in {} for {}{calls}{never}", small.called(), age(since))
}

/// Since when the others wait, and who they are.
fn waiting(place: &Place) -> (String, String) {
    let who = if place.arrived.is_empty() { place.arrived_count.to_string() } else { ranges(&place.arrived) };
    let since = place.opened_ms.map_or_else(String::new, |opened| format!(" since {}", clock(opened)));
    let fails = match (place.opened_ms, place.timeout_ms) {
        (Some(opened), Some(timeout)) => format!(", fails at {}", clock(opened.saturating_add(timeout))),
        _ => String::new(),
    };
    ("waiting".to_owned(), format!("{who} at {}{since}{fails}", place.called()))
}

fn process(facts: &Facts, task: i32) -> String {
    facts.process(task).map_or_else(String::new, |process| format!("{process}  "))
}

/// How to see what a process does that is in no call.
fn stack_of(facts: &Facts, task: i32) -> String {
    let found = facts.task(task);
    let pid = found.map(|found| found.origin.pid).filter(|pid| *pid != 0);
    let pid = pid.map_or_else(|| "PID".to_owned(), |pid| pid.to_string());
    let host = found.map(|found| found.host.as_str()).filter(|host| !host.is_empty());
    let host = host.map_or_else(|| "its host".to_owned(), |host| format!("host {}", plain(host)));
    format!("look at the stack of task {task}: py-spy dump --nonblocking --pid {pid}, on {host}")
}

fn beat(facts: &Facts, task: i32) -> String {
    match facts.task(task).and_then(|task| task.beat_age_ms) {
        Some(ms) => format!("heartbeat {} ago  ", age(ms)),
        None if facts.ages_told => "not heard since the leader leads  ".to_owned(),
        None => String::new(),
    }
}

fn last_call(facts: &Facts, task: i32) -> String {
    let Some(call) = facts.last(task).first() else { return "no call of it is remembered".to_owned() };
    let outcome = match call.ended {
        Some((Outcome::Passed, ago)) => format!("passed {} ago", age(ago)),
        Some((Outcome::Refused, ago)) => format!("refused {} ago", age(ago)),
        Some((Outcome::HungUp, ago)) => format!("given up {} ago", age(ago)),
        None => String::new(),
    };
    format!("last: {} {outcome}", call_name(call))
}

fn call_name(call: &Call) -> String {
    match call.kind {
        CallKind::Registration => "the registration".to_owned(),
        CallKind::Barrier => format!("barrier `{}`", plain(&call.subject)),
        CallKind::Shutdown => "the shutdown".to_owned(),
        CallKind::Devices => "the exchange of devices".to_owned(),
        CallKind::Key => format!("get \"{}\"", plain(&call.subject)),
        CallKind::Alive => "who is alive".to_owned(),
        CallKind::Tasks => "a watch of tasks".to_owned(),
    }
}

/// `likely` where not every member has said what waits there: a call may be open on a silent one.
fn by_all(facts: &Facts) -> Sure {
    if facts.cluster.all_answer() && facts.not_entered == 0 { Sure::Certain } else { Sure::Likely }
}

fn busy(facts: &Facts, place: &Place, who: Vec<i32>) -> Finding {
    let (verb, have) = if who.len() == 1 { ("is", "has") } else { ("are", "have") };
    let line = |task: &i32| {
        let idle = idle_ms(facts, *task)
            .map_or_else(|| "in no call".to_owned(), |ms| format!("in no call for {}", age(ms)));
        (
            task.to_string(),
            format!("{}{}{idle}; {}", process(facts, *task), beat(facts, *task), last_call(facts, *task)),
        )
    };
    let first = who[0];
    Finding {
        code: Code::Busy,
        place: Where::Program,
        sure: by_all(facts),
        text: format!(
            "{} {verb} alive and {have} not come to {}; {} for it",
            tasks(&who),
            place.called(),
            wait(place.arrived_count)
        ),
        since_ago_ms: Some(facts.waited_ms(place)),
        parties: Vec::new(),
        lines: who.iter().take(LINES_MAX).map(line).chain([waiting(place)]).collect(),
        next: vec![stack_of(facts, first)],
        tasks: who,
    }
}

fn waits_for_key(facts: &Facts, key: &str, who: Vec<i32>, place: Option<&Place>) -> Finding {
    let call =
        |task: i32| facts.open(task).iter().find(|call| call.kind == CallKind::Key && call.subject == key);
    let since = who.iter().filter_map(|task| call(*task)).map(|call| call.since_ago_ms).max();
    let siblings = facts.keys.get(key).map(|key| key.siblings);
    let beside = match siblings {
        None => "what is beside it was not looked up".to_owned(),
        Some(0) => "nobody wrote it, nor any key beside it".to_owned(),
        Some(1) => "nobody wrote it; 1 key beside it exists".to_owned(),
        Some(siblings) => format!("nobody wrote it; {siblings} keys beside it exist"),
    };
    // Of a key that was not looked up only the waiting call says that it is not there, and that for its own node.
    let is_known = siblings.is_some();
    let absent = if is_known { ", which is not there" } else { "" };
    let line = |task: &i32| {
        let since = call(*task).map_or(0, |call| call.since_ago_ms);
        (
            task.to_string(),
            format!("{}in get \"{}\" for {}; {beside}", process(facts, *task), plain(key), age(since)),
        )
    };
    let verb = if who.len() == 1 { "waits" } else { "wait" };
    let others = place.map_or_else(String::new, |place| {
        format!("; {} for it at {}", wait(place.arrived_count), place.called())
    });
    Finding {
        code: Code::WaitsForKey,
        place: Where::Program,
        sure: if place.is_some() && is_known { Sure::Certain } else { Sure::Likely },
        text: format!("{} {verb} for the key \"{}\"{absent}{others}", tasks(&who), plain(key)),
        since_ago_ms: since,
        parties: Vec::new(),
        lines: who.iter().take(LINES_MAX).map(line).chain(place.map(waiting)).collect(),
        next: vec![format!(
            "find the task that writes \"{}\"; tripod kv list --job {}",
            plain(key),
            facts.job.name
        )],
        tasks: who,
    }
}

/// Tasks for which nobody waits, and which have waited for a key for as long as nobody computes.
fn alone_at_keys(facts: &Facts, told: &Blamed<'_>) -> Vec<Finding> {
    let mut by_key = BTreeMap::<&str, Vec<i32>>::new();
    for (task, calls) in &facts.calls {
        let waits = calls.open.iter().filter(|call| call.kind == CallKind::Key);
        let long = waits.filter(|call| call.since_ago_ms > facts.patience.busy_ms);
        let absent = long.filter(|call| facts.keys.get(&call.subject).is_none_or(|key| !key.exists));
        for call in absent.filter(|call| !told.contains_key(&(0, call.subject.clone()))) {
            let who = by_key.entry(&call.subject).or_default();
            if who.last() != Some(task) {
                who.push(*task);
            }
        }
    }
    by_key.into_iter().map(|(key, who)| waits_for_key(facts, key, who, None)).collect()
}

/// Tasks that wait to register by the state, while their call is open on no member.
fn came_and_gone(facts: &Facts, known: &BTreeSet<i32>) -> Option<Finding> {
    let registration = facts.places.iter().find(|place| place.kind == PlaceKind::Registration)?;
    if facts.waited_ms(registration) <= facts.patience.wait_ms || by_all(facts) == Sure::Likely {
        return None;
    }
    let is_gone = |task: &i32| {
        let found = facts.task(*task);
        let registers =
            found.is_some_and(|found| found.standing == Standing::Registering && found.beat_age_ms.is_none());
        let hung_up_ago = idle_ms(facts, *task).unwrap_or(u64::MAX);
        registers
            && facts.open(*task).is_empty()
            && hung_up_ago > facts.patience.wait_ms
            && !known.contains(task)
    };
    let who: Vec<i32> = registration.arrived.iter().copied().filter(is_gone).collect();
    let first = *who.first()?;
    let line = |task: &i32| {
        (
            task.to_string(),
            format!(
                "{}its registration is in the state, and open on no node; {}",
                process(facts, *task),
                last_call(facts, *task)
            ),
        )
    };
    let verb = if who.len() == 1 { "has" } else { "have" };
    Some(Finding {
        code: Code::CameAndGone,
        place: Where::Program,
        sure: Sure::Likely,
        text: format!("{} {verb} registered and gone again before all had come", tasks(&who)),
        since_ago_ms: idle_ms(facts, first),
        parties: Vec::new(),
        lines: who.iter().take(LINES_MAX).map(line).chain([waiting(registration)]).collect(),
        next: vec![format!("look at the log of task {first} and start it again: the others wait on")],
        tasks: who,
    })
}

fn never_came(facts: &Facts, place: &Place, who: Vec<i32>) -> Finding {
    let (verb, process) =
        if who.len() == 1 { ("has", "no process of it") } else { ("have", "no process of them") };
    let around = who.first().into_iter().flat_map(|task| [task - 1, task + 1]);
    let around = around.filter(|task| place.arrived.binary_search(task).is_ok()).filter_map(|task| {
        let host = &facts.task(task)?.host;
        (!host.is_empty()).then(|| format!("{task} on host {}", plain(host)))
    });
    let around: Vec<String> = around.collect();
    let neighbours =
        if around.is_empty() { String::new() } else { format!("; its neighbours: {}", around.join(", ")) };
    let line = format!("{process} was ever seen{neighbours}");
    let first = who[0];
    Finding {
        code: Code::NeverCame,
        place: Where::Launcher,
        sure: Sure::Likely,
        text: format!("{} {verb} not registered; {} for it", tasks(&who), wait(place.arrived_count)),
        since_ago_ms: Some(facts.waited_ms(place)),
        parties: Vec::new(),
        lines: vec![
            (if who.len() == 1 { first.to_string() } else { format!("{} tasks", who.len()) }, line),
            waiting(place),
        ],
        next: vec![format!(
            "look at the launcher's log for task {first}; tripod job show {}",
            facts.job.name
        )],
        tasks: who,
    }
}
