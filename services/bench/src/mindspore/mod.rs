//! Nodes of MindSpore by the thousand, beside MindSpore's own schedulers: how soon they are a cluster, what they cost while
//! they only beat, how soon all hear of an event, and what they notice of a leader that dies.

mod dynamic;
mod failover;
mod idle;
mod server;
mod upstream;

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tripod_load::mindspore::{Job, Size};
use tripod_processes::cluster::{Cluster, ClusterOptions};
use tripod_processes::open_files;

use super::Section;
use super::stats::Samples;
use upstream::{Scheduled, Upstream};

/// How long an answer may take: everybody comes at once, on few cores.
const LIMIT: Duration = Duration::from_secs(60);
/// Nodes that connect at the same time: more would wait in the kernel's queue, and be sent away from it.
const AT_ONCE: usize = 256;
/// Open files besides those of nodes.
const FILES_BESIDE: u64 = 512;

/// How many of what.
#[derive(Debug, Clone, Copy, Args)]
pub struct Amounts {
    /// Nodes of the parameter server; 0: it is left out.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(0..=4_000))]
    pub nodes: u32,
    /// Workers of the dynamic cluster.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub workers: u32,
    /// Connections that say nothing.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub connections: u32,
    /// Times that all register.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub rounds: u64,
    /// Times that the leader is killed.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    pub trials: u64,
    /// How long the workers only beat while the leader's processor time is taken, in seconds.
    #[arg(long, default_value_t = 20.0)]
    pub rest_seconds: f64,
}

impl Amounts {
    /// Sockets of one process: two connections for each worker; a listener and two for each node, which is also how many
    /// the leader has; those that say nothing all go to one node.
    fn files(&self) -> u64 {
        let nodes = 3 * u64::from(self.nodes);
        nodes.max(2 * u64::from(self.workers)).max(self.connections.into()) + FILES_BESIDE
    }
}

/// Interpreters whose MindSpore is compared with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peers<'a> {
    /// For the scheduler of the dynamic cluster.
    pub(super) dynamic: Option<&'a Path>,
    /// For that of the parameter server.
    pub(super) parameter_server: Option<&'a Path>,
}

/// A line of the table.
struct Row {
    what: String,
    figure: String,
    /// Of MindSpore's own scheduler.
    peer: String,
    /// Of the rounds' ratios, the median.
    ratio: String,
}

impl Row {
    fn new(what: String, figure: String) -> Self {
        Self { what, figure, peer: String::new(), ratio: String::new() }
    }
}

/// Runs everything once, with so many rounds of what is compared.
pub(super) async fn run(amounts: Amounts, peers: Peers<'_>) -> anyhow::Result<Section> {
    open_files::raise_for(amounts.files())?;
    let mut cluster = Cluster::start(ClusterOptions::tripod()?.with_mindspore()).await?;
    let mut rows = Vec::new();
    let version = registrations(&cluster, amounts, peers.dynamic, &mut rows).await?;
    if amounts.nodes > 0 {
        rows.extend(server::run(&cluster, amounts.nodes, amounts.rounds, peers.parameter_server).await?);
    }
    rows.extend(idle::run(&cluster, amounts.connections).await?);
    rows.extend(failover::run(&mut cluster, amounts.trials).await?);
    Ok(Section { name: "mindspore", markdown: table(&rows, amounts, version.as_deref()) })
}

/// All workers register, in turn at nodes of ours and at MindSpore's own scheduler; those of ours beat behind the last
/// round.
async fn registrations(
    cluster: &Cluster,
    amounts: Amounts,
    python: Option<&Path>,
    rows: &mut Vec<Row>,
) -> anyhow::Result<Option<String>> {
    let (mut ours, mut theirs) = (Samples::default(), Samples::default());
    let mut version = None;
    for round in 1..=amounts.rounds {
        let mut measure_ours = async || -> anyhow::Result<()> {
            let job = job(cluster, &format!("dynamic-{round}"), amounts.workers, 0).await?;
            let (workers, took) = dynamic::form(&job.addresses, amounts.workers).await?;
            eprintln!(
                "round {round} of {}: {} workers at tripod: {:.2} s",
                amounts.rounds,
                workers.len(),
                took
            );
            ours.push(took);
            if round == amounts.rounds {
                rows.extend(dynamic::rest(cluster, workers, amounts.rest_seconds).await?);
            }
            job.delete().await
        };
        // Whoever goes first may find the machine busier; the order rotates.
        if round % 2 == 1 {
            measure_ours().await?;
        }
        if let Some(python) = python {
            let upstream = Upstream::start(python, Scheduled::Dynamic { workers: amounts.workers }).await?;
            let (workers, took) = dynamic::form(&upstream.addresses(), amounts.workers).await?;
            eprintln!(
                "round {round} of {}: {} workers at mindspore: {took:.2} s",
                amounts.rounds,
                workers.len()
            );
            theirs.push(took);
            version = Some(upstream.version.clone());
        }
        if round % 2 == 0 {
            measure_ours().await?;
        }
    }
    let what = format!("{} workers: from the first connection until all are a cluster", amounts.workers);
    let figure = format!("{:.2} s ({:.2}..{:.2})", ours.median(), ours.min(), ours.max());
    let mut row = Row::new(what, figure);
    if version.is_some() {
        row.peer = format!("{:.2} s", theirs.median());
        row.ratio = format!("{:.2}x", ours.median_ratio(&theirs));
    }
    rows.insert(0, row);
    Ok(version)
}

/// A job of its own for each part.
async fn job(cluster: &Cluster, name: &str, workers: u32, servers: u32) -> anyhow::Result<Job> {
    let size = Size { workers, servers };
    Job::create(cluster.endpoints(), &format!("bench-{name}"), size)
        .await
        .context("a job for nodes of MindSpore")
}

fn table(rows: &[Row], amounts: Amounts, version: Option<&str>) -> String {
    let peer = version.map_or("Nothing to compare with (`--vs-mindspore PYTHON`).".to_owned(), |version| {
        format!("Peer: the scheduler of MindSpore {version}; the ratio is the median of those of the rounds.")
    });
    let mut text = format!(
        "Played nodes in one process; {} rounds, {} kills of the leader. {peer}\n\n\
         | figure | tripod | mindspore | ratio |\n|---|---|---|---|\n",
        amounts.rounds, amounts.trials
    );
    for Row { what, figure, peer, ratio } in rows {
        let _ = writeln!(text, "| {what} | {figure} | {peer} | {ratio} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const AMOUNTS: Amounts = Amounts {
        nodes: 1_000,
        workers: 5_000,
        connections: 10_000,
        rounds: 3,
        trials: 5,
        rest_seconds: 20.0,
    };

    #[test]
    fn the_part_with_the_most_sockets_decides_how_many_files_must_be_open() {
        assert_eq!(AMOUNTS.files(), 10_000 + FILES_BESIDE);
        assert_eq!(Amounts { nodes: 4_000, ..AMOUNTS }.files(), 12_000 + FILES_BESIDE);
        assert_eq!(Amounts { workers: 9_000, ..AMOUNTS }.files(), 18_000 + FILES_BESIDE);
    }

    #[test]
    fn a_table_says_with_whom_it_compares_or_that_it_does_not() {
        let rows = [Row::new("so soon".into(), "1 s".into())];
        let alone = table(&rows, AMOUNTS, None);
        assert!(
            alone.contains("Nothing to compare with") && alone.contains("| so soon | 1 s |  |  |"),
            "{alone}"
        );
        assert!(table(&rows, AMOUNTS, Some("2.10.0")).contains("the scheduler of MindSpore 2.10.0"));
    }
}
