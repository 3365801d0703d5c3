//! Reports of small histories.

use super::*;
use crate::check::{Checked, Rules, Violation, check_all};
use crate::history::{Call, ClientId, Header, History, Key, Micros, Outcome, Recorder, Reply, Value};

const DONE: Outcome = Outcome::Ok(Reply::Written { version: None, index: None });

fn write(recorder: &Recorder, times: (u64, u64), outcome: Outcome) {
    let call = Call::Write { key: Key::from("r"), value: Value(times.0) };
    recorder.invoke(Micros(times.0), ClientId(1), call).complete(Micros(times.1), outcome);
}

fn recorder() -> Recorder {
    Recorder::new(Header { scenario: "kills".into(), seed: 7 })
}

fn about() -> About {
    About {
        version: "tripod 0.1.0".into(),
        program: Program { path: "out/tripod".into(), sha256: "0abc".into(), commit: "1def, changed".into() },
        skipped: [("kill-follower".to_owned(), 3)].into(),
        bounds: vec![Bound { what: "the cluster serves".into(), within_us: Micros(60_000_000) }],
        duration: Micros(30_000_000),
        wall: Micros(36_000_000),
        reproduce: "tripod-chaos run kills --seed 7".into(),
        frozen: vec!["out/kills-7/node-1".into()],
        figures: [("p99".into(), "7 ms".into())].into(),
    }
}

fn history() -> History {
    let recorder = recorder();
    recorder.fault(Micros(50), "kill-leader", "node 1").heal(Micros(90));
    let _never_heals = recorder.fault(Micros(60), "kill-leader", "node 2");
    write(&recorder, (100, 200), DONE);
    write(&recorder, (210, 400), Outcome::Unknown("no answer".into()));
    write(&recorder, (410, 2_000_000), DONE);
    recorder.history(Micros(3_000_000))
}

fn violated() -> Checked {
    let history = history();
    let violation = Violation::new(
        "stale-read",
        "r",
        "it was old".into(),
        &[&history.operations[0], &history.operations[1]],
    );
    Checked::told("linear", 3, vec![violation])
}

#[test]
fn a_report_counts_and_is_read_back() {
    let report = Report::new(&history(), vec![Checked::told("linear", 3, Vec::new())], about());
    assert_eq!(report.verdict, Verdict::Passed);
    assert_eq!(report.faults["kill-leader"], 2);
    assert_eq!(report.operations["write"], Outcomes { ok: 2, fail: 0, unknown: 1 });
    let directory = tempfile::tempdir().unwrap();
    report.save(directory.path()).unwrap();
    assert_eq!(Report::load(&directory.path().join("report.json")).unwrap(), report);
    let text = std::fs::read_to_string(directory.path().join("report.md")).unwrap();
    assert!(text.starts_with("# kills, seed 7\n\n**Passed**\n"), "{text}");
    assert!(text.contains("](timeline.svg)") && directory.path().join("timeline.svg").is_file(), "{text}");
    assert!(text.contains("| kill-leader | 2 |") && text.contains("| write | 2 | 0 | 1 |"), "{text}");
    assert!(!text.contains("To do the same again"), "{text}");
    let newer = std::fs::read_to_string(directory.path().join("report.json")).unwrap();
    let newer = newer.replace("\"format\": 1", "\"format\": 2");
    std::fs::write(directory.path().join("newer.json"), newer).unwrap();
    let refused = Report::load(&directory.path().join("newer.json")).unwrap_err();
    assert!(refused.to_string().contains("has format 2"), "{refused}");
}

#[test]
fn a_failed_run_says_what_happened_and_how_to_see_it_again() {
    let report = Report::new(&history(), vec![violated()], about());
    assert_eq!(report.verdict, Verdict::Violated { violations: 1 });
    let text = report.markdown();
    for part in [
        "**Violated: one rule was broken**",
        "\n    tripod-chaos run kills --seed 7\n",
        "* `out/kills-7/node-1`",
        "| p99 | 7 ms |",
        "| linear | 3 | **violated once** |",
        "## stale-read: r\n\nit was old\n\n* operation 0 of client 1",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn what_was_seen_counts_even_if_the_harness_failed_later() {
    let recorder = recorder();
    recorder.void("a port was taken");
    recorder.void("and then more went wrong");
    let history = recorder.history(Micros(1));
    let held = || Checked::told("list", 1, Vec::new());
    let of = |checks: Vec<Checked>| Report::new(&history, checks, about()).verdict;
    assert_eq!(of(vec![held()]), Verdict::Void("a port was taken".into()));
    assert_eq!(of(vec![held(), violated()]), Verdict::Violated { violations: 1 });
    let undecided = Checked::undecided("linear", 1, "too many steps".into());
    let void = Checked::void("list", 1, "an element twice".into());
    assert_eq!(Verdict::of(&[undecided.clone(), void], None), Verdict::Void("list: an element twice".into()));
    assert_eq!(Verdict::of(&[held(), undecided], None), Verdict::Undecided("linear: too many steps".into()));
}

#[test]
fn unavailability_is_a_gap_in_which_somebody_waited() {
    // From the second write's invocation on somebody waits, with a pause of 10 that is nobody's.
    let outage = Outage::longest(&history()).unwrap();
    assert_eq!(outage, Outage { from_us: Micros(410), length_us: Micros(2_000_000 - 410) });
    let lazy = recorder();
    write(&lazy, (0, 100), DONE);
    write(&lazy, (1_000_000, 1_000_200), DONE);
    assert_eq!(Outage::longest(&lazy.history(Micros(0))).unwrap().length_us, Micros(200));
    let many = recorder();
    // Two clients in turn: the gap is between acknowledgements, not as long as a call.
    let one = many.invoke(Micros(10), ClientId(1), Call::Delete { key: Key::from("a") });
    let other = many.invoke(Micros(20), ClientId(2), Call::Delete { key: Key::from("b") });
    one.complete(Micros(500), Outcome::Ok(Reply::Done));
    other.complete(Micros(900), Outcome::Ok(Reply::Done));
    let expected = Outage { from_us: Micros(10), length_us: Micros(490) };
    assert_eq!(Outage::longest(&many.history(Micros(900))), Some(expected));
    let never = recorder();
    write(&never, (0, 700), Outcome::Unknown("no answer".into()));
    assert_eq!(Outage::longest(&never.history(Micros(0))).unwrap().length_us, Micros(700));
    assert_eq!(Outage::longest(&History::default()), None);
}

#[test]
fn totals_add_up_and_leave_void_runs_out() {
    let report = Report::new(&history(), vec![Checked::told("linear", 3, Vec::new())], about());
    let mut void = report.clone();
    void.verdict = Verdict::Void("a port was taken".into());
    let mut totals = Totals::default();
    totals.add(&report);
    totals.add(&Report { seed: 9, verdict: Verdict::Violated { violations: 2 }, ..report.clone() });
    totals.add(&void);
    let kills = &totals.scenarios["kills"];
    assert_eq!((kills.runs, kills.passed, kills.violated, kills.void), (3, 1, 1, 1));
    assert_eq!((kills.seeds, kills.wall_us), (Some((7, 9)), Micros(72_000_000)));
    assert_eq!((totals.faults["kill-leader"], totals.operations["write"].ok), (4, 4));
    assert_eq!(totals.examined["linear"], 6);
    let text = totals.markdown();
    assert!(text.contains("| kills | 3 | 7 to 9 | 1 | 1 | 0 | 1 | 60.00 s | 0.02 | 2.00 s |"), "{text}");
    assert!(text.contains("| process kills | 4 |"), "{text}");
    let faults = [("kill-all", 1), ("power-cut", 2), ("power-cut-all-ext4", 3), ("bit-flip", 4), ("loss", 5)];
    let faults = faults.map(|(kind, count)| (kind.to_owned(), count)).into();
    let families = Totals { faults, ..Totals::default() }.families();
    assert_eq!(families, [("process kills", 1), ("power cuts", 5), ("bit flips", 4), ("others", 5)]);
    let mut twice = totals.clone();
    twice.merge(&totals);
    assert_eq!((twice.scenarios["kills"].runs, twice.faults["kill-leader"]), (6, 8));
    let json = serde_json::to_string(&totals).unwrap();
    assert_eq!(serde_json::from_str::<Totals>(&json).unwrap(), totals);
}

/// The numbers are those of the walk-through of a new operator.
#[test]
fn n44_the_report_tells_when_what_was_hit_and_what_would_have_been_a_violation() {
    let report = Report::new(&history(), vec![Checked::told("linear", 3, Vec::new())], about());
    let text = report.markdown();
    for part in [
        // The write that took long began after both faults were over.
        "| Longest unavailability | 2.00 s from 0.00 s on, without a fault |",
        "| 0.00 s | kill-leader | node 1 | no plan | 0.00 s | nobody wrote |",
        "| 0.00 s | kill-leader | node 2 | no plan | not healed | nobody wrote |",
        "\n3 more had nobody to hit: kill-follower 3.\n",
        "`unknown` are 1 of 3 calls: they were not answered in time",
        "no time without service is a violation by itself",
        "Safety: 1 checkers looked at 3 cases. A violation would have been 1 of them",
        "| the cluster serves | 60.00 s |",
        "| linear | 3 | held | registers behave as one copy",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }

    // Two faults fall into one time without service, which began before them.
    let recorder = recorder();
    write(&recorder, (0, 3_000_000), DONE);
    let kill_all = recorder.fault(Micros(1_000_000), "kill-all", "all nodes");
    kill_all.planned(Micros(250_000)).heal(Micros(2_000_000));
    recorder.fault(Micros(2_500_000), "bridge", "node 2 | 3").heal(Micros(4_000_000));
    let text = Report::new(&recorder.history(Micros(5_000_000)), Vec::new(), about()).markdown();
    // The numbers are those of the walk-through: n43, what was planned and what it was.
    assert!(text.contains("| 1.00 s | kill-all | all nodes | 0.25 s | 1.00 s | 3.00 s from"), "{text}");
    assert!(text.contains("| 3.00 s from 0.00 s on, during kill-all, bridge |"), "{text}");
    assert!(
        text.contains("| 2.50 s | bridge | node 2 \\| 3 | no plan | 1.50 s | 3.00 s from 0.00 s on |"),
        "{text}"
    );
}

#[test]
fn n45_the_report_names_the_program_and_the_command() {
    let text = Report::new(&history(), Vec::new(), about()).markdown();
    assert!(text.contains("| Command | `tripod-chaos run kills --seed 7` |"), "{text}");
    assert!(text.contains("| Program | out/tripod, SHA-256 0abc, commit 1def, changed |"), "{text}");
    let file = tempfile::NamedTempFile::new().unwrap();
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(Program::of(file.path()).sha256, empty);
    // Neither lies in a checkout.
    assert_eq!(Program::of(file.path()).commit, "");
    let missing = Program::of(std::path::Path::new("/none"));
    assert_eq!(missing.words(), "/none, SHA-256 unknown, commit unknown");
    assert_eq!(Program::default().words(), "not known");
}

#[test]
fn the_timeline_keeps_the_faults_with_the_longest_outages() {
    let recorder = recorder();
    let last = TIMELINE_MAX as u64 + 10;
    for fault in 0..=last {
        let at = fault * 1_000_000;
        recorder.fault(Micros(at), "kill-leader", "node 1").heal(Micros(at + 1));
        // The later, the longer.
        write(&recorder, (at, at + 100 + fault), DONE);
    }
    let report = Report::new(&recorder.history(Micros(last * 1_000_000)), Vec::new(), about());
    assert_eq!(report.timeline.len(), TIMELINE_MAX);
    let lengths: Vec<_> = report.timeline.iter().map(|episode| episode.outage.unwrap().length_us).collect();
    assert_eq!((lengths[0], lengths[TIMELINE_MAX - 1]), (Micros(111), Micros(100 + last)));
    assert!(report.markdown().contains("The 200 faults with the longest unavailability:"));
}

/// The page says of each checker what the report has no room for.
#[test]
fn every_checker_is_explained_in_the_documentation() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reliability.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, explained) = page.split_once("\n## The checkers, one by one\n").unwrap();
    let (explained, _) = explained.split_once("\n## ").unwrap();
    for (checker, _) in promise::PROMISES {
        assert!(explained.contains(&format!("\n| `{checker}` |")), "{checker} is not in {explained}");
    }
    let rows = explained.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, promise::PROMISES.len(), "a row for what is no checker");
}

#[test]
fn every_checker_has_a_promise() {
    for check in check_all(&History::default(), &Rules::default()) {
        assert_ne!(promise::promise(&check.checker), "", "{}", check.checker);
    }
}
