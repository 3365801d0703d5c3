//! `cargo xtask test`: everything that this repository can show, from a clone and nothing beside it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::cargo::{self, cargo, root, target_dir};
use crate::clients::{Picked, SKIP_VARIABLE};
use crate::report::{self, Report};
use crate::rust_tests::{self, Which};
use crate::stage::{self, Missing, Stage};
use crate::{dist, fuzz, machine, monitoring, verify};

/// Seeds of the simulation, which take two or three minutes on two cores.
const SEEDS: &str = "200";
/// Seeds of a quick run.
const SEEDS_QUICK: &str = "50";
/// How long real processes are disturbed.
const MINUTES: &str = "3";
/// And how long the nodes, workers and stores of a scheduler, and nodes to which those of MindSpore come, each time.
const SCHEDULER_MINUTES: &str = "0.5";
/// The program of a real client that a quick run has.
const PROGRAM_QUICK: &str = "program 0.12.0.1 leader killed";
/// In CI the whole run is cut off after 90 minutes: tests of clients begin within so much of it, which leaves what
/// their last ones, further attempts and chaos take on a machine that is three times slower than usual.
const CLIENTS_BEGIN_WITHIN: Duration = Duration::from_mins(66);
/// For so long they may begin in any case.
const CLIENTS_BEGIN_LEAST: Duration = Duration::from_mins(5);
/// What the driver of the clients says when all that ran passed, and something could not be run.
const INCOMPLETE: i32 = 4;

/// What to test.
#[derive(Args, Clone)]
pub(crate) struct Options {
    /// Less, in ten minutes when everything is built: verify, unit and property tests, 50 seeds of the simulation,
    /// and one JAX program whose leader is killed.
    #[arg(long, conflicts_with_all = ["all_clients", "filter"])]
    quick: bool,
    /// Run every real-client test with every release, not only with the newest, the oldest and the one whose turn it is.
    #[arg(long)]
    all_clients: bool,
    /// The release of jaxlib whose turn it is, in the place of the one that the commit decides.
    #[arg(long, value_name = "RELEASE")]
    rotated: Option<String>,
    /// Leave the verify stages out.
    #[arg(long)]
    skip_verify: bool,
    /// Run only this stage: one of machine, verify's, build, environments, rust, doctest, fuzz, packages, monitoring,
    /// clients, simulation, chaos.
    #[arg(long)]
    only: Option<String>,
    /// Run only client tests whose name contains this text, or one of several.
    #[arg(long)]
    filter: Vec<String>,
}

/// Runs the stages, and tells where the time went.
///
/// # Errors
/// What failed, was missing, or was flaky more often than an accident explains.
pub(crate) fn run(options: &Options) -> Result<()> {
    let begun = Instant::now();
    let built = target_dir()?;
    let options = Options {
        filter: if options.quick { vec![PROGRAM_QUICK.to_owned()] } else { options.filter.clone() },
        ..options.clone()
    };
    let reports = [rust_tests::junit(&built), clients_report(&built)];
    for report in &reports {
        // An old one would be told as this run's.
        if report.exists() {
            std::fs::remove_file(report).with_context(|| format!("cannot remove {}", report.display()))?;
        }
    }
    let ended = stage::run("test", options.only.as_deref(), stages(&options, begun)?)?;
    let mut tests = Vec::new();
    if reports[0].exists() {
        tests.extend(report::of_nextest(&reports[0])?);
    }
    if reports[1].exists() {
        tests.extend(report::of_clients(&reports[1])?);
    }
    let told = Report { stages: &ended, tests, took: begun.elapsed() }.tell(&built.join("tests"));
    stage::verdict("test", &ended)?;
    told?;
    eprintln!("test: ok");
    Ok(())
}

fn stages(options: &Options, begun: Instant) -> Result<Vec<Stage>> {
    let mut stages = vec![Stage::new("machine", machine::check)];
    let picked = Picked::new(options.all_clients, &options.filter, options.rotated.as_deref(), turn())?;
    if !is_skipped() {
        let picked = picked.clone();
        stages.push(Stage::new("environments", move || environments(&picked)).beside());
    }
    if !options.skip_verify {
        stages.extend(verify::stages());
    }
    stages.push(Stage::new("build", build));
    let which = if options.quick { Which::Quick } else { Which::All };
    stages.push(Stage::new("rust", move || rust_tests::run(which, &[])).needs(&["build"]));
    if !options.quick {
        stages
            .push(Stage::new("doctest", || cargo::run(cargo(&["test", "--quiet", "--workspace", "--doc"]))));
    }
    if !options.quick {
        stages.push(Stage::new("fuzz", || fuzz::fuzz(fuzz::SECONDS, turn().into(), &[])).needs(&["build"]));
    }
    if !options.quick {
        stages.push(Stage::new("packages", packages).needs(&["build", "environments"]));
    }
    if !options.quick {
        stages.push(Stage::new("monitoring", monitoring::run).needs(&["build"]));
    }
    let seeds = if options.quick { SEEDS_QUICK } else { SEEDS };
    stages.push(Stage::new("simulation", || simulation(seeds)).needs(&["build"]).beside());
    let clients = options.clone();
    stages.push(
        Stage::new("clients", move || client_tests(&clients, &picked, begun))
            .needs(&["build", "environments"]),
    );
    if !options.quick {
        stages.push(Stage::new("chaos", disturbed).needs(&["build"]));
    }
    Ok(stages)
}

/// A number that the commit decides, and 0 where there is none.
pub(crate) fn turn() -> u32 {
    u32::from_str_radix(&report::commit(), 16).unwrap_or_default()
}

/// The same flags as the test runners use, so that nothing is compiled twice.
fn build() -> Result<()> {
    cargo::run(cargo(&["build", "--workspace", "--all-targets"]))
}

/// What users install, of the program that all stages run, installed and used.
fn packages() -> Result<()> {
    if is_skipped() {
        return Err(Missing(format!("{SKIP_VARIABLE}=1: no package was installed")).into());
    }
    let built = target_dir()?;
    dist::check_packages(program(&built.join("debug"), "tripod")?, built.join("packages"))
}

/// With these seeds every fault that they know happens (a test of `chaos/src/scenario` pins it), so that no short run of
/// each is needed. Real processes under faults: everything at once, then schedulers, whose workers and stores need machines
/// of their own, then clusters of MindSpore, and then graphs and mutable tensors of Mars.
fn disturbed() -> Result<()> {
    cargo::run(chaos(&["mixed", "--seed", "4", "--minutes", MINUTES])?)?;
    cargo::run(chaos(&["scheduler", "--seed", "1841", "--minutes", SCHEDULER_MINUTES])?)?;
    cargo::run(chaos(&["scheduler-peers", "--seed", "11", "--minutes", SCHEDULER_MINUTES])?)?;
    cargo::run(chaos(&["mindspore", "--seed", "33", "--minutes", SCHEDULER_MINUTES])?)?;
    cargo::run(chaos(&["mars", "--seed", "270", "--minutes", SCHEDULER_MINUTES])?)
}

/// It takes the time that others leave: they wait for processes, networks and disks, and it for nothing.
fn simulation(seeds: &str) -> Result<()> {
    let run = chaos(&["simulation", "--seed", "1", "--seeds", seeds])?;
    let log = target_dir()?.join("tests/simulation.log");
    cargo::run_logged(cargo::yielding(&run), &log)
}

/// One run of `tripod-chaos`.
fn chaos(run: &[&str]) -> Result<Command> {
    let built = target_dir()?.join("debug");
    let mut command = Command::new(program(&built, "tripod-chaos")?);
    command.current_dir(root()).arg("run").args(run);
    command.env("TRIPOD_BIN", program(&built, "tripod")?);
    Ok(command)
}

fn is_skipped() -> bool {
    std::env::var(SKIP_VARIABLE).is_ok_and(|value| value == "1")
}

fn environments(picked: &Picked) -> Result<()> {
    let made = picked.prepare(&target_dir()?.join("clients"));
    if made.missing.is_empty() { Ok(()) } else { Err(Missing(made.missing.join("; ")).into()) }
}

fn client_tests(options: &Options, picked: &Picked, begun: Instant) -> Result<()> {
    if is_skipped() {
        return Err(Missing(format!("{SKIP_VARIABLE}=1: no real client was run")).into());
    }
    let built = target_dir()?;
    // Those that the stage before made are only looked up.
    let environments = picked.prepare(&built.join("clients"));
    if environments.is_empty() {
        return Err(Missing(environments.missing.join("; ")).into());
    }
    eprintln!("  the release of jaxlib whose turn it is: {} (--rotated picks another)", picked.rotated);
    let mut command = Command::new(program(&built.join("debug"), "tripod-clients")?);
    command.current_dir(root()).arg("--results").arg(built.join("clients/results"));
    command.arg("--report").arg(clients_report(&built)).args(["--rotated", picked.rotated]);
    let flags = [
        ("--python", environments.jaxlibs),
        ("--tensorflow", environments.tensorflows),
        ("--mindspore", environments.mindspores),
    ];
    for (flag, interpreters) in flags {
        for (release, python) in interpreters {
            command.arg(flag).arg(format!("{release}={}", python.display()));
        }
    }
    for missing in &environments.missing {
        command.args(["--missing", missing]);
    }
    if options.all_clients {
        command.arg("--all-clients");
    } else if std::env::var_os("CI").is_some() {
        let left = CLIENTS_BEGIN_WITHIN.saturating_sub(begun.elapsed()).max(CLIENTS_BEGIN_LEAST);
        command.args(["--begin-within", &left.as_secs().to_string()]);
    }
    for filter in &options.filter {
        command.args(["--filter", filter]);
    }
    let shown = cargo::shown(&command);
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    match status.code() {
        Some(0) => Ok(()),
        Some(INCOMPLETE) => Err(Missing(environments.missing.join("; ")).into()),
        _ => bail!("`{shown}` ended with {status}"),
    }
}

fn clients_report(built: &Path) -> PathBuf {
    built.join("clients/report.jsonl")
}

/// A program that the build stage made.
fn program(built: &Path, name: &str) -> Result<PathBuf> {
    let program = built.join(name);
    program.canonicalize().with_context(|| {
        format!("{} is missing; to build it: cargo xtask test --only build", program.display())
    })
}
