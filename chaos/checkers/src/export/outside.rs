//! A checker of other people judges what is exported: the algorithm of Wing, Gong and Lowe, which Porcupine has too, as
//! `todc-utils` implements it. It knows histories and a model of one register each; nothing of it is ours.
//!
//! `testdata/registers.jsonl` is what two registers of a run of `kills` saw, in which all nodes were killed at once.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use todc_utils::{Action, History as Theirs, Specification, WGLChecker};

use super::*;
use crate::check::Rules;
use crate::check::linear;
use crate::history::{Call, Found, Outcome, Reply};

/// One line for Porcupine.
#[derive(Debug, Clone)]
struct Judged {
    input: Json,
    output: Json,
}

/// A register with versions, as the lines for Porcupine speak of it: value and version, if it exists.
struct Versioned;

impl Specification for Versioned {
    type State = Option<(u64, u64)>;
    type Operation = Judged;

    fn init() -> Self::State {
        None
    }

    fn apply(operation: &Judged, state: &Self::State) -> (bool, Self::State) {
        let Judged { input, output } = operation;
        let version = state.map_or(0, |(_, version)| version);
        let told = |field: &str| output[field].as_u64();
        let value = input["value"].as_u64().unwrap_or_default();
        let (applies, after) = match input["op"].as_str().unwrap() {
            "read" => {
                let same = told("value") == state.map(|(value, _)| value);
                return (same && told("version").is_none_or(|told| told == version), *state);
            }
            "delete" => (true, None),
            "write" => (true, Some((value, version + 1))),
            "insert" => (state.is_none(), Some((value, 1))),
            "compare-and-set" => (input["version"] == version, Some((value, version + 1))),
            other => panic!("no operation of registers: {other}"),
        };
        match output["outcome"].as_str().unwrap() {
            "ok" if applies => (told("version").is_none_or(|told| told == version + 1), after),
            "ok" => (false, *state),
            "unknown" => (true, if applies { after } else { *state }),
            "exists" => (state.is_some(), *state),
            "mismatch" => (!applies && told("version").is_none_or(|told| told == version), *state),
            other => panic!("no outcome: {other}"),
        }
    }
}

/// A register with values, as the events for Knossos speak of it: function and value of the completion.
struct CasRegister;

impl Specification for CasRegister {
    type State = Option<u64>;
    type Operation = (String, String);

    fn init() -> Self::State {
        None
    }

    fn apply((f, value): &(String, String), state: &Self::State) -> (bool, Self::State) {
        let number = |text: &str| text.parse::<u64>().ok();
        match f.as_str() {
            "read" => (value == "nil" || number(value) == *state, *state),
            "write" => (true, number(value)),
            "cas" => {
                let pair = value.trim_matches(['[', ']']).split_once(' ').unwrap();
                let fits = number(pair.0) == *state;
                (fits, if fits { number(pair.1) } else { *state })
            }
            other => panic!("no function of registers: {other}"),
        }
    }
}

/// Calls of processes, as pairs of moments and what they were.
type Calls<T> = Vec<(usize, u64, u64, T)>;

fn linearizable<S: Specification>(calls: Calls<S::Operation>) -> bool {
    let mut events = Vec::new();
    for (process, from, until, operation) in calls {
        events.push((from, false, process, operation.clone()));
        events.push((until, true, process, operation));
    }
    events.sort_by_key(|(at, returns, _, _)| (*at, *returns));
    let actions = events.into_iter().map(|(_, returns, process, operation)| {
        (process, if returns { Action::Response(operation) } else { Action::Call(operation) })
    });
    WGLChecker::<S>::is_linearizable(Theirs::from_actions(actions.collect()))
}

/// What the checker says of the lines for Porcupine, register by register.
fn porcupine_says(history: &History) -> bool {
    let exported = export(history, Format::Porcupine, Objects::Registers, None).unwrap();
    let mut registers: BTreeMap<String, Calls<Judged>> = BTreeMap::new();
    for line in exported.text.lines() {
        let mut line: Json = serde_json::from_str(line).unwrap();
        let number = |field: &str| line[field].as_u64().unwrap();
        let (process, from, until) = (number("ClientId"), number("Call"), number("Return"));
        let name = line["Input"]["key"].as_str().unwrap().to_owned();
        let judged = Judged { input: line["Input"].take(), output: line["Output"].take() };
        registers.entry(name).or_default().push((usize::try_from(process).unwrap(), from, until, judged));
    }
    registers.into_values().all(linearizable::<Versioned>)
}

/// What it says of the events for Knossos, of one register.
fn knossos_says(history: &History, name: &str) -> bool {
    let exported = export(history, Format::JepsenEdn, Objects::Registers, Some(&Key::from(name))).unwrap();
    let (mut open, mut calls) = (BTreeMap::new(), Vec::new());
    for line in exported.text.lines() {
        let field = |name: &str, end: &str| {
            let (_, rest) = line.split_once(&format!(":{name} ")).unwrap();
            rest.split_once(end).unwrap().0.to_owned()
        };
        let number = |name: &str, end: &str| field(name, end).parse::<u64>().unwrap();
        let (process, at) = (number("process", ","), number("time", ","));
        let operation = (field("f", ",").trim_start_matches(':').to_owned(), field("value", ", :process"));
        match field("type", ",").as_str() {
            ":invoke" => {
                assert!(open.insert(process, (at, operation)).is_none(), "one call at a time: {line}");
            }
            ":fail" => assert!(open.remove(&process).is_some(), "{line}"),
            ":ok" => {
                let (from, _) = open.remove(&process).unwrap();
                calls.push((usize::try_from(process).unwrap(), from, at, operation));
            }
            // It stays open, and what does not change anything never does.
            ":info" => assert!(open.contains_key(&process) && operation.0 != "read", "{line}"),
            other => panic!("no type of events: {other}"),
        }
    }
    // An open call has an effect or none: two histories for each.
    let asked: Vec<(usize, u64, (String, String))> = open
        .iter()
        .map(|(process, (from, operation))| (usize::try_from(*process).unwrap(), *from, operation.clone()))
        .collect();
    (0..1u32 << asked.len()).any(|chosen| {
        let taken = asked.iter().enumerate().filter(|(place, _)| chosen & (1 << place) != 0);
        let more =
            taken.map(|(_, (process, from, operation))| (*process, *from, u64::MAX, operation.clone()));
        linearizable::<CasRegister>(calls.iter().cloned().chain(more).collect())
    })
}

fn recorded() -> History {
    History::read(&include_bytes!("testdata/registers.jsonl")[..]).unwrap()
}

fn ours_says(history: &History) -> bool {
    linear::check(history, &Rules::default()).held()
}

/// The history with one read changed, for every read that had seen another value shortly before: it sees that once more.
fn with_a_stale_read(history: &History) -> Vec<(String, History)> {
    let mut seen: BTreeMap<&Key, Vec<Found>> = BTreeMap::new();
    let mut changed = Vec::new();
    for (place, operation) in history.operations.iter().enumerate() {
        let (Call::Read { key }, Some(Reply::Value(Some(found)))) = (&operation.call, operation.reply())
        else {
            continue;
        };
        let before = seen.entry(key).or_default();
        if let Some(older) = before.iter().rfind(|older| older.value != found.value) {
            let mut stale = history.clone();
            stale.operations[place].outcome = Outcome::Ok(Reply::Value(Some(*older)));
            changed.push((key.to_string(), stale));
        }
        before.push(*found);
    }
    changed
}

#[test]
fn a_checker_of_others_finds_an_order_in_a_recorded_history() {
    let history = recorded();
    assert!(history.operations.iter().any(|operation| matches!(operation.outcome, Outcome::Unknown(_))));
    assert!(ours_says(&history));
    assert!(porcupine_says(&history));
    for register in ["register/1", "register/3"] {
        assert!(knossos_says(&history, register), "{register}");
    }
}

#[test]
fn a_checker_of_others_refuses_a_stale_read_whenever_ours_does() {
    let changed = with_a_stale_read(&recorded());
    assert!(changed.len() > 20, "{} reads could be changed", changed.len());
    let (mut refused, mut by_values) = (0, 0);
    for (name, stale) in &changed {
        let ours = ours_says(stale);
        assert_eq!(porcupine_says(stale), ours, "{name}");
        refused += usize::from(!ours);
        // Events without versions claim less: they may pass what ours refuses, and never the other way round.
        if !knossos_says(stale, name) {
            assert!(!ours, "{name}");
            by_values += 1;
        }
    }
    assert!(refused * 10 > changed.len() * 9, "{refused} of {} were refused", changed.len());
    assert!(by_values * 10 > refused * 9, "{by_values} of {refused} were refused without versions");
}
