//! Puts and gets, ours beside etcd's and those of torch's `TCPStore`.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use tripod_load::closed_loop::Plan;
use tripod_load::kv::{self, Op, Options, Target};
use tripod_load::report::Report;
use tripod_load::system::System;

use super::record::Record;
use super::stats::{Goal, Samples};
use super::tcpstore::{self, StoreRecords};
use super::{Rounds, Section, machine};
use tripod_processes::cluster::{Cluster, ClusterOptions, NodeProcess};

const VALUE_BYTES: usize = 256;
const KEYS: u64 = 10_000;
/// TCP connections that the clients of one load share.
const CONNECTIONS: usize = 8;

/// One row of the comparison.
#[derive(Clone, Copy)]
struct Load {
    op: Op,
    clients: usize,
    target: Target,
    /// Streams of calls that our clients share; etcd's go by calls of their own.
    streams: usize,
    /// Of the ratio to etcd.
    goal: Option<f64>,
}

const LOADS: [Load; 11] = [
    Load { op: Op::Put, clients: 1, target: Target::Leader, streams: 0, goal: Some(1.2) },
    Load { op: Op::Put, clients: 64, target: Target::Leader, streams: 0, goal: Some(1.5) },
    Load { op: Op::Put, clients: 256, target: Target::Leader, streams: 0, goal: Some(1.7) },
    Load { op: Op::Put, clients: 64, target: Target::Follower, streams: 0, goal: Some(0.8) },
    Load { op: Op::Put, clients: 64, target: Target::Leader, streams: 1, goal: Some(4.0) },
    Load { op: Op::Put, clients: 256, target: Target::Leader, streams: 1, goal: Some(6.0) },
    Load { op: Op::Get, clients: 1, target: Target::Leader, streams: 0, goal: None },
    Load { op: Op::Get, clients: 64, target: Target::Leader, streams: 0, goal: Some(2.0) },
    Load { op: Op::Get, clients: 64, target: Target::Any, streams: 0, goal: None },
    Load { op: Op::Get, clients: 256, target: Target::Leader, streams: 1, goal: None },
    Load { op: Op::LocalGet, clients: 64, target: Target::Any, streams: 0, goal: None },
];

/// What a system did under one load.
#[derive(Default)]
struct Measured {
    record: Record,
    /// Processor time of one operation, in microseconds: of all nodes and of the clients.
    cpu_us: Samples,
}

/// Runs every load on every system, `rounds` times; on the `TCPStore` of the torch that `python` has its own.
pub(super) async fn run(rounds: Rounds, vs_etcd: bool, python: Option<&Path>) -> anyhow::Result<Section> {
    let plan = Plan::seconds(rounds.seconds)?;
    let mut clusters = vec![Cluster::start(ClusterOptions::tripod()?).await?];
    if vs_etcd {
        clusters.push(Cluster::start(ClusterOptions::etcd()?).await?);
    }
    for cluster in &clusters {
        kv::fill(&options(cluster, LOADS[0], plan)).await?;
    }
    let mut records: Vec<Vec<Measured>> =
        LOADS.iter().map(|_| clusters.iter().map(|_| Measured::default()).collect()).collect();
    let mut stores = python.map(StoreRecords::new);
    for round in 0..usize::try_from(rounds.rounds)? {
        for (row, load) in LOADS.iter().enumerate() {
            for turn in 0..clusters.len() {
                // Whoever goes first may find the disk busier; the order rotates.
                let which = (turn + round + row) % clusters.len();
                let (report, cpu_us) = measure(&clusters[which], *load, plan).await?;
                eprintln!(
                    "round {} of {}: {} {} by {} clients{} at {}: {:.0} op/s, {} errors",
                    round + 1,
                    rounds.rounds,
                    report.system,
                    report.op,
                    report.clients,
                    if report.streams.is_some() { " on a stream" } else { "" },
                    report.target,
                    report.ops_per_s,
                    report.errors
                );
                records[row][which].record.add(report.ops_per_s, &report);
                records[row][which].cpu_us.push(cpu_us);
            }
        }
        if let Some(stores) = &mut stores {
            stores.measure(round, rounds, plan).await?;
        }
    }
    let names: Vec<&str> = clusters.iter().map(|cluster| cluster.system().name()).collect();
    let mut markdown = table(&names, &records, rounds);
    if let Some(stores) = &stores {
        let ours = |load: tcpstore::Ours| {
            let row = LOADS.iter().position(|row| {
                row.op == load.op && row.clients == load.clients && row.streams == load.streams
            });
            row.and_then(|row| records.get(row)?.first()).map(|measured| &measured.record)
        };
        markdown.push_str(&stores.table(&ours));
    }
    Ok(Section { name: "kv", markdown })
}

/// A round of one load, and what an operation took of processors.
async fn measure(cluster: &Cluster, load: Load, plan: Plan) -> anyhow::Result<(Report, f64)> {
    let mut edges = Vec::new();
    let options = options(cluster, load, plan);
    let report = kv::run_between(&options, &mut || edges.push(cpu_time(cluster))).await?;
    let mut edges = edges.into_iter();
    let used = match (edges.next(), edges.next()) {
        (Some(Ok(begun)), Some(Ok(ended))) => ended.saturating_sub(begun).as_secs_f64(),
        // Not on Linux, or a node ended within the window.
        _ => f64::NAN,
    };
    let cpu_us = used * 1e6 / report.ops.max(1) as f64;
    Ok((report, cpu_us))
}

/// Of all nodes, and of this program, which plays the clients.
fn cpu_time(cluster: &Cluster) -> anyhow::Result<Duration> {
    cluster
        .ids()
        .map(|node| cluster.process(node)?.cpu_time())
        .chain(std::iter::once_with(NodeProcess::own_cpu_time))
        .sum()
}

fn options(cluster: &Cluster, load: Load, plan: Plan) -> Options {
    Options {
        system: cluster.system(),
        endpoints: cluster.endpoints(),
        op: load.op,
        target: load.target,
        clients: load.clients,
        connections: CONNECTIONS,
        // Whatever is compared with us has none.
        streams: if matches!(cluster.system(), System::Tripod { .. }) { load.streams } else { 0 },
        value_bytes: VALUE_BYTES,
        keys: KEYS,
        plan,
    }
}

fn table(names: &[&str], records: &[Vec<Measured>], rounds: Rounds) -> String {
    let mut text = format!(
        "{} rounds of {} s after a warm-up; values of {VALUE_BYTES} B, {KEYS} keys, {CONNECTIONS} connections.",
        rounds.rounds, rounds.seconds
    );
    if names.len() > 1 {
        let version = machine::output("etcd", &["--version"]).unwrap_or_default();
        let _ = write!(text, " Peer: {version}.");
    }
    text.push_str(" CPU is the processor time of all nodes and of the clients for one operation, median.");
    text.push_str(
        "\n\n| load | clients | at | system | op/s (median) | min..max | p50 ms | p99 ms | CPU us | errors | ratio | \
         goal | |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (load, systems) in LOADS.iter().zip(records) {
        for (name, Measured { record, cpu_us }) in names.iter().zip(systems) {
            let compared = if *name == names[0] && systems.len() > 1 {
                let ratio = record.rate.median_ratio(&systems[1].record.rate);
                let goal = load.goal.map_or(" | ".into(), |goal| Goal::AtLeast(goal).cells(ratio, "x"));
                format!("{ratio:.3}x | {goal}")
            } else {
                " | | ".into()
            };
            let _ = writeln!(
                text,
                "| {}{} | {} | {} | {name} | {:.0} | {:.0}..{:.0} | {:.2} | {:.2} | {:.1} | {} | {compared} |",
                load.op,
                if load.streams > 0 { ", ours on one stream" } else { "" },
                load.clients,
                load.target,
                record.rate.median(),
                record.rate.min(),
                record.rate.max(),
                record.p50_us.median() / 1000.0,
                record.p99_us.median() / 1000.0,
                cpu_us.median(),
                record.errors,
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_has_all_columns() {
        let measured = |ops: f64| {
            let mut measured = Measured::default();
            measured.record.rate.push(ops);
            measured.record.p50_us.push(1_000.0);
            measured.record.p99_us.push(2_000.0);
            measured.cpu_us.push(84.0);
            measured
        };
        let rounds = Rounds { rounds: 1, seconds: 1.0 };
        for names in [vec!["tripod"], vec!["tripod", "etcd"]] {
            let records: Vec<Vec<Measured>> = LOADS
                .iter()
                .map(|_| (1..=names.len()).map(|n| measured(1000.0 / n as f64)).collect())
                .collect();
            let text = table(&names, &records, rounds);
            let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
            assert_eq!(rows.len(), 2 + LOADS.len() * names.len());
            for row in &rows {
                assert_eq!(row.matches('|').count(), 14, "{row}");
            }
            assert_eq!(text.contains("2.000x | >= 2x | met"), names.len() > 1, "{text}");
        }
    }
}
