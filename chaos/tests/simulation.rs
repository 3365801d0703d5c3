//! The simulation: honest seeds pass and repeat themselves, and mistakes made on purpose are caught.

use std::process::Command;

use tripod_simulation::{Options, Planted, SeedReport, run_seed};

/// Shorter than by default: these seeds run without optimisation.
fn short(planted: Option<Planted>) -> Options {
    Options { faults_for_ms: 6_000, planted, ..Options::default() }
}

/// Which rules the first of these seeds broke that broke any.
fn caught(planted: Planted, seeds: impl IntoIterator<Item = u64>) -> Vec<String> {
    let broken = |report: &SeedReport| !report.violations.is_empty();
    let (scheduler, mindspore) = (planted.needs_scheduler(), planted.needs_mindspore());
    let options = Options { planted: Some(planted), scheduler, mindspore, ..Options::default() };
    let seeds: Vec<u64> = seeds.into_iter().collect();
    let report = seeds.iter().map(|seed| run_seed(*seed, &options)).find(broken);
    let report = report.unwrap_or_else(|| panic!("{planted:?} was not caught in {seeds:?}"));
    report.violations.iter().map(|violation| violation.rule.clone()).collect()
}

#[test]
fn honest_seeds_pass_and_judge_something() {
    // The members change in the runs of even seeds.
    for seed in [1, 2] {
        let report = run_seed(seed, &short(None));
        assert!(report.passed, "{report}");
        let judged = report.judged;
        for (what, count) in [
            ("leaders", judged.leaders),
            ("entries", judged.entries),
            ("digests", judged.digests),
            ("writes", judged.writes),
            ("lives", judged.lives),
            ("memberships", judged.memberships),
        ] {
            assert!(count > 0, "no {what} were judged: {report}");
        }
        assert_eq!(judged.memberships > 1, seed % 2 == 0, "{report}");
    }
}

#[test]
fn honest_schedulers_pass_and_judge_something() {
    // Processes die in the runs of most seeds, and in those of every third one none does.
    for seed in [3, 4] {
        let report = run_seed(seed, &Options { scheduler: true, ..short(None) });
        assert!(report.passed, "{report}");
        let judged = report.judged;
        assert!(judged.attempts > 0 && judged.results > 0 && judged.schedulers > 0, "{report}");
        for what in ["results of graphs that were read", "tensors that were sealed"] {
            assert!(report.counts.get(what).is_some_and(|count| *count > 0), "no {what}: {report}");
        }
        let died = report.counts.keys().any(|kind| kind.starts_with("peers that"));
        assert_eq!(died, seed % 3 != 0, "{report}");
    }
}

#[test]
fn honest_clusters_of_mindspore_pass_and_judge_something() {
    for seed in [3, 8] {
        let report = run_seed(seed, &Options { mindspore: true, ..short(None) });
        assert!(report.passed, "{report}");
        assert!(report.judged.clusters > 0, "{report}");
        for what in [
            "clusters of MindSpore's parameter server",
            "nodes of MindSpore that finished",
            "dynamic clusters of MindSpore",
        ] {
            assert!(report.counts.get(what).is_some_and(|count| *count > 0), "no {what}: {report}");
        }
        for act in ["node-joins", "node-reads-rank", "node-tells", "node-hears-event", "node-hears-finish"] {
            assert!(report.operations.get(act).is_some_and(|all| all.ok > 0), "no {act}: {report}");
        }
    }
}

/// Something below the simulation counts across the runs of a process, so a seed repeats itself process by process:
/// as `tripod-chaos run simulation` runs it.
#[test]
fn two_runs_of_a_seed_are_one_run() {
    if let Ok(seed) = std::env::var(SEED) {
        let options = Options { scheduler: true, mindspore: true, ..short(None) };
        let report = run_seed(seed.parse().expect("a seed"), &options);
        println!("{RUN}{:016x} {} {}", report.hash, report.events, report.simulated_ms);
        return;
    }
    let run = |seed: u64| {
        let mut command = Command::new(std::env::current_exe().expect("this program exists"));
        command
            .args(["--exact", "two_runs_of_a_seed_are_one_run", "--nocapture"])
            .env(SEED, seed.to_string());
        let output = command.output().expect("this program can be started");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split_once(RUN).map(|(_, run)| run.lines().next().unwrap_or_default().to_owned()).expect("a run")
    };
    let first = run(3);
    assert_eq!(first, run(3));
    assert_ne!(first, run(4));
}

/// What stands before a run in the output of a process.
const RUN: &str = "run: ";
/// Which seed a process that this test started is to run, on disks that lie or on honest ones.
const SEED: &str = "TRIPOD_SIMULATION_TEST_SEED";
const HONEST: &str = "TRIPOD_SIMULATION_TEST_HONEST";

/// Whether a process that runs this test with one seed ends well.
fn passes_in_a_process_of_its_own(seed: u64, honest: bool) -> bool {
    let mut command = Command::new(std::env::current_exe().expect("this program exists"));
    command.args(["--exact", "a_disk_that_lies_is_caught"]).env(SEED, seed.to_string());
    if honest {
        command.env(HONEST, "1");
    }
    command.output().expect("this program can be started").status.success()
}

/// openraft panics when it sees what such a disk did, and a panic within a panic ends the process: each seed has
/// a process of its own.
#[test]
fn a_disk_that_lies_is_caught() {
    if let Ok(seed) = std::env::var(SEED) {
        let planted = std::env::var(HONEST).is_err().then_some(Planted::LyingDisk);
        let report = run_seed(seed.parse().expect("a seed"), &short(planted));
        assert!(report.passed, "{report}");
        return;
    }
    assert!(passes_in_a_process_of_its_own(1, true));
    let caught = (1..=8).find(|seed| !passes_in_a_process_of_its_own(*seed, false));
    assert!(caught.is_some(), "not caught");
}

#[test]
fn a_forgotten_vote_is_caught() {
    let rules = caught(Planted::ForgottenVote, 1..=40);
    assert!(rules.contains(&"term covers log".to_owned()), "{rules:?}");
}

#[test]
fn votes_that_are_told_as_they_were_are_caught() {
    // The seeds in which leaders go stale: in no other one it matters what they are told.
    let rules = caught(Planted::StaleVote, (1..=51).step_by(5));
    assert!(rules.iter().any(|rule| rule.starts_with("linear")), "{rules:?}");
}

#[test]
fn reads_from_a_follower_are_caught() {
    let rules = caught(Planted::StaleReads, 1..=40);
    assert!(rules.iter().any(|rule| rule.starts_with("linear")), "{rules:?}");
}

/// The number is that of the walk-through of a new operator.
#[test]
fn n04_the_printed_command_fails_as_the_seed_did() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_tripod-chaos")).args(arguments).output();
        output.expect("the program can be started")
    };
    // Other than the defaults in every flag that the seed's run depends on.
    let flags = ["--plant", "task-taken-away", "--scheduler", "--mindspore", "--faults-for-ms", "3000"];
    let several = ["run", "simulation", "--seed", "1", "--seeds", "2"];
    let seeds = run(&several.into_iter().chain(flags).collect::<Vec<_>>());
    assert_eq!(seeds.status.code(), Some(1), "no seed caught it: {seeds:?}");
    let said = String::from_utf8(seeds.stderr).expect("text");
    let printed = said.lines().last().and_then(|line| line.strip_prefix("reproduce with: tripod-chaos "));
    let printed = printed.unwrap_or_else(|| panic!("no command in {said}"));

    let again = run(&printed.split(' ').collect::<Vec<_>>());
    assert_eq!(again.status.code(), Some(1), "{printed}: {again:?}");
    let told = String::from_utf8(again.stdout).expect("text");
    // The verdict and the hash of all that happened; how long it took is between them.
    let hash = |text: &str| text.split_once("hash ").and_then(|(_, rest)| rest.get(..16)).map(str::to_owned);
    let verdict = told.split_once(';').expect("a verdict").0;
    let first = said.lines().find(|line| line.starts_with(verdict));
    let first = first.unwrap_or_else(|| panic!("{verdict} is not in {said}"));
    assert!(verdict.ends_with("VIOLATED"), "{told}");
    assert_eq!(hash(&told), hash(first), "{printed}");
}

#[test]
fn an_unfenced_life_is_caught() {
    let rules = caught(Planted::IncarnationCheckSkipped, 1..=40);
    assert!(rules.contains(&"incarnation fencing".to_owned()), "{rules:?}");
}

#[test]
fn a_dropped_arrival_is_caught() {
    let rules = caught(Planted::BarrierArrivalDropped, 1..=40);
    assert!(rules.iter().any(|rule| rule.starts_with("barrier")), "{rules:?}");
}

#[test]
fn an_increment_applied_twice_is_caught() {
    let rules = caught(Planted::DoubleApply, 1..=40);
    assert!(rules.iter().any(|rule| rule.starts_with("counter")), "{rules:?}");
}

#[test]
fn an_id_that_is_given_twice_is_caught() {
    let rules = caught(Planted::ReusedId, 1..=40);
    assert!(rules.contains(&"one membership".to_owned()), "{rules:?}");
}

#[test]
fn a_result_that_was_lost_is_missed() {
    let rules = caught(Planted::ResultLost, 1..=10);
    assert!(rules.contains(&"every result comes to be".to_owned()), "{rules:?}");
}

#[test]
fn references_of_the_dead_that_are_kept_are_noticed() {
    let rules = caught(Planted::HoldsForgotten, 2..=20);
    assert!(rules.contains(&"what was dropped is gone".to_owned()), "{rules:?}");
}

#[test]
fn a_task_that_is_taken_from_a_healthy_worker_is_noticed() {
    let rules = caught(Planted::TaskTakenAway, 1..=10);
    assert!(rules.iter().any(|rule| rule == "no call is refused" || rule == "scheduled work"), "{rules:?}");
}

#[test]
fn tasks_that_are_given_back_and_forgotten_are_missed() {
    let rules = caught(Planted::GiveBackForgotten, 1..=10);
    let expected = ["every result comes to be", "what was dropped is gone", "liveness"];
    assert!(rules.iter().any(|rule| expected.contains(&rule.as_str())), "{rules:?}");
}

#[test]
fn children_that_are_made_once_more_are_noticed() {
    let rules = caught(Planted::ParentForgotten, 2..=20);
    assert!(rules.contains(&"scheduled work".to_owned()), "{rules:?}");
}

#[test]
fn a_task_that_is_begun_ahead_of_an_earlier_export_is_noticed() {
    let rules = caught(Planted::ExportLate, 1..=10);
    assert!(rules.contains(&"scheduled work".to_owned()), "{rules:?}");
}

#[test]
fn a_rank_for_two_nodes_of_mindspore_is_caught() {
    let rules = caught(Planted::RankTwice, 1..=5);
    assert!(rules.contains(&"mindspore: rank-twice".to_owned()), "{rules:?}");
}

#[test]
fn what_a_node_of_mindspore_told_all_and_nobody_heard_is_missed() {
    let rules = caught(Planted::EventLost, 1..=5);
    assert!(rules.contains(&"mindspore: event-lost".to_owned()), "{rules:?}");
}
