//! `tripod-chaos run`, `list` and `replay` as people use them: short runs on real processes, and clusters that are
//! broken on purpose, which must be caught.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tripod_processes::cluster::find_tripod;
use tripod_wait::{scaled, until_blocking};

fn chaos() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tripod-chaos"))
}

fn run(arguments: &[&str], out: &Path) -> Output {
    chaos().arg("run").args(arguments).arg("--out").arg(out).output().unwrap()
}

fn error_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn report(out: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(out.join("report.json")).unwrap()).unwrap()
}

/// The checkers that found something.
fn barking(report: &Value) -> Vec<String> {
    let checks = report["checks"].as_array().unwrap();
    let violated = checks.iter().filter(|check| check["conclusion"]["violated"].is_object());
    violated.map(|check| check["checker"].as_str().unwrap().to_owned()).collect()
}

/// A program in the place of `tripod`, which does `first` and then becomes it.
fn broken_tripod(folder: &Path, first: &str) -> PathBuf {
    let path = folder.join("tripod");
    let real = find_tripod().unwrap();
    fs::write(&path, format!("#!/bin/sh\n{first}\nexec '{}' \"$@\"\n", real.display())).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn scenario_names() -> Vec<String> {
    let output = chaos().arg("list").output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().map(|line| line.split_whitespace().next().unwrap().to_owned());
    // It has tests of its own.
    names.filter(|name| name != "simulation").collect()
}

#[test]
fn the_scenarios_are_listed_with_a_sentence() {
    let output = chaos().arg("list").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for line in text.lines() {
        let (name, about) = line.split_once("  ").unwrap();
        assert!(!name.contains(' ') && about.trim().ends_with('.'), "{line}");
    }
    for name in ["kills", "pauses", "partitions", "slow-network", "mixed"] {
        assert!(scenario_names().iter().any(|known| known == name), "{name} is missing in {text}");
    }
}

/// A test for each of some scenarios, by their names, so that none of them is too long for one test.
macro_rules! short_runs {
    ($($test:ident: $name:literal, $seed:literal;)*) => {
        $(
            #[test]
            fn $test() {
                short_run($name, $seed);
            }
        )*

        const SHORT_RUNS: &[&str] = &[$($name),*];
    };
}

// Of these seeds several faults come within the seconds.
short_runs! {
    a_short_run_of_power_cuts: "power-cuts", "18";
    a_short_run_of_bit_rot: "bit-rot", "3";
    a_short_run_of_disks: "disks", "36";
    a_short_run_of_hostile: "hostile", "1";
}

/// The other scenarios, and where their faults are met in every change.
const ELSEWHERE: &[(&str, &str)] = &[
    ("calm", "a_changed_history_is_caught_and_a_true_one_is_not"),
    ("kills", "`cargo xtask test`: minutes of `mixed`"),
    ("pauses", "`cargo xtask test`: minutes of `mixed`"),
    ("deposed-leaders", "`cargo xtask test`: half a minute of `scheduler`"),
    ("restarts", "`cargo xtask test`: minutes of `mixed`"),
    ("partitions", "`cargo xtask test`: minutes of `mixed`"),
    ("slow-network", "`cargo xtask test`: minutes of `mixed`"),
    ("mixed", "`cargo xtask test`: minutes of it"),
    ("membership", "`cargo xtask test`: minutes of `mixed`"),
    ("power-cuts-ext4", "storage_faults: power::what_was_acknowledged_survives_power_cuts"),
    ("clocks", "storage_faults: flushes::wall_clocks_that_jump_change_nothing"),
    ("scheduler", "`cargo xtask test`: half a minute of it"),
    ("scheduler-peers", "`cargo xtask test`: half a minute of it"),
    ("mindspore", "`cargo xtask test`: half a minute of it"),
    ("mars", "`cargo xtask test`: half a minute of it"),
    ("mindspore-dynamic", "`cargo xtask test`: half a minute of `mindspore`"),
    ("upgrade", "nodes_and_agents_of_two_builds_keep_every_promise"),
];

/// Names the program of the build before; without it this build takes its own place, on the data of the one before.
const BEFORE: &str = "TRIPOD_BEFORE";

#[test]
fn nodes_and_agents_of_two_builds_keep_every_promise() {
    let before = std::env::var_os(BEFORE).map_or_else(|| find_tripod().unwrap(), PathBuf::from);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("upgrade");
    let arguments = ["upgrade", "--seed", "1", "--minutes", "0.3", "--before", before.to_str().unwrap()];
    let output = run(&arguments, &out);
    if output.status.code() != Some(0) {
        let kept = folder.keep();
        panic!("kept in {}: {}", kept.display(), error_text(&output));
    }
    let report = report(&out);
    assert_eq!(report["verdict"], "passed");
    let upgraded = report["checks"].as_array().unwrap().iter().find(|check| check["checker"] == "upgrade");
    assert!(upgraded.is_some(), "the gang behind agents was judged: {report}");
    let figures = report["figures"].to_string();
    assert!(figures.contains("barriers passed"), "{figures}");
}

#[test]
fn a_build_to_upgrade_from_is_named_for_an_upgrade_and_for_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&["upgrade"], &folder.path().join("without"));
    assert_eq!(output.status.code(), Some(3));
    assert!(error_text(&output).contains("next: --before PATH"), "{}", error_text(&output));
    let output = run(&["calm", "--before", "tripod"], &folder.path().join("calm"));
    assert_eq!(output.status.code(), Some(3));
    assert!(error_text(&output).contains("--before is for `upgrade`"), "{}", error_text(&output));
}

#[test]
fn the_faults_of_every_scenario_are_met_somewhere() {
    let (mut known, mut met) = (scenario_names(), SHORT_RUNS.to_vec());
    met.extend(ELSEWHERE.iter().map(|(name, _)| name));
    known.sort_unstable();
    met.sort_unstable();
    assert_eq!(known, met);
}

/// A few seconds of a scenario, after which every promise was kept.
fn short_run(name: &str, seed: &str) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join(name);
    let output = run(&[name, "--seed", seed, "--minutes", "0.1", "-o", "json"], &out);
    let said = error_text(&output);
    if output.status.code() == Some(3) && said.contains("skipped: ") {
        // Some faults need a compiler or root; the run says so before it starts anything.
        eprintln!("{name}: {said}");
        return;
    }
    if output.status.code() != Some(0) {
        // What shows a defect must not go with the test.
        let kept = folder.keep();
        panic!("{name}, kept in {}: {said}\n{}", kept.display(), String::from_utf8_lossy(&output.stdout));
    }
    let report = report(&out);
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), report, "{name}");
    assert_eq!(report["verdict"], "passed", "{name}");
    let faults = report["faults"].as_object().unwrap();
    assert!(!faults.is_empty(), "{name}: nothing happened");
    assert_all_workloads(&report, name, &said);
    assert!(!out.join("cluster").exists(), "{name} left its data behind");
    n43_the_progress_tells_how_long_each_fault_was(&report, &said);
    n44_the_report_tells_what_would_have_been_a_violation(&out);
    n45_the_report_names_the_program_and_the_command(&report, &out);
}

// The numbers are those of the walk-through of a new operator.

fn n43_the_progress_tells_how_long_each_fault_was(report: &Value, said: &str) {
    for fault in report["timeline"].as_array().unwrap() {
        let text = |key: &str| fault[key].as_str().unwrap();
        let lasted = fault["length_us"].as_u64().unwrap() as f64 / 1e6;
        assert!(fault["planned_us"].is_u64() || text("kind") == "member-drain", "{fault}");
        let line = format!("{}: {}, over after {lasted:.1} s", text("kind"), text("target"));
        assert!(said.contains(&line), "{line} is not in {said}");
    }
}

fn n44_the_report_tells_what_would_have_been_a_violation(out: &Path) {
    let text = fs::read_to_string(out.join("report.md")).unwrap();
    for part in
        ["| Planned | Lasted | Unavailable meanwhile |", "one node leads, and every node serves", "Safety: "]
    {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

fn n45_the_report_names_the_program_and_the_command(report: &Value, out: &Path) {
    let path = find_tripod().unwrap();
    assert_eq!(report["program"]["path"], path.display().to_string());
    let said = Command::new("sha256sum").arg(&path).output().unwrap().stdout;
    let hash = String::from_utf8(said).unwrap().split_whitespace().next().unwrap().to_owned();
    let text = fs::read_to_string(out.join("report.md")).unwrap();
    let command = report["reproduce"].as_str().unwrap();
    assert!(report["program"]["commit"].is_string() && text.contains(", commit "), "{text}");
    assert!(fs::read_to_string(out.join("timeline.svg")).unwrap().starts_with("<svg "));
    assert!(text.contains(&format!("SHA-256 {hash}")) && text.contains(&format!("`{command}`")), "{text}");
}

fn assert_all_workloads(report: &Value, name: &str, said: &str) {
    let kinds = ["read", "write", "compare-and-set", "append", "increment", "arrive", "heartbeat", "acquire"];
    for kind in kinds.into_iter().chain(["write-guarded"]) {
        let answered = report["operations"][kind]["ok"].as_u64().unwrap_or(0);
        assert!(answered > 0, "{name}: no {kind} was answered; {said}");
    }
}

#[test]
fn a_cluster_that_forgets_is_caught_and_its_data_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    // What follows --data is wiped at every start; the seed kills all nodes at first.
    let broken = broken_tripod(folder.path(), &format!("{FIND_DATA}rm -rf \"$data\""));
    let out = folder.path().join("out");
    let arguments = ["kills", "--seed", "48", "--minutes", "0.1"];
    let output =
        chaos().arg("run").args(arguments).arg("--out").arg(&out).env("TRIPOD_BIN", broken).output().unwrap();
    let said = error_text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let report = report(&out);
    assert!(
        report["faults"]["kill-all"].as_u64().unwrap_or(0) > 0,
        "the seed kills nobody: {}",
        report["faults"]
    );
    let barking = barking(&report);
    assert!(barking.iter().any(|checker| checker.contains("linear")), "only {barking:?} found it; {said}");
    let command = "tripod-chaos run kills --seed 48 --minutes 0.1 --nodes 3";
    assert_eq!(report["reproduce"], command);
    assert_eq!(said.matches(command).count(), 1, "{said}");
    for kept in ["history.jsonl", "run.json", "report.md", "cluster/node-1.log", "cluster/node-1"] {
        assert!(out.join(kept).exists(), "{kept} was not kept");
    }
    let replayed = chaos().arg("replay").arg(out.join("history.jsonl")).output().unwrap();
    assert_eq!(replayed.status.code(), Some(1), "the history alone shows it too: {}", error_text(&replayed));
}

#[test]
fn a_node_that_ends_by_itself_is_caught() {
    let folder = tempfile::tempdir().unwrap();
    // Each of them dies once: one that goes on dying only has the run wait until it gives up.
    // In the middle of the run, which begins when all of them serve.
    let [lives, minutes] = [3, 6].map(|seconds| scaled(Duration::from_secs(seconds)).as_secs_f64());
    let first = format!("[ -e \"$data.once\" ] || {{ touch \"$data.once\"; (sleep {lives}; kill -9 $$) & }}");
    let broken = broken_tripod(folder.path(), &format!("{FIND_DATA}{first}"));
    let out = folder.path().join("out");
    let minutes = (minutes / 60.0).to_string();
    let arguments = ["calm", "--seed", "1", "--minutes", &minutes];
    let output =
        chaos().arg("run").args(arguments).arg("--out").arg(&out).env("TRIPOD_BIN", broken).output().unwrap();
    let said = error_text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let report = report(&out);
    assert!(barking(&report).contains(&"processes".to_owned()), "{said}");
    let markdown = fs::read_to_string(out.join("report.json")).unwrap();
    assert!(markdown.contains("ended by itself"), "{markdown}");
}

/// What a checker must find, and how a history gets it. The last operation that it fits is changed.
const MUTATIONS: [(&str, Mutation); 5] = [
    ("incarnation", |operation| {
        let beats = operation.pointer("/call/heartbeat").is_some();
        let answer = operation.pointer_mut("/outcome/ok").filter(|_| beats);
        answer.is_some_and(|answer| answer["refused"] == "fenced" && replace(answer, "done".into()))
    }),
    ("lock", |operation| {
        // A token that the register has left behind long ago.
        let fence = operation.pointer_mut("/outcome/ok/guarded/fence");
        fence.is_some_and(|fence| fence != 1 && replace(fence, 1.into()))
    }),
    ("linear", |operation| {
        // Another value than the one that was read.
        let value = operation.pointer_mut("/outcome/ok/value/value");
        value.is_some_and(|value| replace(value, 1_000_000_000.into()))
    }),
    ("list", |operation| {
        let elements = operation.pointer_mut("/outcome/ok/elements").and_then(Value::as_array_mut);
        // The first element is gone.
        elements.filter(|elements| elements.len() > 1).map(|elements| elements.remove(0)).is_some()
    }),
    ("counter", |operation| {
        let reads = operation.pointer("/call/read_counter").is_some();
        let count = operation.pointer_mut("/outcome/ok/count").filter(|_| reads);
        count.is_some_and(|count| replace(count, (count.as_i64().unwrap() + 1_000).into()))
    }),
];

#[test]
fn a_changed_history_is_caught_and_a_true_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    // Of this seed's first gangs one has a task that comes again as another life.
    let output = run(&["calm", "--seed", "2", "--minutes", "0.1"], &out);
    assert_eq!(output.status.code(), Some(0), "{}", error_text(&output));
    assert!(report(&out)["faults"].as_object().unwrap().is_empty());
    assert_all_workloads(&report(&out), "calm", &error_text(&output));
    let history = out.join("history.jsonl");
    let replay = |file: &Path| chaos().args(["replay", "-o", "json"]).arg(file).output().unwrap();
    let unchanged = replay(&history);
    assert_eq!(unchanged.status.code(), Some(0), "{}", error_text(&unchanged));

    let lines: Vec<Value> = fs::read_to_string(&history)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (checker, mutate) in MUTATIONS {
        let mut lines = lines.clone();
        // The last one that it fits is the final read.
        let changed = lines.iter_mut().rev().filter_map(|line| line.get_mut("operation")).any(mutate);
        assert!(changed, "nothing to change for {checker}");
        let mutated = folder.path().join(format!("{checker}.jsonl"));
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        fs::write(&mutated, text.join("\n")).unwrap();
        let output = replay(&mutated);
        assert_eq!(output.status.code(), Some(1), "{checker} missed it: {}", error_text(&output));
        let barking = barking(&serde_json::from_slice(&output.stdout).unwrap());
        assert!(
            barking.iter().any(|name| name.contains(checker)),
            "{checker} missed it, {barking:?} did not"
        );
    }

    // The same again, and not for as long.
    let kept = out.join("run.json");
    let mut run: Value = serde_json::from_str(&fs::read_to_string(&kept).unwrap()).unwrap();
    run["options"]["minutes"] = 0.02.into();
    fs::write(&kept, run.to_string()).unwrap();
    let mut again = chaos();
    again.arg("replay").arg(kept).arg("--out").arg(folder.path().join("again"));
    let again = again.output().unwrap();
    assert_eq!(again.status.code(), Some(0), "{}", error_text(&again));
    assert_eq!(report(&folder.path().join("again"))["seed"], 2);

    let totals = chaos().args(["totals", "-o", "json"]).arg(folder.path()).output().unwrap();
    assert_eq!(totals.status.code(), Some(0), "{}", error_text(&totals));
    let totals: Value = serde_json::from_slice(&totals.stdout).unwrap();
    assert_eq!(totals["scenarios"]["calm"]["passed"], 2, "{totals}");
    let writes = |report: &Value| report["operations"]["write"]["ok"].as_u64().unwrap();
    let both = writes(&report(&out)) + writes(&report(&folder.path().join("again")));
    assert_eq!(writes(&totals), both);
    let nothing =
        chaos().arg("totals").arg(out.join("history.jsonl").parent().unwrap().join("none")).output();
    assert_eq!(nothing.unwrap().status.code(), Some(3));
}

/// What follows `--data`, as the shell variable `data`.
const FIND_DATA: &str = "previous=\nfor word in \"$@\"; do\n\
                         [ \"$previous\" = --data ] && data=$word\nprevious=$word\ndone\n";

/// What the checker of processes tells of a run of `bit-rot` with a node that is broken so.
fn rotten_run(first: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let broken = broken_tripod(folder.path(), &format!("{FIND_DATA}{first}"));
    let out = folder.path().join("out");
    let arguments = ["bit-rot", "--seed", "3", "--minutes", "0.1"];
    let output =
        chaos().arg("run").args(arguments).arg("--out").arg(&out).env("TRIPOD_BIN", broken).output().unwrap();
    let said = error_text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let report = report(&out);
    assert!(report["faults"]["bit-flip"].as_u64().unwrap_or(0) > 0, "the seed flips nothing: {said}");
    assert!(barking(&report).contains(&"processes".to_owned()), "{said}");
    report["checks"].to_string()
}

#[test]
fn a_damaged_node_that_goes_on_without_a_word_is_caught() {
    // What it had is gone at every start.
    let told = rotten_run("rm -rf \"$data\"");
    assert!(told.contains("lost entries without a word"), "{told}");
}

#[test]
fn a_damaged_node_that_ends_without_a_code_is_caught() {
    // Each node's second start fails.
    let told = rotten_run(
        "[ -d \"$data\" ] && [ ! -e \"$data.once\" ] && { touch \"$data.once\"; echo sorry; exit 9; }",
    );
    assert!(told.contains("without a code"), "{told}");
}

/// Changes an operation if it is one that it fits, and says so.
type Mutation = fn(&mut Value) -> bool;

fn replace(place: &mut Value, value: Value) -> bool {
    *place = value;
    true
}

#[test]
fn an_interrupted_run_ends_every_process() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = chaos();
        command
            .args(["run", "pauses", "--seed", "1", "--minutes", "5", "--out"])
            .arg(folder.path().join("out"));
        let mut harness = Ended(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let id = harness.0.id();
        // The first fault means that everything is running.
        let nodes = until_blocking("three nodes run", || Some(children(id)).filter(|nodes| nodes.len() == 3));
        kill(Pid::from_raw(i32::try_from(id).unwrap()), signal).unwrap();
        let status = until_blocking("the harness ends", || harness.0.try_wait().unwrap());
        assert_eq!(status.code(), Some(3));
        until_blocking("the nodes are gone", || {
            nodes.iter().all(|node| !Path::new(&format!("/proc/{node}")).exists()).then_some(())
        });
    }
}

/// A process that does not outlive its test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Child processes of `parent`, from the kernel's table.
fn children(parent: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>()).collect()
}

#[test]
fn wrong_usage_and_a_failing_harness_have_their_own_status() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let usage: [&[&str]; 5] = [
        &["no-such-scenario"],
        &["kills", "--minutes", "0"],
        &["kills", "--minutes", "many"],
        &["kills", "--nodes", "2"],
        &["kills", "--seed", "-1"],
    ];
    for arguments in usage {
        let output = run(arguments, &out);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", error_text(&output));
    }
    // The numbers are those of the walk-through of a new operator. n46: the nearest name, and all of them.
    let misspelt = error_text(&run(&["mixd"], &out));
    assert!(misspelt.contains("a similar value exists: 'mixed'"), "{misspelt}");
    assert!(misspelt.contains("calm, kills") && misspelt.contains("hostile, simulation"), "{misspelt}");
    let late = error_text(&run(&["--seed", "1", "simulation"], &out));
    assert!(late.contains("tripod-chaos run simulation --seed 1"), "{late}");
    assert!(!out.exists(), "wrong usage must leave nothing");

    let mut command = chaos();
    command.args(["run", "calm", "--out"]).arg(&out).env("TRIPOD_BIN", folder.path().join("missing"));
    let no_binary = command.output().unwrap();
    assert_eq!(no_binary.status.code(), Some(3), "{}", error_text(&no_binary));
    assert!(error_text(&no_binary).contains("TRIPOD_BIN"), "{}", error_text(&no_binary));

    let nonsense = folder.path().join("nonsense.jsonl");
    fs::write(&nonsense, "{\"what\": 1}\n").unwrap();
    let output = chaos().arg("replay").arg(&nonsense).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(error_text(&output).contains("line 1 is no record"), "{}", error_text(&output));
}

#[test]
fn help_teaches() {
    let output = chaos().args(["run", "--help"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for word in ["Examples:", "Exit status:", "--seed", "--out", "TRIPOD_BIN"] {
        assert!(text.contains(word), "{word} is missing in {text}");
    }
}
