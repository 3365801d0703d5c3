//! `tripod-chaos run simulation`: many seeds, each in a process of its own.

use std::collections::BTreeMap;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::Context as _;
use clap::Args;

use super::options::Options;
use super::planted::Planted;
use super::report::SeedReport;
use super::run::run_seed;
use tripod_checkers::report::Program;

/// Flags of `run simulation`.
#[derive(Debug, Clone, Args)]
pub struct SimulationArgs {
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// How many seeds, one after the other from the first on
    #[arg(long, default_value_t = 1)]
    seeds: u64,

    /// How many seeds at a time [default: one for each core]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// Make this mistake on purpose, to see it caught
    #[arg(long, value_name = "BUG", value_enum)]
    plant: Option<Planted>,

    /// For how many milliseconds of simulated time faults are injected
    #[arg(long, value_name = "MS", default_value_t = Options::default().faults_for_ms)]
    faults_for_ms: u64,

    /// Have a scheduler with workers and object stores in every run, not only in one of five
    #[arg(long)]
    scheduler: bool,

    /// Have nodes of MindSpore's clusters in every run, not only in one of seven
    #[arg(long)]
    mindspore: bool,

    /// How the reports are printed
    #[arg(short = 'o', long = "output", value_enum, default_value_t = Output::Text)]
    output: Output,

    /// Print what happened in the simulation, event by event (one seed only)
    #[arg(long)]
    events: bool,
}

impl SimulationArgs {
    fn options(&self) -> Options {
        Options {
            faults_for_ms: self.faults_for_ms,
            planted: self.plant,
            scheduler: self.scheduler,
            mindspore: self.mindspore,
            keep_events: self.events,
        }
    }
}

/// A form of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// One line of JSON for each seed.
    Json,
}

/// Runs the seeds. The exit code tells whether all of them passed.
///
/// # Errors
/// When a process cannot be started, or its report cannot be read.
pub fn command(args: &SimulationArgs) -> anyhow::Result<ExitCode> {
    if args.seeds == 1 {
        return Ok(alone(args));
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let jobs = args.jobs.map_or(cores, usize::from);
    let options = Options { keep_events: false, ..args.options() };
    let fleet = Fleet { args, options, began: Instant::now(), state: Mutex::new(State::new(args)) };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(|| fleet.work())).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("workers do not panic"))
    })?;
    let state = fleet.state.into_inner().expect("workers do not panic");
    eprintln!("{}", state.sum(fleet.began, &fleet.options));
    Ok(if state.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One seed, in this process.
fn alone(args: &SimulationArgs) -> ExitCode {
    let mut report = run_seed(args.seed, &args.options());
    for line in std::mem::take(&mut report.lines) {
        eprintln!("{line}");
    }
    print(&report, args.output);
    if report.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print(report: &SeedReport, output: Output) {
    match output {
        Output::Text => println!("{report}  program: {}", Program::this().words()),
        Output::Json => {
            println!("{}", serde_json::to_string(report).expect("a report has string keys only"));
        }
    }
}

struct Fleet<'a> {
    args: &'a SimulationArgs,
    options: Options,
    began: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    end: u64,
    done: u64,
    failed: Vec<u64>,
    simulated_ms: u64,
    operations: u64,
    faults: BTreeMap<String, u64>,
}

impl State {
    fn new(args: &SimulationArgs) -> Self {
        Self { next: args.seed, end: args.seed.saturating_add(args.seeds), ..Self::default() }
    }

    fn take(&mut self) -> Option<u64> {
        let seed = self.next;
        (seed < self.end).then(|| {
            self.next += 1;
            seed
        })
    }

    fn add(&mut self, report: &SeedReport) {
        self.done += 1;
        self.simulated_ms += report.simulated_ms;
        let outcomes = report.operations.values();
        self.operations += outcomes.map(|all| all.ok + all.fail + all.unknown).sum::<u64>();
        for (kind, count) in &report.faults {
            *self.faults.entry(kind.clone()).or_default() += count;
        }
        if !report.passed {
            self.failed.push(report.seed);
        }
    }

    fn sum(&self, began: Instant, options: &Options) -> String {
        let faults: Vec<_> = self.faults.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let mut sum = format!(
            "{} seeds in {} s: {} failed; {} s simulated, {} operations; {}",
            self.done,
            began.elapsed().as_secs(),
            self.failed.len(),
            self.simulated_ms / 1000,
            self.operations,
            faults.join(", ")
        );
        sum.push_str(&format!("\nprogram: {}", Program::this().words()));
        if let Some(first) = self.failed.iter().min() {
            sum.push_str(&format!("\nreproduce with: {}", options.reproduce(*first)));
        }
        sum
    }
}

impl Fleet<'_> {
    fn work(&self) -> anyhow::Result<()> {
        loop {
            let Some(seed) = self.state.lock().expect("workers do not panic").take() else { return Ok(()) };
            let report = self.child(seed)?;
            let mut state = self.state.lock().expect("workers do not panic");
            state.add(&report);
            if !report.passed {
                eprint!("{report}");
                eprintln!("  reproduce with: {}", self.options.reproduce(report.seed));
            }
            if self.args.output == Output::Json {
                print(&report, Output::Json);
            }
            if state.done.is_multiple_of(20) {
                eprintln!("{} of {} seeds, {} failed", state.done, self.args.seeds, state.failed.len());
            }
        }
    }

    /// Runs a seed in a process of its own: whatever ends it ends one seed.
    fn child(&self, seed: u64) -> anyhow::Result<SeedReport> {
        let program = std::env::current_exe().context("this program cannot be found")?;
        let mut command = Command::new(program);
        // As the command that is printed if the seed fails.
        command.args(self.options.arguments(seed)).args(["--output", "json"]);
        let output = command.stdin(Stdio::null()).output().context("a seed's process cannot be started")?;
        let told = String::from_utf8_lossy(&output.stdout);
        Ok(told.lines().last().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_else(|| {
            let last = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
            SeedReport::of_panic(seed, format!("the process ended with {}: {last}", output.status))
        }))
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser, ValueEnum as _};

    use super::*;

    /// `run simulation` with nothing around it.
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: SimulationArgs,
    }

    /// Options that differ from the defaults in everything.
    fn other(planted: Option<Planted>) -> Options {
        Options { faults_for_ms: 3_000, planted, scheduler: true, mindspore: true, keep_events: true }
    }

    /// The number is that of the walk-through of a new operator.
    #[test]
    fn n04_the_printed_command_has_the_options_of_the_seed() {
        let bugs = Planted::value_variants().iter().copied().map(Some).chain([None]);
        for options in bugs.map(other).chain([Options::default()]) {
            let line = options.reproduce(990_005);
            let words = line.strip_prefix("tripod-chaos run ").expect("the program").split(' ');
            let Line { args } = Line::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!((args.options(), args.seed, args.seeds), (options, 990_005, 1), "{line}");
        }
    }

    #[test]
    fn n04_the_printed_command_has_every_flag_that_decides_a_run() {
        let line = other(Some(Planted::StaleReads)).reproduce(7) + " ";
        // One seed is run, in this process, and how it is printed decides nothing.
        let elsewhere = ["seeds", "jobs", "output", "help"];
        let command = Line::command();
        let flags = command.get_arguments().filter_map(clap::Arg::get_long);
        for flag in flags.filter(|flag| !elsewhere.contains(flag)) {
            assert!(line.contains(&format!(" --{flag} ")), "--{flag} is not in {line}");
        }
    }
}
