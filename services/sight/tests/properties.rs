//! A healthy gang never yields a finding, whatever its tasks do just now; and no facts at all make it panic or say too much.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tripod_sight::{
    Call, CallKind, Calls, Cluster, Facts, Held, HeldState, Job, Key, Memory, Node, NodeWord, Origin,
    Outcome, Place, PlaceKind, Said, Standing, Task, diagnose,
};

const NOW_MS: u64 = 1_700_018_179_000;
const LIMIT_MS: u64 = 100_000;
/// What begins an order to a terminal.
const ESCAPE: char = '\u{1b}';

/// Three members, of which at most one is down or silent.
fn cluster(down: Option<u64>, leader: u64) -> Cluster {
    let node = |node| {
        let heard =
            (1..=3).filter(|other| *other != leader && Some(*other) != down).map(|other| (other, 150));
        let heard = if node == leader { heard.collect() } else { BTreeMap::new() };
        let word = NodeWord { leader: Some(leader), contact_ago_ms: Some(300), heard, ..NodeWord::default() };
        let said = if Some(node) == down { Said::PortRefuses } else { Said::Word(word) };
        Node { node, voter: true, said }
    };
    Cluster { told_by: leader, nodes: (1..=3).map(node).collect(), is_changing: false }
}

fn call(kind: CallKind, subject: &str, since_ago_ms: u64, ended: Option<(Outcome, u64)>) -> Call {
    Call { kind, subject: subject.to_owned(), since_ago_ms, ended, node: 1 }
}

prop_compose! {
    /// Each task is on its way to the next barrier, there, or waits for a key that is about to be written; the last barrier took
    /// `longest` from its first to its last.
    fn healthy()(
        tasks in prop::collection::vec((0_u64..52_000, 0..3_u8, 0_u64..9_000), 1..40),
        longest in 0_u64..120_000,
        waited in 0_u64..240_000,
        down in prop::option::of(1_u64..3),
        registering in any::<bool>(),
    ) -> Facts {
        let waited = if registering { waited % 10_000 } else { waited.min(30_000.max(2 * longest)) };
        let mut facts = Facts {
            now_ms: NOW_MS,
            job: Job { name: "train".into(), heartbeat_timeout_ms: LIMIT_MS },
            ages_told: true,
            cluster: cluster(down, 3),
            ..Facts::default()
        };
        let (mut arrived, mut missing) = (Vec::new(), Vec::new());
        for (number, (beat, does, short)) in (0_i32..).zip(&tasks) {
            let mut calls = Calls::default();
            let is_there = *does == 0;
            match (is_there, registering) {
                (true, true) => calls.open.push(call(CallKind::Registration, "", waited, None)),
                (true, false) => calls.open.push(call(CallKind::Barrier, "next", waited, None)),
                (false, false) if *does == 1 && waited <= 10_000 => {
                    calls.open.push(call(CallKind::Key, "key", *short, None));
                }
                _ => {}
            }
            if !registering {
                let ended = Some((Outcome::Passed, waited + 100));
                calls.last.push(call(CallKind::Barrier, "before", waited + 100 + longest, ended));
            }
            if is_there { arrived.push(number) } else { missing.push(number) }
            let standing = match (registering, is_there) {
                (true, true) => Standing::Registering,
                (true, false) => Standing::NeverCame,
                (false, _) => Standing::Connected,
            };
            let beat_age_ms = (!registering).then_some(*beat);
            facts.tasks.push(Task { standing, beat_age_ms, silence_limit_ms: LIMIT_MS, ..Task::default() });
            facts.calls.insert(number, calls);
        }
        facts.keys.insert("key".into(), Key::default());
        if !arrived.is_empty() && !missing.is_empty() {
            let kind = if registering { PlaceKind::Registration } else { PlaceKind::Barrier };
            facts.places.push(Place {
                kind,
                name: if registering { String::new() } else { "next".into() },
                opened_ms: Some(NOW_MS - waited),
                timeout_ms: Some(600_000),
                arrived_count: u32::try_from(arrived.len()).expect("few"),
                missing_count: u32::try_from(missing.len()).expect("few"),
                arrived,
                missing,
            });
        }
        facts
    }
}

prop_compose! {
    /// Anything.
    fn any_facts()(
        standings in prop::collection::vec((0..7_usize, prop::option::of(0_u64..300_000), "[ab]?", 0..3_u32), 0..30),
        places in prop::collection::vec(
            (prop::collection::btree_set(0_i32..30, 0..20), prop::option::of(0_u64..400_000), 0..4_u8), 0..6),
        calls in prop::collection::vec((0_i32..30, 0..3_u8, 0_u64..400_000, any::<bool>()), 0..40),
        said in prop::collection::vec(0..6_u8, 0..5),
        has_memory in any::<bool>(),
    ) -> Facts {
        let held = |state| Held { state, waits_in: "\u{1b}[2J".into(), since_ago_ms: 20_000 };
        let tasks: Vec<Task> = standings.iter().map(|(standing, beat_age_ms, host, number)| Task {
            standing: Standing::ALL[*standing],
            beat_age_ms: *beat_age_ms,
            host: host.clone(),
            origin: Origin { pid: *number, client: "\u{1b}[2J".into(), ..Origin::default() },
            held: match number {
                0 => None,
                1 => Some(held(HeldState::Stopped)),
                _ => Some(held(HeldState::Disk)),
            },
            silence_limit_ms: LIMIT_MS,
            ..Task::default()
        }).collect();
        let all: Vec<i32> = (0..i32::try_from(tasks.len()).expect("few")).collect();
        let place = |(here, opened, kind): &(std::collections::BTreeSet<i32>, Option<u64>, u8)| {
            let (arrived, missing): (Vec<i32>, Vec<i32>) = all.iter().copied().partition(|task| here.contains(task));
            Place {
                kind: [PlaceKind::Registration, PlaceKind::Barrier, PlaceKind::Shutdown, PlaceKind::Devices]
                    [usize::from(*kind)],
                name: "\u{1b}[2J".into(),
                opened_ms: opened.map(|ago| NOW_MS - ago),
                timeout_ms: None,
                arrived_count: u32::try_from(arrived.len()).expect("few"),
                missing_count: u32::try_from(missing.len()).expect("few"),
                arrived,
                missing,
            }
        };
        let node = |(number, said): (u64, &u8)| Node { node: number, voter: true, said: match said {
            0 => Said::PortRefuses,
            1 => Said::Silent,
            2 => Said::Refuses("no".into()),
            3 => Said::Word(NodeWord::default()),
            4 => {
                let pause = Some((3_000, 1_000));
                Said::Word(NodeWord { leader: Some(number), pause, ..NodeWord::default() })
            }
            _ => Said::Word(NodeWord { leader: Some(number), ..NodeWord::default() }),
        } };
        let mut facts = Facts {
            now_ms: NOW_MS,
            places: places.iter().map(place).collect(),
            tasks,
            cluster: Cluster { told_by: 1, nodes: (1_u64..).zip(&said).map(node).collect(), is_changing: false },
            memory: has_memory.then(Memory::default),
            ..Facts::default()
        };
        for (task, kind, since, ended) in calls {
            let kind = [CallKind::Barrier, CallKind::Key, CallKind::Registration][usize::from(kind)];
            let ended = ended.then_some((Outcome::Passed, since / 2));
            let call = call(kind, "x", since, ended);
            let calls = facts.calls.entry(task).or_default();
            if ended.is_some() { calls.last.push(call) } else { calls.open.push(call) }
        }
        facts
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_healthy_gang_never_yields_a_finding(facts in healthy()) {
        let found = diagnose(&facts);
        prop_assert!(!found.found(), "{}", found.render(true));
    }

    #[test]
    fn whatever_the_facts_are_it_is_said_in_24_lines_that_are_no_orders(facts in any_facts()) {
        let found = diagnose(&facts);
        let text = found.render(false);
        let is_an_order = text.contains(ESCAPE);
        prop_assert!(text.lines().count() <= 24 && !is_an_order, "{}", text);
        let is_an_order = found.to_json().contains(ESCAPE);
        prop_assert!(!is_an_order, "escapes in JSON");
        let programs = found.findings.iter().filter(|finding| !finding.tasks.is_empty()).count();
        let codes: Vec<String> = found.findings.iter().map(|finding| finding.code.number()).collect();
        let coordinator = ["T7201", "T7202", "T7204", "T7205", "T7206"].iter().any(|code| codes.iter().any(|found| found == code));
        prop_assert!(!coordinator || programs == 0, "{codes:?}");
    }
}
