//! `cargo xtask fuzz`: hostile bytes for everything that reads bytes of others (`fuzz/`).

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use crate::cargo::{self, cargo, root, target_dir};

/// The program that fuzzes.
pub(crate) const PROGRAM: &str = "tripod-fuzz";
/// How long all targets together take in each change.
pub(crate) const SECONDS: u64 = 60;

/// What to run.
#[derive(Args, Clone)]
pub(crate) struct Options {
    /// For all targets together.
    #[arg(long, default_value_t = 300)]
    seconds: u64,
    /// Only this target; may be given several times.
    #[arg(long)]
    target: Vec<String>,
    /// The seed, in the place of the one that the commit decides. The inputs of a seed are always the same.
    #[arg(long)]
    seed: Option<u64>,
    /// Name the targets.
    #[arg(long)]
    list: bool,
    /// Try what was found again; may be given several times.
    #[arg(long, value_name = "FILE")]
    replay: Vec<PathBuf>,
}

/// Builds the program, and runs it.
///
/// # Errors
/// The build failed, or something was found: what, with which input, and how to repeat it.
pub(crate) fn run(options: &Options, commit: u64) -> Result<()> {
    // With the features that the whole workspace has, so that nothing is built twice.
    cargo::run(cargo(&["build", "--quiet", "--workspace", "--bin", PROGRAM]))?;
    if options.list {
        return cargo::run(program()?.arg("list"));
    }
    if !options.replay.is_empty() {
        let mut command = program()?;
        command.arg("replay");
        for file in &options.replay {
            // It runs in the root, wherever it is asked for.
            command.arg(file.canonicalize().with_context(|| format!("cannot find {}", file.display()))?);
        }
        return cargo::run(command);
    }
    fuzz(options.seconds, options.seed.unwrap_or(commit), &options.target)
}

/// Runs the program that is built.
///
/// # Errors
/// Something was found.
pub(crate) fn fuzz(seconds: u64, seed: u64, targets: &[String]) -> Result<()> {
    let mut command = program()?;
    command.args(["run", "--seconds", &seconds.to_string(), "--seed", &seed.to_string()]);
    command.arg("--findings").arg(target_dir()?.join("fuzz"));
    for target in targets {
        command.args(["--target", target]);
    }
    cargo::run(command)
}

fn program() -> Result<Command> {
    let program = target_dir()?.join("debug").join(PROGRAM);
    let program = program.canonicalize().with_context(|| {
        format!("{} is missing; to build it: cargo xtask test --only build", program.display())
    })?;
    let mut command = Command::new(program);
    command.current_dir(root());
    Ok(command)
}
