//! Reports of small histories.

use super::*;
use crate::check::{Checked, Violation};
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
