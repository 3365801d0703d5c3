//! `tripod-chaos`: faults, workloads and checkers, and benchmarks against peers, on clusters that it starts and
//! ends itself.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};
use tripod_bench::BenchCommand;
use tripod_chaos::scenario::{self, ExportArgs, ListArgs, ReplayArgs, RunArgs, TotalsArgs};
use tripod_processes::played::{self, PLAYED_WORKER};
use tripod_simulation::SimulationArgs;

/// The load generator shares its cores with what it measures, and the system's allocator would cost it a
/// tenth of its time. Nodes have the same one.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The status of a run that proves nothing, because the harness failed.
const HARNESS_FAILED: u8 = 3;

/// Fault injection and consistency checking for Tripod clusters.
#[derive(Parser)]
#[command(name = "tripod-chaos", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Disturb a cluster while clients use it, and judge what they were told.
    Run(RunArgs),
    /// Tell the scenarios.
    List(ListArgs),
    /// Check the history of a run once more, or do the run again.
    Replay(ReplayArgs),
    /// Write the history of a run for another checker: Porcupine, Elle, Knossos.
    Export(ExportArgs),
    /// Add up the reports of many runs.
    Totals(TotalsArgs),
    /// Play a worker that makes chunks for Mars, for a run that this program does elsewhere.
    #[command(name = PLAYED_WORKER, hide = true)]
    Worker(PlayedWorker),
    /// Measure, beside a peer in the same run.
    #[command(subcommand)]
    Bench(BenchCommand),
}

/// Where a played worker is, and where it finds the cluster.
#[derive(clap::Args)]
struct PlayedWorker {
    #[arg(long, value_name = "IP")]
    host: String,

    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',')]
    endpoints: Vec<String>,
}

/// Whole clusters in one thread each, from one seed each.
///
/// Runs seeds of the deterministic simulation, each in a process of its own. A seed that fails once fails each time.
#[derive(Parser)]
#[command(name = "tripod-chaos run simulation", version)]
struct Simulation {
    #[command(flatten)]
    args: SimulationArgs,
}

fn main() -> ExitCode {
    // It has seeds where the scenarios of processes have minutes, and needs a process without a runtime.
    let words: Vec<String> = std::env::args().take(3).collect();
    if words.get(1..) != Some(&["run".to_owned(), tripod_simulation::NAME.to_owned()]) {
        return on_processes();
    }
    let Simulation { args } = Simulation::parse_from(std::env::args_os().skip(2));
    tripod_simulation::command(&args).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(HARNESS_FAILED)
    })
}

#[tokio::main]
async fn on_processes() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    let harness =
        matches!(command, Command::Run(_) | Command::Replay(_) | Command::Export(_) | Command::Totals(_));
    match run(command).await {
        Ok(status) => status,
        Err(error) => {
            eprintln!("error: {error:#}");
            if harness { ExitCode::from(HARNESS_FAILED) } else { ExitCode::FAILURE }
        }
    }
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    // Before anything is started that a signal is to end.
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let work = async {
        match command {
            Command::Run(args) => scenario::run(args).await,
            Command::List(args) => {
                scenario::list(&args);
                Ok(ExitCode::SUCCESS)
            }
            Command::Replay(args) => scenario::replay(args).await,
            Command::Export(args) => scenario::export(&args),
            Command::Totals(args) => scenario::totals(&args),
            Command::Worker(PlayedWorker { host, endpoints }) => {
                played::run(endpoints, host).await.map(|()| ExitCode::SUCCESS)
            }
            Command::Bench(command) => tripod_bench::run(command).await.map(|()| ExitCode::SUCCESS),
        }
    };
    // A signal drops the work, and with it every cluster and its processes.
    tokio::select! {
        result = work => result,
        _ = interrupted.recv() => anyhow::bail!("interrupted; all processes are ended"),
        _ = terminated.recv() => anyhow::bail!("terminated; all processes are ended"),
    }
}
