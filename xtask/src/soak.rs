//! `cargo xtask soak`: whether the Rust tests are stable on a machine that is busy with other things.

use std::fs::{self, OpenOptions};
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::cargo::{cargo, run_logged, target_dir};
use crate::report::{self, Ending, commit};
use crate::rust_tests;

/// Pause of the loop of flushes after each, so that the disk has a queue and not only that.
const FLUSH_PAUSE: Duration = Duration::from_millis(1);
/// Bytes of each flush.
const FLUSH_BYTES: usize = 64 << 10;
/// The file of the loop of flushes begins anew beyond this.
const FLUSHED_MAX: u64 = 64 << 20;

/// What to run.
#[derive(Args, Clone)]
pub(crate) struct Options {
    /// Runs in a row that must pass. Those of this commit that passed before, with nothing changed since, count.
    #[arg(long, default_value_t = 20)]
    runs: usize,
    /// Begin anew.
    #[arg(long)]
    anew: bool,
    /// Run beside nothing.
    #[arg(long)]
    idle: bool,
    /// Passed to cargo-nextest: a filter, for example.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs the Rust tests again and again beside a busy loop for each core and a loop of fdatasync; nothing is tried
/// again. Each run is a line of `target/tests/soak.txt`, with what failed.
///
/// # Errors
/// A test failed.
pub(crate) fn run(options: &Options) -> Result<()> {
    if !rust_tests::has_nextest() {
        bail!("the soak needs cargo-nextest: cargo install --locked cargo-nextest");
    }
    let built = target_dir()?;
    let folder = built.join("tests/soak");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let list = built.join("tests/soak.txt");
    let key = format!("{} {}", commit(), options.arguments.join(" "));
    let before = if options.anew || !report::is_clean() {
        0
    } else {
        in_a_row(&fs::read_to_string(&list).unwrap_or_default(), &key)
    };
    if before > 0 {
        println!("{before} runs of this commit have passed before");
    }
    // Builds are no part of it.
    crate::cargo::run(&mut cargo(&["build", "--workspace", "--all-targets"]))?;
    let load = (!options.idle).then(|| Load::start(&folder)).transpose()?;
    for number in before + 1..=options.runs {
        let begun = Instant::now();
        let log = folder.join(format!("run-{number}.log"));
        let failed = once(options, &built, &log)?;
        let seconds = begun.elapsed().as_secs();
        let verdict =
            if failed.is_empty() { "ok".to_owned() } else { format!("FAILED {}", failed.join(", ")) };
        println!("run {number} of {}: {verdict} ({seconds} s)", options.runs);
        let mut file = OpenOptions::new().create(true).append(true).open(&list);
        let file =
            file.as_mut().map_err(|error| anyhow::anyhow!("cannot write {}: {error}", list.display()))?;
        writeln!(file, "{key}\t{seconds} s\t{verdict}").context("cannot write the list of runs")?;
        if !failed.is_empty() {
            bail!("{} tests failed in run {number}; what they wrote: {}", failed.len(), log.display());
        }
    }
    drop(load);
    println!("{} runs in a row passed", options.runs);
    Ok(())
}

/// The names of the tests that failed.
fn once(options: &Options, built: &Path, log: &Path) -> Result<Vec<String>> {
    let junit = rust_tests::junit(built);
    drop(fs::remove_file(&junit));
    let mut command = cargo(&["nextest", "run", "--workspace", "--retries", "0"]);
    command.args(&options.arguments);
    let outcome = run_logged(command, log);
    let tests = match (&outcome, report::of_nextest(&junit)) {
        (Err(_), Err(_)) => return outcome.map(|()| Vec::new()),
        (_, tests) => tests?,
    };
    let bad = tests.into_iter().filter(|test| test.ending != Ending::Passed);
    let failed: Vec<String> = bad.map(|test| test.name).collect();
    // Where no test failed it was the runner: what it never began has not passed.
    if failed.is_empty() {
        outcome?;
    }
    Ok(failed)
}

/// How many of the last runs passed, all with this key.
fn in_a_row(list: &str, key: &str) -> usize {
    let is_good = |line: &&str| {
        let mut parts = line.split('\t');
        parts.next() == Some(key) && parts.nth(1) == Some("ok")
    };
    list.lines().rev().take_while(is_good).count()
}

/// Programs that want the machine, too. They end when it is dropped.
struct Load {
    over: &'static AtomicBool,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Load {
    fn start(folder: &Path) -> Result<Self> {
        let over: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
        let path = folder.join("flushed");
        let mut file = fs::File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let mut threads: Vec<_> = (0..cores)
            .map(|_| {
                thread::spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                })
            })
            .collect();
        threads.push(thread::spawn(move || {
            let bytes = vec![7; FLUSH_BYTES];
            while !over.load(Ordering::Relaxed) {
                let flushed = file.write_all(&bytes).and_then(|()| file.sync_data());
                if flushed.is_err() || file.stream_position().is_ok_and(|position| position > FLUSHED_MAX) {
                    drop(file.rewind());
                }
                thread::sleep(FLUSH_PAUSE);
            }
        }));
        Ok(Self { over, threads })
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_good_runs_of_the_same_commit_count() {
        let list = "a1 \t9 s\tok\na1 \t9 s\tFAILED x\na1 \t9 s\tok\na1 \t9 s\tok\n";
        assert_eq!(in_a_row(list, "a1 "), 2);
        assert_eq!(in_a_row(list, "b2 "), 0);
        assert_eq!(in_a_row(&format!("{list}b2 \t9 s\tok\n"), "a1 "), 0);
        assert_eq!(in_a_row("", "a1 "), 0);
    }

    #[test]
    fn the_load_ends() {
        let folder = tempfile::tempdir().unwrap();
        let load = Load::start(folder.path()).unwrap();
        assert_eq!(load.threads.len(), thread::available_parallelism().unwrap().get() + 1);
        drop(load);
    }
}
