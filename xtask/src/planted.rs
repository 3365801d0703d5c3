//! `cargo xtask planted`: whether the suite of faults notices nodes that break a promise.

use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::cargo::{self, cargo, root, target_dir};

/// Each promise that can be broken, and the scenario that should notice it.
const BUGS: [(&str, &str); 11] = [
    ("stale-reads", "partitions"),
    ("early-acknowledgement", "power-cuts"),
    ("forgotten-vote", "kills"),
    ("skipped-incarnation", "calm"),
    ("dropped-arrival", "calm"),
    ("double-apply", "mixed"),
    ("rank-twice", "mindspore"),
    ("event-lost", "mindspore"),
    ("graph-ends-twice", "mars"),
    ("sealed-twice", "mars"),
    ("stale-vote", "deposed-leaders"),
];
/// How long the faults of one run go on, in minutes. Each run has the next seed.
const RUN_MINUTES: f64 = 0.75;
/// The status of a run in which a promise was broken.
const VIOLATED: i32 = 1;

/// What to run.
#[derive(Args, Clone)]
pub(crate) struct Options {
    /// Only this bug.
    #[arg(long)]
    only: Option<String>,
    /// How long each build is disturbed at most, in minutes; at least one run is made.
    #[arg(long, default_value_t = 3.0)]
    minutes: f64,
    /// The seed of the first attempt.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Builds the nodes, apart from all other builds, and runs them.
///
/// # Errors
/// A bug that nothing noticed; a build that failed; an unknown name.
pub(crate) fn run(options: &Options) -> Result<()> {
    let only = options.only.as_deref();
    let picked: Vec<_> = BUGS.iter().filter(|(bug, _)| only.is_none_or(|only| only == *bug)).collect();
    if picked.is_empty() {
        bail!("no such bug; there are {}", BUGS.map(|(bug, _)| bug).join(", "));
    }
    let built = target_dir()?.join("planted");
    let mut build = cargo(&["build", "--release", "--package", "tripod", "--features", "planted"]);
    build.arg("--target-dir").arg(&built);
    cargo::run(build)?;
    cargo::run(cargo(&["build", "--release", "--package", "tripod-chaos"]))?;
    let mut missed = Vec::new();
    let runs = ((options.minutes / RUN_MINUTES) as u64).max(1);
    for (bug, scenario) in picked {
        match attempts(options.seed..options.seed + runs, &built, bug, scenario)? {
            Some((runs, seconds)) => {
                println!("{bug:22} caught by {scenario} in run {runs}, after {seconds:.0} s");
            }
            None => {
                println!("{bug:22} NOT caught by {scenario} in {runs} runs");
                missed.push(*bug);
            }
        }
    }
    if !missed.is_empty() {
        bail!("nothing noticed {}", missed.join(", "));
    }
    Ok(())
}

/// In which run the bug was noticed, and after how many seconds of all of them.
fn attempts(seeds: Range<u64>, built: &Path, bug: &str, scenario: &str) -> Result<Option<(u64, f64)>> {
    let began = Instant::now();
    for (run, seed) in (1..).zip(seeds) {
        let mut command = Command::new(target_dir()?.join("release/tripod-chaos"));
        command.current_dir(root()).args(["run", scenario, "--seed", &seed.to_string()]);
        command.args(["--minutes", &RUN_MINUTES.to_string()]);
        command.env("TRIPOD_BIN", built.join("release/tripod")).env("TRIPOD_PLANT", bug);
        let output = command.output().context("cannot start tripod-chaos")?;
        match output.status.code() {
            Some(VIOLATED) => return Ok(Some((run, began.elapsed().as_secs_f64()))),
            Some(0) => {}
            // A cluster that cannot even be started keeps no promise, but proves no checker.
            code => eprintln!("  {bug}, run {run}: status {code:?}: {}", last_lines(&output.stderr)),
        }
    }
    Ok(None)
}

fn last_lines(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut lines: Vec<&str> = text.lines().rev().take(3).collect();
    lines.reverse();
    lines.join(" / ")
}
