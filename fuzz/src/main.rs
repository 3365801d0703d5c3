//! `tripod-fuzz`: fuzzes the targets of this crate, and repeats what was found. `cargo xtask fuzz` builds and runs it.

use std::alloc::System;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use cap::Cap;
use clap::{Parser, Subcommand};
use tripod_fuzz::attempt::attempt;
use tripod_fuzz::corpus;
use tripod_fuzz::drive::{self, MEMORY_BYTES_MAX, Run};
use tripod_fuzz::supervise::{self, Plan};
use tripod_fuzz::target::{self, Target};

/// Bounded before each input: whoever wants more ends the process.
#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

/// Inputs of one target in a folder, and bytes of each: what lies in the tree is small.
const SAMPLES: usize = 3;
const SAMPLE_BYTES_MAX: usize = 2 << 10;

/// Hostile bytes for everything that reads bytes of others.
#[derive(Parser)]
#[command(bin_name = "tripod-fuzz")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Fuzz all targets, one after the other.
    Run {
        /// For all targets together.
        #[arg(long, default_value_t = 300)]
        seconds: u64,
        /// The inputs of a seed are always the same.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Only this target; may be given several times.
        #[arg(long)]
        target: Vec<String>,
        /// Where findings are kept.
        #[arg(long, default_value = "target/fuzz")]
        findings: PathBuf,
    },
    /// Try the inputs in files again. Each lies in a folder with the name of its target.
    Replay { files: Vec<PathBuf> },
    /// Name the targets.
    List,
    /// Write some inputs of a target to a folder: a beginning for `fuzz/corpus`.
    Sample { target: String, folder: PathBuf },
    /// One target, for `run`.
    #[command(hide = true)]
    Work {
        target: String,
        #[arg(long)]
        seed: u64,
        #[arg(long)]
        milliseconds: u64,
        #[arg(long)]
        folder: PathBuf,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Run { seconds, seed, target, findings } => {
            let targets = if target.is_empty() {
                target::ALL.iter().collect()
            } else {
                target.iter().map(|name| find(name)).collect::<Result<_>>()?
            };
            let time = Duration::from_secs(seconds);
            supervise::supervise(&Plan { targets, seed, time, folder: &findings })
        }
        Task::Replay { files } => files.iter().try_for_each(|file| replay(file)),
        Task::List => {
            for target in target::ALL {
                println!("{:16} {}", target.name, target.what.trim());
            }
            Ok(())
        }
        Task::Sample { target, folder } => {
            let target = find(&target)?;
            std::fs::create_dir_all(&folder)?;
            let inputs = (0..).map(|number| drive::input(target, 1, number, &[]));
            let small = inputs.filter(|input| input.len() < SAMPLE_BYTES_MAX).take(SAMPLES);
            for (number, input) in small.enumerate() {
                std::fs::write(folder.join(format!("sample-{number}")), input)?;
            }
            Ok(())
        }
        Task::Work { target, seed, milliseconds, folder } => work(&Run {
            target: find(&target)?,
            seed,
            time: Duration::from_millis(milliseconds),
            folder,
            corpus: corpus::folder(),
        }),
    }
}

fn find(name: &str) -> Result<&'static Target> {
    let names = || target::ALL.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
    target::named(name).with_context(|| format!("there is no target `{name}`; there are {}", names()))
}

fn work(run: &Run) -> Result<()> {
    let ended = drive::drive(run, bound).context("the target could not be run")?;
    println!("inputs {}", ended.inputs);
    if let Some((what, _)) = ended.found {
        println!("found {what}");
    }
    Ok(())
}

/// Bounds what the next input may take.
fn bound() {
    // The limit is never below what is there.
    let _ = MEMORY.set_limit(MEMORY.allocated().saturating_add(MEMORY_BYTES_MAX));
}

fn replay(file: &Path) -> Result<()> {
    let folder = file.parent().and_then(Path::file_name).and_then(OsStr::to_str).unwrap_or_default();
    let target = find(folder).with_context(|| format!("{} lies in no target's folder", file.display()))?;
    let input = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    bound();
    match attempt(target, &input) {
        Ok(()) => println!("{}: nothing found", file.display()),
        Err(what) => bail!("{}: {what}", file.display()),
    }
    Ok(())
}
