//! `tripod-chaos`: benchmarks against peers, on clusters that it starts and ends itself.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};
use tripod_chaos::bench::{self, BenchCommand};

/// Hard times for a cluster, measured.
#[derive(Parser)]
#[command(name = "tripod-chaos", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure, beside a peer in the same run.
    #[command(subcommand)]
    Bench(BenchCommand),
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { command: Command::Bench(command) } = Arguments::parse();
    match run(command).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: BenchCommand) -> anyhow::Result<()> {
    let mut terminated = signal(SignalKind::terminate())?;
    // A signal drops the run, and with it every cluster and its processes.
    tokio::select! {
        result = bench::run(command) => result,
        _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted; all processes are ended"),
        _ = terminated.recv() => anyhow::bail!("terminated; all processes are ended"),
    }
}
