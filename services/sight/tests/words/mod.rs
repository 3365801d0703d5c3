//! Facts as lines of words, ages in milliseconds:
//!
//! ```text
//! job NAME tasks N timeout MS
//! task RANGE STANDING [host H] [pid N] [client WORD] [agent WORD] [launcher WORD] [life N] [beat MS] [limit MS] [stopped|in-disk AGO] [in WORD] [how TEXT_WITH_LINES] [at AGO] [oom] [line TEXT_WITH_LINES]
//!      [by-itself|for-others TEXT_WITH_LINES]
//! place KIND NAME opened AGO timeout MS arrived RANGES missing RANGES
//! call TASKS KIND SUBJECT since AGO [passed|refused|hung-up AGO]
//! key NAME absent|there SIBLINGS
//! node N [learner] leads|follows L [contact AGO|none] [p99 US] [flush MS] [paused LENGTH:AGO] [held N] [behind N] [heard N:AGO,...]
//! node N refuses-connections|silent|unreachable|says-no
//! memory AGO INDEX [why TEXT_WITH_LINES]
//! told-by N | nobody N | not-entered N | no-ages | places-left-out N | changing
//! ```

use tripod_sight::{
    Call, CallKind, End, Facts, Held, HeldState, Key, Memory, Node, NodeWord, Origin, Outcome, Place,
    PlaceKind, Said, Standing, Task, TaskError,
};

/// 2023-11-15, 03:16:19 UTC.
const NOW_MS: u64 = 1_700_018_179_000;

/// The facts of those lines.
pub(crate) fn facts(text: &str) -> Facts {
    let mut facts = Facts { now_ms: NOW_MS, ages_told: true, ..Facts::default() };
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let rest = Words(&words[1..]);
        match words[0] {
            "job" => {
                facts.job.name = words[1].to_owned();
                facts.job.heartbeat_timeout_ms = rest.number("timeout").expect("a timeout");
                let limit = facts.job.heartbeat_timeout_ms;
                let task = Task { silence_limit_ms: limit, ..Task::default() };
                facts.tasks = vec![task; usize::try_from(rest.number("tasks").expect("tasks")).expect("few")];
            }
            "task" => {
                for task in ranges(words[1]) {
                    let of = &mut facts.tasks[usize::try_from(task).expect("not negative")];
                    of_task(of, u64::try_from(task).expect("not negative"), words[2], &rest);
                }
            }
            "place" => facts.places.push(place(&words, &rest)),
            "call" => {
                for task in ranges(words[1]) {
                    let (call, calls) = (call(&words, &rest), facts.calls.entry(task).or_default());
                    if call.ended.is_some() { calls.last.push(call) } else { calls.open.push(call) }
                }
            }
            "key" => {
                let key = Key { exists: words[2] == "there", siblings: words[3].parse().expect("a number") };
                facts.keys.insert(words[1].to_owned(), key);
            }
            "node" => facts.cluster.nodes.push(node(&words, &rest)),
            "memory" => {
                let ago: u64 = words[1].parse().expect("a number");
                let index = words[2].parse().expect("a number");
                let why = rest.after("why").unwrap_or("no_leader").replace('_', " ");
                facts.memory = Some(Memory { index, at_ms: NOW_MS - ago, why });
            }
            "told-by" => facts.cluster.told_by = words[1].parse().expect("a number"),
            "places-left-out" => facts.places_left_out = words[1].parse().expect("a number"),
            "changing" => facts.cluster.is_changing = true,
            "nobody" => facts.of_nobody = words[1].parse().expect("a number"),
            "not-entered" => facts.not_entered = words[1].parse().expect("a number"),
            "no-ages" => facts.ages_told = false,
            other => panic!("{other}"),
        }
    }
    facts
}

struct Words<'a>(&'a [&'a str]);

impl<'a> Words<'a> {
    fn after(&self, word: &str) -> Option<&'a str> {
        let place = self.0.iter().position(|other| *other == word)?;
        self.0.get(place + 1).copied()
    }

    fn number(&self, word: &str) -> Option<u64> {
        self.after(word).map(|text| text.parse().unwrap_or_else(|_| panic!("{word} {text}")))
    }

    fn has(&self, word: &str) -> bool {
        self.0.contains(&word)
    }
}

fn ranges(text: &str) -> Vec<i32> {
    let parts = text.split(',').filter(|part| !part.is_empty() && *part != "-");
    parts
        .flat_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            first.parse().expect("a number")..=last.parse::<i32>().expect("a number")
        })
        .collect()
}

fn of_task(task: &mut Task, number: u64, standing: &str, rest: &Words<'_>) {
    task.standing =
        *Standing::ALL.iter().find(|known| known.word() == standing).unwrap_or_else(|| panic!("{standing}"));
    task.incarnation = rest.number("life").unwrap_or(number + 100);
    task.host = rest.after("host").unwrap_or_default().to_owned();
    let text = |word: &str| rest.after(word).unwrap_or_default().to_owned();
    task.origin = Origin {
        pid: rest.number("pid").map_or(0, |pid| u32::try_from(pid).expect("a number of a process")),
        client: text("client"),
        agent: text("agent"),
        launcher: text("launcher"),
    };
    task.beat_age_ms = rest.number("beat");
    task.silence_limit_ms = rest.number("limit").unwrap_or(task.silence_limit_ms);
    let held = [("stopped", HeldState::Stopped), ("in-disk", HeldState::Disk)];
    task.held = held.into_iter().find_map(|(word, state)| {
        let (since_ago_ms, waits_in) = (rest.number(word)?, rest.after("in").unwrap_or_default().to_owned());
        Some(Held { state, waits_in, since_ago_ms })
    });
    task.end = rest.after("how").map(|how| End {
        how: how.replace('_', " "),
        out_of_memory: rest.has("oom"),
        at_ms: NOW_MS - rest.number("at").expect("an age"),
        last_line: rest.after("line").unwrap_or_default().replace('_', " "),
    });
    let error = [("by-itself", true), ("for-others", false)];
    task.error = error
        .into_iter()
        .find_map(|(word, is_own)| Some(TaskError { text: rest.after(word)?.replace('_', " "), is_own }));
}

fn place(words: &[&str], rest: &Words<'_>) -> Place {
    let kind = match words[1] {
        "registration" => PlaceKind::Registration,
        "barrier" => PlaceKind::Barrier,
        "shutdown" => PlaceKind::Shutdown,
        other => panic!("{other}"),
    };
    let name = if kind == PlaceKind::Barrier { words[2] } else { "" };
    let list = |word: &str| ranges(rest.after(word).unwrap_or_default());
    let (arrived, missing) = (list("arrived"), list("missing"));
    Place {
        kind,
        name: name.to_owned(),
        opened_ms: rest.number("opened").map(|ago| NOW_MS - ago),
        timeout_ms: rest.number("timeout"),
        arrived_count: u32::try_from(arrived.len()).expect("few"),
        missing_count: u32::try_from(missing.len()).expect("few"),
        arrived,
        missing,
    }
}

fn call(words: &[&str], rest: &Words<'_>) -> Call {
    let kind = match words[2] {
        "registration" => CallKind::Registration,
        "barrier" => CallKind::Barrier,
        "key" => CallKind::Key,
        "shutdown" => CallKind::Shutdown,
        other => panic!("{other}"),
    };
    let ended = [("passed", Outcome::Passed), ("refused", Outcome::Refused), ("hung-up", Outcome::HungUp)];
    Call {
        kind,
        subject: if matches!(kind, CallKind::Barrier | CallKind::Key) { words[3] } else { "" }.to_owned(),
        since_ago_ms: rest.number("since").expect("an age"),
        ended: ended.into_iter().find_map(|(word, outcome)| Some((outcome, rest.number(word)?))),
        node: rest.number("node").unwrap_or(1),
    }
}

fn node(words: &[&str], rest: &Words<'_>) -> Node {
    let id = words[1].parse().expect("a number");
    let said = match words[2] {
        "refuses-connections" => Said::PortRefuses,
        "silent" => Said::Silent,
        "unreachable" => Said::Unreachable("no route to host".into()),
        "says-no" => Said::Refuses("an earlier build".into()),
        _ => Said::Word(word(id, rest)),
    };
    Node { node: id, voter: !rest.has("learner"), said }
}

fn word(id: u64, rest: &Words<'_>) -> NodeWord {
    let heard = rest.after("heard").unwrap_or_default().split(',').filter_map(|one| one.split_once(':'));
    NodeWord {
        leader: if rest.has("leads") {
            Some(id)
        } else {
            rest.number("follows").filter(|leader| *leader != 0)
        },
        committed: 1_000_000,
        applied: 1_000_000 - rest.number("behind").unwrap_or(0),
        contact_ago_ms: rest.after("contact").map_or(Some(100), |ago| ago.parse().ok()),
        held_calls: rest.number("held").unwrap_or(0),
        flush_p99_us: rest.number("p99"),
        flush_under_way_ms: rest.number("flush"),
        pause: rest.after("paused").map(|pause| {
            let (length, ago) = pause.split_once(':').expect("how long, and how long ago");
            (length.parse().expect("a length"), ago.parse().expect("an age"))
        }),
        heard: heard
            .map(|(node, ago)| (node.parse().expect("a node"), ago.parse().expect("an age")))
            .collect(),
    }
}
