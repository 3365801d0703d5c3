//! `cargo xtask planted`: whether the suite of faults notices nodes that break a promise.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::cargo::{self, cargo, root, target_dir};

/// Each promise that can be broken, the scenario that should notice it, and the minutes of one run. A barrier that lacks
/// an arrival is noticed when its time is over, which takes a minute and a half.
const BUGS: [(&str, &str, f64); 6] = [
    ("stale-reads", "partitions", 0.75),
    ("early-acknowledgement", "power-cuts", 0.75),
    ("forgotten-vote", "kills", 0.75),
    ("skipped-incarnation", "calm", 0.75),
    ("dropped-arrival", "calm", 2.0),
    ("double-apply", "mixed", 0.75),
];
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
    let picked: Vec<_> = BUGS.iter().filter(|(bug, ..)| only.is_none_or(|only| only == *bug)).collect();
    if picked.is_empty() {
        bail!("no such bug; there are {}", BUGS.map(|(bug, ..)| bug).join(", "));
    }
    let built = target_dir()?.join("planted");
    let mut build = cargo(&["build", "--release", "--package", "tripod", "--features", "planted"]);
    build.arg("--target-dir").arg(&built);
    cargo::run(build)?;
    cargo::run(cargo(&["build", "--release", "--package", "tripod-chaos"]))?;
    let mut missed = Vec::new();
    for (bug, scenario, minutes) in picked {
        let runs = ((options.minutes / minutes) as u64).max(1);
        match attempts(options, &built, bug, (scenario, *minutes, runs))? {
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
fn attempts(
    options: &Options,
    built: &Path,
    bug: &str,
    (scenario, minutes, runs): (&str, f64, u64),
) -> Result<Option<(u64, f64)>> {
    let began = Instant::now();
    for run in 0..runs {
        let mut command = Command::new(target_dir()?.join("release/tripod-chaos"));
        command.current_dir(root()).args(["run", scenario, "--seed", &(options.seed + run).to_string()]);
        command.args(["--minutes", &minutes.to_string()]);
        command.env("TRIPOD_BIN", built.join("release/tripod")).env("TRIPOD_PLANT", bug);
        let output = command.output().context("cannot start tripod-chaos")?;
        match output.status.code() {
            Some(VIOLATED) => return Ok(Some((run + 1, began.elapsed().as_secs_f64()))),
            Some(0) => {}
            // A cluster that cannot even be started keeps no promise, but proves no checker.
            code => eprintln!("  {bug}, run {}: status {code:?}: {}", run + 1, last_lines(&output.stderr)),
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
