//! All targets one after the other, each in a process of its own, and what became of them.

use std::fs;
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::drive::{INPUT_TIME_MAX, MEMORY_BYTES_MAX, RUNNING, TOO_LONG};
use crate::target::Target;

/// What to run.
pub struct Plan<'a> {
    pub targets: Vec<&'static Target>,
    pub seed: u64,
    /// For all targets together.
    pub time: Duration,
    /// Where findings are kept.
    pub folder: &'a Path,
}

/// Something that was found.
struct Finding {
    target: &'static str,
    what: String,
    file: PathBuf,
}

/// Runs the plan; a finding ends its own target only.
///
/// # Errors
/// What was found, with what repeats it; or a process could not be started.
pub fn supervise(plan: &Plan<'_>) -> Result<()> {
    let many = u32::try_from(plan.targets.len()).context("too many targets")?;
    let each = plan.time / many.max(1);
    eprintln!("fuzz: seed {}, {many} targets, {:.1} s each", plan.seed, each.as_secs_f64());
    let mut findings = Vec::new();
    let mut all = 0;
    for target in &plan.targets {
        let (inputs, finding) = one(plan, target, each)?;
        all += inputs;
        findings.extend(finding);
    }
    if findings.is_empty() {
        eprintln!("fuzz: {all} inputs, nothing found");
        return Ok(());
    }
    let told = findings.iter().map(|Finding { target, what, file }| {
        let file = file.display();
        format!(
            "{target}, seed {}: {what}\n  input: {file}\n  to repeat it: cargo xtask fuzz --replay {file}",
            plan.seed
        )
    });
    bail!("{} findings in {all} inputs\n{}", findings.len(), told.collect::<Vec<_>>().join("\n"))
}

/// Runs one target. Gives how many inputs were tried, and what was found.
fn one(plan: &Plan<'_>, target: &'static Target, time: Duration) -> Result<(u64, Option<Finding>)> {
    let folder = plan.folder.join(target.name);
    let begun = Instant::now();
    let mut command = Command::new(std::env::current_exe().context("this program has no name")?);
    command.arg("work").arg(target.name);
    command.args(["--seed", &plan.seed.to_string(), "--milliseconds", &time.as_millis().to_string()]);
    command.arg("--folder").arg(&folder).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot start a process for a target")?;
    let mut said = String::new();
    child.stdout.take().context("its output is read")?.read_to_string(&mut said)?;
    let status = child.wait()?;
    let inputs = said.lines().find_map(|line| line.strip_prefix("inputs ")?.parse().ok()).unwrap_or(0);
    let took = begun.elapsed().as_secs_f64();
    let what = match said.split_once("found ") {
        Some((_, what)) => Some(what.trim_end().to_owned()),
        None => ended(status),
    };
    let word = if what.is_some() { "FOUND" } else { "ok" };
    eprintln!("  {:16} {inputs:8} inputs in {took:5.1} s  {word}", target.name);
    let Some(what) = what else { return Ok((inputs, None)) };
    let file = folder.join(format!("seed-{}-input-{inputs}", plan.seed));
    fs::copy(folder.join(RUNNING), &file).with_context(|| format!("cannot keep {}", file.display()))?;
    Ok((inputs, Some(Finding { target: target.name, what, file })))
}

/// What the end of a process says, if it is a finding.
fn ended(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(TOO_LONG), _) => {
            Some(format!("one input took more than {} s of a processor", INPUT_TIME_MAX.as_secs()))
        }
        (_, Some(signal)) => Some(format!(
            "the process was ended by signal {signal}: its stack was full, or one input wanted more than {} MiB",
            MEMORY_BYTES_MAX >> 20
        )),
        (code, _) => Some(format!("the process ended with {code:?}")),
    }
}
