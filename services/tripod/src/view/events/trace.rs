//! What happened as a trace of Chrome, which Perfetto and browsers show as lanes of time.
//!
//! A job is a process and a task a thread of it. A wait from a barrier's opening to its end is a pair `B` and `E` on the track
//! of the task that opened it: the events tell of no other when it came. On one track waits do not overlap: a second one of the
//! same task begins where the first one ends, or is left out. Everything else is an instant. An arrow leads from the last
//! arrival at a barrier, which is a span of a microsecond, to the one that it released.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tripod_client::wire;

/// The track of a process for what concerns no task in particular.
const WHOLE: i64 = -1;
/// Tasks of one event that get a mark each; the others have one on the track of the whole.
const MARKS_MAX: usize = 64;

/// Microseconds since the Unix epoch.
type Micros = u64;

struct Wait {
    process: u64,
    task: i64,
    barrier: String,
    from: Micros,
    to: Micros,
    last: Option<i64>,
    failed: bool,
}

/// The whole document.
pub(crate) fn trace(answer: &wire::EventsResponse) -> Value {
    let mut entries: Vec<(Micros, u8, Value)> = Vec::new();
    let mut tracks: BTreeSet<(u64, i64)> = BTreeSet::new();
    let mut arrivals = BTreeSet::new();
    let waits = waits(&answer.events);
    for (flow, wait) in waits.iter().enumerate() {
        tracks.insert((wait.process, wait.task));
        add_wait(&mut entries, (&mut tracks, &mut arrivals), wait, flow);
    }
    for event in &answer.events {
        for task in marks(event) {
            tracks.insert((event.job_id, task));
            entries.push((event.at_ms * 1_000, 2, instant(event, task)));
        }
    }
    entries.sort_by_key(|(at, rank, _)| (*at, *rank));
    let names = names(&answer.rings, &tracks);
    let all: Vec<Value> = names.into_iter().chain(entries.into_iter().map(|(_, _, entry)| entry)).collect();
    json!({ "traceEvents": all, "displayTimeUnit": "ms" })
}

/// The waits of those who opened barriers, none of which overlap on a track.
fn waits(events: &[wire::Event]) -> Vec<Wait> {
    let mut open: BTreeMap<(u64, String, i64), &wire::Event> = BTreeMap::new();
    let mut busy_until: BTreeMap<(u64, i64), Micros> = BTreeMap::new();
    let mut waits = Vec::new();
    for event in events {
        let detail = event.detail.unwrap_or_default();
        let barrier = (event.job_id, event.name.clone(), detail.counter.unwrap_or_default());
        let over = matches!(event.kind.as_str(), "barrier-passed" | "barrier-failed");
        if event.kind == "barrier-opened" {
            open.insert(barrier, event);
        } else if over && let Some(opened) = open.remove(&barrier) {
            let task = i64::from(opened.detail.unwrap_or_default().first_task.unwrap_or_default());
            let busy = busy_until.entry((event.job_id, task)).or_default();
            let from = (opened.until_ms * 1_000).max(*busy);
            let to = event.until_ms * 1_000;
            if from < to {
                *busy = to;
                let (process, last) = (event.job_id, detail.last_task.map(i64::from));
                let failed = event.kind == "barrier-failed";
                waits.push(Wait { process, task, barrier: event.name.clone(), from, to, last, failed });
            }
        }
    }
    waits
}

/// Processes, each with a task.
type Tracks = BTreeSet<(u64, i64)>;
/// The same with the time at which the task arrived last.
type Arrivals = BTreeSet<(u64, i64, Micros)>;

/// A wait, and the arrow from the last arrival that ended it. An arrow ends in what is there at that time, so just before the
/// wait's end.
fn add_wait(
    entries: &mut Vec<(Micros, u8, Value)>,
    (tracks, arrivals): (&mut Tracks, &mut Arrivals),
    wait: &Wait,
    flow: usize,
) {
    let Wait { process, task, barrier, from, to, last, failed } = wait;
    let at = |phase: &str, task: i64, ts: Micros| json!({ "ph": phase, "pid": process, "tid": thread(task), "ts": ts });
    let with = |mut entry: Value, more: Value| {
        if let (Some(entry), Value::Object(more)) = (entry.as_object_mut(), more) {
            entry.extend(more);
        }
        entry
    };
    let name = format!("wait at {barrier}");
    let begin = json!({ "name": name, "cat": "barrier", "args": { "failed": failed } });
    // A wait ends before the next one begins.
    entries.push((*from, 3, with(at("B", *task, *from), begin)));
    entries.push((*to, 1, with(at("E", *task, *to), json!({ "name": name, "cat": "barrier" }))));
    let Some(last) = last.filter(|last| last != task) else { return };
    tracks.insert((*process, last));
    // An arrow begins within something, so the arrival lasts for a microsecond.
    let (arrow, before) = (json!({ "name": "released", "cat": "barrier", "id": flow }), to.saturating_sub(1));
    let arrival = json!({ "name": format!("arrives at {barrier}"), "cat": "barrier" });
    // One arrival for all that it ended at that time: two would overlap.
    if arrivals.insert((*process, last, *to)) {
        entries.push((before, 4, with(at("B", last, before), arrival.clone())));
        entries.push((*to, 0, with(at("E", last, *to), arrival)));
    }
    entries.push((before, 5, with(at("s", last, before), arrow.clone())));
    entries.push((*to, 0, with(with(at("f", *task, *to), arrow), json!({ "bp": "e" }))));
}

/// The tracks on which an event is marked.
fn marks(event: &wire::Event) -> Vec<i64> {
    let ids = event.tasks.iter().flat_map(|range| range.first..=range.last).map(i64::from);
    let ids: Vec<i64> = ids.take(MARKS_MAX + 1).collect();
    if ids.is_empty() || ids.len() > MARKS_MAX { vec![WHOLE] } else { ids }
}

fn instant(event: &wire::Event, task: i64) -> Value {
    let scope = if task == WHOLE { "p" } else { "t" };
    let tasks = super::line::ranges(&event.tasks);
    json!({
        "ph": "i", "pid": event.job_id, "tid": thread(task), "ts": event.at_ms * 1_000, "s": scope,
        "name": event.kind, "cat": if event.milestone { "milestone" } else { "traffic" },
        "args": { "tasks": tasks, "name": event.name, "text": event.text, "times": event.times },
    })
}

/// Threads are numbered from 1; the first one is of the whole process.
fn thread(task: i64) -> i64 {
    task + 2
}

/// What processes and threads are called.
fn names(rings: &[wire::EventRing], tracks: &BTreeSet<(u64, i64)>) -> Vec<Value> {
    let of = |process: u64| match rings.iter().find(|ring| ring.job_id == process) {
        Some(ring) if !ring.job.is_empty() => format!("job {}", ring.job),
        _ => "cluster".to_owned(),
    };
    let processes: BTreeSet<u64> = tracks.iter().map(|(process, _)| *process).collect();
    let processes = processes.into_iter().map(|process| {
        json!({ "ph": "M", "name": "process_name", "pid": process, "tid": 0, "ts": 0, "args": { "name": of(process) } })
    });
    let threads = tracks.iter().map(|(process, task)| {
        let name = if *task == WHOLE { "all tasks".to_owned() } else { format!("task {task}") };
        json!({ "ph": "M", "name": "thread_name", "pid": process, "tid": thread(*task), "ts": 0, "args": { "name": name } })
    });
    processes.chain(threads).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a trace: the rules of those who show it.
    fn check(trace: &Value) -> Result<(usize, usize), String> {
        let text = serde_json::to_string(trace).map_err(|error| error.to_string())?;
        let read: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let entries = read["traceEvents"].as_array().ok_or("no list of events")?;
        let mut last = 0;
        let mut open: BTreeMap<(u64, i64), Vec<String>> = BTreeMap::new();
        let mut flows: BTreeMap<u64, (u32, u32)> = BTreeMap::new();
        let (mut named, mut used) = (BTreeSet::new(), BTreeSet::new());
        let mut spans = 0;
        for entry in entries {
            let field = |name: &str| entry[name].as_u64().ok_or(format!("{name} in {entry}"));
            let (ts, track) = (
                field("ts")?,
                (field("pid")?, i64::try_from(field("tid")?).map_err(|error| error.to_string())?),
            );
            let name = entry["name"].as_str().ok_or(format!("no name in {entry}"))?.to_owned();
            let stack = open.entry(track).or_default();
            match entry["ph"].as_str().ok_or("no phase")? {
                "M" if name == "thread_name" => _ = named.insert(track),
                "M" => {}
                "B" => stack.push(name),
                "E" => match stack.pop() {
                    Some(began) if began == name => spans += 1,
                    other => return Err(format!("{name} ends, and what began is {other:?}")),
                },
                "i" => {}
                "s" if stack.last().is_some() => flows.entry(field("id")?).or_default().0 += 1,
                "f" if stack.last().is_some() => flows.entry(field("id")?).or_default().1 += 1,
                other => return Err(format!("{other} does not belong here: {entry}")),
            }
            if entry["ph"] != "M" {
                used.insert(track);
                if ts < last {
                    return Err(format!("{ts} stands behind {last}"));
                }
                last = ts;
            }
        }
        if open.values().any(|stack| !stack.is_empty()) || flows.values().any(|both| *both != (1, 1)) {
            return Err(format!("something is left open: {open:?} {flows:?}"));
        }
        let unnamed: Vec<_> = used.difference(&named).collect();
        if unnamed.is_empty() { Ok((spans, flows.len())) } else { Err(format!("nobody named {unnamed:?}")) }
    }

    fn event(kind: &str, at_ms: u64, name: &str, detail: wire::EventDetail) -> wire::Event {
        wire::Event {
            job_id: 7,
            kind: kind.into(),
            at_ms,
            until_ms: at_ms,
            name: name.into(),
            detail: Some(detail),
            times: 1,
            ..wire::Event::default()
        }
    }

    fn opened(at: u64, name: &str, first: i32) -> wire::Event {
        event("barrier-opened", at, name, wire::EventDetail { first_task: Some(first), ..Default::default() })
    }

    fn passed(at: u64, name: &str, last: i32) -> wire::Event {
        event("barrier-passed", at, name, wire::EventDetail { last_task: Some(last), ..Default::default() })
    }

    /// The cascade of V17: a barrier passes, a task is lost, another barrier fails, and all are ended.
    fn cascade() -> wire::EventsResponse {
        let range = |first, last| vec![wire::TaskRange { first, last }];
        let mut events = vec![
            opened(10, "a", 0),
            passed(30, "a", 2),
            opened(40, "b", 1),
            // The same task waits at two: one track cannot show both at once.
            opened(50, "c", 1),
            event("given-up", 60, "", wire::EventDetail::default()),
            event("barrier-failed", 60, "b", wire::EventDetail::default()),
            event("barrier-failed", 60, "c", wire::EventDetail::default()),
            event("ended-by-others", 60, "", wire::EventDetail::default()),
        ];
        events[4].tasks = range(2, 2);
        events[7].tasks = range(0, 511);
        let rings = vec![wire::EventRing { job: "train".into(), job_id: 7, ..Default::default() }];
        wire::EventsResponse { events, rings, ..Default::default() }
    }

    #[test]
    fn spans_nest_time_ascends_and_each_release_has_an_arrow() {
        assert_eq!(check(&trace(&cascade())), Ok((3, 1)));
    }

    #[test]
    fn a_wait_that_ends_as_another_one_begins_does_not_overlap_it() {
        let events = vec![opened(10, "a", 0), passed(20, "a", 1), opened(20, "b", 0), passed(30, "b", 1)];
        let answer = wire::EventsResponse { events, ..cascade() };
        assert_eq!(check(&trace(&answer)), Ok((4, 2)));
    }

    #[test]
    fn nothing_is_a_trace_too() {
        assert_eq!(check(&trace(&wire::EventsResponse::default())), Ok((0, 0)));
    }

    /// The checker sees what it is there for.
    #[test]
    fn wrong_traces_are_found() {
        let at = |ph: &str, ts: u64, name: &str| json!({ "ph": ph, "pid": 1, "tid": 1, "ts": ts, "name": name, "id": 1 });
        let name = json!({ "ph": "M", "pid": 1, "tid": 1, "ts": 0, "name": "thread_name" });
        let wrong = [
            vec![at("B", 1, "a"), at("B", 2, "b"), at("E", 3, "a"), at("E", 4, "b")],
            vec![at("i", 2, "a"), at("i", 1, "a")],
            vec![at("B", 1, "a")],
            vec![at("s", 1, "a")],
            vec![at("f", 1, "a")],
            vec![json!({ "ph": "i", "pid": 1, "tid": 9, "ts": 1, "name": "a" })],
        ];
        for entries in wrong {
            let entries: Vec<Value> = std::iter::once(name.clone()).chain(entries).collect();
            assert!(check(&json!({ "traceEvents": entries })).is_err(), "{entries:?}");
        }
    }
}
