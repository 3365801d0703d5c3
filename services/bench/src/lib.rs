//! Benchmarks: three nodes of ours beside three of a peer, in the same run.
//!
//! Absolute figures of a shared machine say little. What is compared is the ratio within one round,
//! in which each system ran the same load, in rotating order; reported is the median of those ratios.
//!
//! It does not know how load is made (`tripod-load`) nor how processes are started and ended (`tripod-processes`).

mod agent;
mod barrier;
mod builds;
mod disk;
mod document;
mod failover;
mod gang;
mod jaxlib;
mod kv;
mod machine;
mod membership;
mod memory;
mod mindspore;
mod record;
mod restart;
mod stats;
mod tasks;
mod tcpstore;
mod writers;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use disk::Amount;
use membership::Amounts;

/// What is compared.
#[derive(Debug, Clone, Subcommand)]
pub enum BenchCommand {
    /// Puts and gets by several numbers of clients.
    Kv {
        #[command(flatten)]
        rounds: Rounds,
        /// Compare with etcd, which must be installed.
        #[arg(long)]
        vs_etcd: bool,
        /// Compare with the `TCPStore` of the torch that this Python interpreter has.
        #[arg(long, value_name = "PYTHON")]
        vs_tcpstore: Option<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
    /// Rounds of a barrier over 32 tasks.
    Barrier {
        #[command(flatten)]
        rounds: Rounds,
        /// Also with the tasks behind so many agents, which are attached to the leader, to a follower, and to all nodes in
        /// turn; 0: without them.
        #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=32))]
        agents: u16,
        /// Compare with the service of the jaxlib that this Python interpreter has.
        #[arg(long, value_name = "PYTHON")]
        vs_jaxlib: Option<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
    /// The pause that writers see when the leader is killed, and what they find afterwards.
    Failover {
        #[command(flatten)]
        trials: Trials,
        /// What the leader gets.
        #[arg(long, value_name = "SIGNAL", value_enum, default_value = "kill")]
        signal: failover::LeaderSignal,
        /// Compare with etcd, which must be installed.
        #[arg(long)]
        vs_etcd: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Memory of a node that holds 100,000 keys, and how soon it serves after a restart.
    Memory {
        /// Compare with etcd, which must be installed.
        #[arg(long)]
        vs_etcd: bool,
        #[command(flatten)]
        output: Output,
    },
    /// What a million puts write and leave on disk, and how soon a node serves after a restart.
    Disk {
        #[command(flatten)]
        amount: Amount,
        /// Compare with etcd, which must be installed.
        #[arg(long)]
        vs_etcd: bool,
        #[command(flatten)]
        output: Output,
    },
    /// What a call through an agent costs beside a direct one, and what the agent itself needs.
    Agent {
        #[command(flatten)]
        rounds: Rounds,
        #[command(flatten)]
        output: Output,
    },
    /// Tasks behind agents: their start, their heartbeats, and the death of the leader.
    ///
    /// Without --tasks and --agents: 2,000 tasks behind 32 agents that are processes.
    ///
    /// With both, this program plays the agents, and nodes see what many hosts would be: each agent has an address, a TCP
    /// connection, a stream of calls (tripod.v1.Calls) and a session of its own, and what its tasks say are ops of that
    /// stream. All tasks register, meet at a barrier, beat for some seconds, meet again and leave. An agent that loses its
    /// stream opens one at another node and sends what is not answered again. A task that is refused or declared dead fails
    /// the run.
    ///
    /// For example: tripod-chaos bench gang --tasks 10000 --agents 1250 --kill-leader
    Gang {
        #[command(flatten)]
        amounts: gang::Amounts,
        #[command(flatten)]
        output: Output,
    },
    /// Members that change: replacement of a dead leader, hand-overs, three nodes to five and back, joining and saving
    /// with many keys.
    Membership {
        #[command(flatten)]
        amounts: Amounts,
        #[command(flatten)]
        output: Output,
    },
    /// A million tasks of the scheduler with the same number of live objects: whether nodes and snapshots grow.
    Tasks {
        #[command(flatten)]
        amount: tasks::Amount,
        #[command(flatten)]
        output: Output,
    },
    /// Nodes of MindSpore by the thousand: their registration, heartbeats and events, and the death of the leader.
    Mindspore {
        #[command(flatten)]
        amounts: mindspore::Amounts,
        /// Compare with the scheduler of the MindSpore that this Python interpreter has, 2.10.0 or another from 2.7 on.
        #[arg(long, value_name = "PYTHON")]
        vs_mindspore: Option<PathBuf>,
        /// The same for nodes of the parameter server, whose scheduler is in the library of 2.0.0 and in no later one.
        #[arg(long, value_name = "PYTHON")]
        vs_parameter_server: Option<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
    /// This build beside an earlier one: what a change costs.
    Builds {
        /// The `tripod` of the earlier build, in release mode too.
        #[arg(long, value_name = "BINARY")]
        before: PathBuf,
        /// Only these loads: put-1, put-64, put-256, get-64, get-64-any, barriers, tasks
        #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
        only: Vec<String>,
        #[command(flatten)]
        rounds: Rounds,
        #[command(flatten)]
        output: Output,
    },
    /// All of them but `mindspore` and `builds`, with all peers.
    All {
        #[command(flatten)]
        rounds: Rounds,
        #[command(flatten)]
        trials: Trials,
        /// A Python interpreter that has jaxlib; without it, the newest one that `cargo xtask test` set up.
        #[arg(long, value_name = "PYTHON")]
        vs_jaxlib: Option<PathBuf>,
        /// A Python interpreter that has torch; without it, nothing is compared with its `TCPStore`.
        #[arg(long, value_name = "PYTHON")]
        vs_tcpstore: Option<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
}

/// How often and how long.
#[derive(Debug, Clone, Copy, Args)]
pub struct Rounds {
    /// Times that each system runs each load.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: u64,
    /// Length of one measurement, without its warm-up.
    #[arg(long, default_value_t = 3.0)]
    pub seconds: f64,
}

/// How often.
#[derive(Debug, Clone, Copy, Args)]
pub struct Trials {
    /// Times that the leader of each system is killed.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..))]
    pub trials: u64,
}

/// Where the result goes, beside stdout.
#[derive(Debug, Clone, Args)]
pub struct Output {
    /// Replace the sections of this document that the run measured.
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
}

/// A finished part of the document.
struct Section {
    /// Names the markers that it stands between.
    name: &'static str,
    markdown: String,
}

/// Runs a benchmark; prints its tables on stdout and progress on stderr.
///
/// # Errors
/// A program is missing, a cluster does not come up, or the document has no place for a section.
pub async fn run(command: BenchCommand) -> anyhow::Result<()> {
    let machine = machine::describe();
    let (mut sections, output) = match command {
        BenchCommand::Kv { rounds, vs_etcd, vs_tcpstore, output } => {
            (vec![kv::run(rounds, vs_etcd, vs_tcpstore.as_deref()).await?], output)
        }
        BenchCommand::Barrier { rounds, agents, vs_jaxlib, output } => {
            (vec![barrier::run(rounds, agents, vs_jaxlib.as_deref()).await?], output)
        }
        BenchCommand::Failover { trials, signal, vs_etcd, output } => {
            (vec![failover::run(trials, signal, vs_etcd).await?], output)
        }
        BenchCommand::Memory { vs_etcd, output } => (vec![memory::run(vs_etcd).await?], output),
        BenchCommand::Disk { amount, vs_etcd, output } => (vec![disk::run(amount, vs_etcd).await?], output),
        BenchCommand::Agent { rounds, output } => (vec![agent::run(rounds).await?], output),
        BenchCommand::Gang { amounts, output } => (vec![gang::run(amounts).await?], output),
        BenchCommand::Membership { amounts, output } => (vec![membership::run(amounts).await?], output),
        BenchCommand::Tasks { amount, output } => (vec![tasks::run(amount).await?], output),
        BenchCommand::Mindspore { amounts, vs_mindspore, vs_parameter_server, output } => {
            let (dynamic, parameter_server) = (vs_mindspore.as_deref(), vs_parameter_server.as_deref());
            (vec![mindspore::run(amounts, mindspore::Peers { dynamic, parameter_server }).await?], output)
        }
        BenchCommand::Builds { before, only, rounds, output } => {
            (vec![builds::run(rounds, &before, &only).await?], output)
        }
        BenchCommand::All { rounds, trials, vs_jaxlib, vs_tcpstore, output } => {
            (all(rounds, trials, vs_jaxlib, vs_tcpstore).await?, output)
        }
    };
    sections.push(Section { name: "machine", markdown: machine });
    for section in &sections {
        println!("\n{}", section.markdown);
    }
    if let Some(path) = output.write {
        document::update(&path, &sections)?;
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}

async fn all(
    rounds: Rounds,
    trials: Trials,
    python: Option<PathBuf>,
    torch: Option<PathBuf>,
) -> anyhow::Result<Vec<Section>> {
    // What is missing is said before an hour of measuring, not after it.
    let python = python.map_or_else(jaxlib::find_python, Ok)?;
    tripod_processes::cluster::find_etcd()?;
    Ok(vec![
        kv::run(rounds, true, torch.as_deref()).await?,
        barrier::run(rounds, barrier::AGENTS, Some(&python)).await?,
        failover::run(trials, failover::LeaderSignal::Kill, true).await?,
        failover::run(trials, failover::LeaderSignal::Stop, true).await?,
        memory::run(true).await?,
        disk::run(Amount { keys: 10_000, times: 100 }, true).await?,
        agent::run(rounds).await?,
        gang::run(gang::Amounts::usual()).await?,
        membership::run(Amounts::usual()).await?,
        tasks::run(tasks::Amount::usual()).await?,
    ])
}
