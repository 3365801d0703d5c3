//! `cargo xtask test`: everything that this repository can show, from a clone and nothing beside it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use crate::cargo::{self, cargo, root, target_dir};
use crate::clients::{self, SKIP_VARIABLE};
use crate::stage::{self, Stage};
use crate::verify;

/// Seeds of the simulation, which take two or three minutes on two cores.
const SEEDS: &str = "200";
/// How long real processes are disturbed.
const MINUTES: &str = "3";
/// And how long the nodes, workers and stores of a scheduler, each time.
const SCHEDULER_MINUTES: &str = "0.5";

/// What to test.
#[derive(Args, Clone)]
pub(crate) struct Options {
    /// Run whole programs with every release of jaxlib, not only with the newest one, with four more
    /// releases, and TensorFlow's.
    #[arg(long)]
    all_clients: bool,
    /// Leave the verify stages out.
    #[arg(long)]
    skip_verify: bool,
    /// Run only this stage: one of verify's, build, rust, doctest, clients, release,
    /// simulation, chaos.
    #[arg(long)]
    only: Option<String>,
    /// Run only client tests whose name contains this text.
    #[arg(long)]
    filter: Option<String>,
}

/// Runs the stages.
///
/// # Errors
/// The first stage that failed.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut stages = if options.skip_verify { Vec::new() } else { verify::stages() };
    stages.push(Stage::new("build", build));
    stages.push(Stage::new("rust", rust_tests));
    stages.push(Stage::new("doctest", || cargo::run(cargo(&["test", "--quiet", "--workspace", "--doc"]))));
    let clients = options.clone();
    stages.push(Stage::new("clients", move || client_tests(&clients)));
    stages.push(Stage::new("release", release_figures));
    stages.push(Stage::new("simulation", || chaos(&["simulation", "--seed", "1", "--seeds", SEEDS])));
    stages.push(Stage::new("chaos", disturbed));
    stage::run_all("test", options.only.as_deref(), stages)
}

/// The same flags as the test runners use, so that nothing is compiled twice.
fn build() -> Result<()> {
    cargo::run(cargo(&["build", "--workspace", "--all-targets"]))
}

fn rust_tests() -> Result<()> {
    let mut probe = cargo(&["nextest", "--version"]);
    let has_nextest = probe.output().is_ok_and(|output| output.status.success());
    if has_nextest {
        return cargo::run(cargo(&["nextest", "run", "--workspace"]));
    }
    eprintln!("  cargo-nextest is not installed: running the same tests by cargo test, one binary at a time");
    cargo::run(cargo(&["test", "--workspace", "--all-targets"]))
}

/// What is promised of the program that people run, and says nothing of an unoptimised one.
fn release_figures() -> Result<()> {
    // Together, or what both depend on is built twice with different features.
    cargo::run(cargo(&["build", "--release", "--package", "tripod", "--package", "tripod-chaos"]))?;
    let mut figures = cargo(&["test", "--quiet", "--package", "tripod-chaos", "--test", "idle"]);
    figures.args(["--", "--ignored", "--nocapture"]);
    figures.env("TRIPOD_BIN", target_dir()?.join("release/tripod"));
    cargo::run(figures)
}

/// Real processes under faults: everything at once, and then schedulers, whose workers and stores need machines of
/// their own.
fn disturbed() -> Result<()> {
    chaos(&["mixed", "--seed", "1", "--minutes", MINUTES])?;
    chaos(&["scheduler", "--seed", "1", "--minutes", SCHEDULER_MINUTES])?;
    chaos(&["scheduler-peers", "--seed", "3", "--minutes", SCHEDULER_MINUTES])
}

/// One run of `tripod-chaos`, by the program that the release stage made: unoptimised, a seed takes six times as long.
fn chaos(run: &[&str]) -> Result<()> {
    let program = target_dir()?.join("release/tripod-chaos");
    let mut command = Command::new(program);
    command.current_dir(root()).arg("run").args(run);
    command.env("TRIPOD_BIN", target_dir()?.join("release/tripod"));
    cargo::run(command)
}

fn client_tests(options: &Options) -> Result<()> {
    if std::env::var(SKIP_VARIABLE).is_ok_and(|value| value == "1") {
        eprintln!("warning: {SKIP_VARIABLE}=1: no real client was run");
        return Ok(());
    }
    let built = target_dir()?;
    let environments = clients::prepare(&built.join("clients"))?;
    let program = driver(&built)?;
    let mut command = Command::new(program);
    command.current_dir(root()).arg("--results").arg(built.join("clients/results"));
    for (release, python) in environments {
        command.arg("--python").arg(format!("{}={}", release.jaxlib, python.display()));
    }
    if options.all_clients {
        command.arg("--all-clients");
        let filter = options.filter.as_deref();
        for (release, python) in clients::prepare_more(&built.join("clients"), filter)? {
            command.arg("--more-python").arg(format!("{}={}", release.jaxlib, python.display()));
        }
        for (release, python) in clients::prepare_tensorflow(&built.join("clients"), filter)? {
            command.arg("--tensorflow").arg(format!("{}={}", release.version, python.display()));
        }
    }
    if let Some(filter) = &options.filter {
        command.arg("--filter").arg(filter);
    }
    cargo::run(command)
}

/// The driver of the client tests, which the build stage made.
fn driver(built: &Path) -> Result<PathBuf> {
    let program = built.join("debug").join("tripod-clients");
    program.canonicalize().with_context(|| {
        format!("{} is missing; to build it: cargo xtask test --only build", program.display())
    })
}
