//! A build of ours beside an earlier one: what a change costs.
//!
//! Tasks of the scheduler are measured by `tripod bench tasks`, in a process for each run: a cluster gives the played workers of
//! a run the addresses of those before, at which a process that is still there answers.

use std::fmt::Write as _;
use std::path::Path;

use tripod_load::barrier;
use tripod_load::closed_loop::Plan;
use tripod_load::job::BenchJob;
use tripod_load::kv::{self, Op, Target};
use tripod_load::report::Report;
use tripod_processes::cluster::{Cluster, ClusterOptions};

use super::record::Record;
use super::stats::Goal;
use super::{Rounds, Section};

const VALUE_BYTES: usize = 256;
const KEYS: u64 = 10_000;
/// TCP connections that the clients of one load share.
const CONNECTIONS: usize = 8;
/// Tasks that meet at a barrier.
const GANG: usize = 32;
/// Of the ratio to the earlier build: a change may cost this much.
const GOAL: Goal = Goal::AtLeast(0.98);

/// What is measured of both builds.
#[derive(Debug, Clone, Copy)]
enum Load {
    Kv(Op, usize, Target),
    /// Of [`GANG`] tasks, spread over the nodes.
    Barrier,
}

const LOADS: [Load; 6] = [
    Load::Kv(Op::Put, 1, Target::Leader),
    Load::Kv(Op::Put, 64, Target::Leader),
    Load::Kv(Op::Put, 256, Target::Leader),
    Load::Kv(Op::Get, 64, Target::Leader),
    Load::Kv(Op::Get, 64, Target::Any),
    Load::Barrier,
];

/// Runs every load on a cluster of each build in turn, `rounds` times.
pub(super) async fn run(rounds: Rounds, before: &Path) -> anyhow::Result<Section> {
    let plan = Plan::seconds(rounds.seconds)?;
    let clusters = [
        Cluster::start(ClusterOptions::tripod()?).await?,
        Cluster::start(ClusterOptions::tripod_at(before)?).await?,
    ];
    for cluster in &clusters {
        kv::fill(&kv_options(cluster, LOADS[0], plan).expect("the first load writes keys")).await?;
    }
    let mut records: Vec<[Record; 2]> = LOADS.iter().map(|_| Default::default()).collect();
    for round in 0..usize::try_from(rounds.rounds)? {
        for (row, load) in LOADS.iter().enumerate() {
            for turn in 0..clusters.len() {
                // Whoever goes first may find the disk busier; the order rotates.
                let which = (turn + round + row) % clusters.len();
                let report = load.run(&clusters[which], plan).await?;
                let rate = load.rate(&report);
                let of = ["this build", "the earlier one"][which];
                eprintln!(
                    "round {} of {}: {}, {of}: {rate:.0}/s, {} errors",
                    round + 1,
                    rounds.rounds,
                    load.name(),
                    report.errors
                );
                records[row][which].add(rate, &report);
            }
        }
    }
    Ok(Section { name: "builds", markdown: table(&records, rounds) })
}

impl Load {
    async fn run(self, cluster: &Cluster, plan: Plan) -> anyhow::Result<Report> {
        if let Some(options) = kv_options(cluster, self, plan) {
            return kv::run(&options).await;
        }
        let job = BenchJob::create(&cluster.endpoints(), GANG).await?;
        let report = barrier::run("tripod", &job.all_addresses(), GANG, plan).await;
        job.delete().await?;
        report
    }

    /// What counts, per second.
    fn rate(self, report: &Report) -> f64 {
        match self {
            Self::Kv(..) => report.ops_per_s,
            Self::Barrier => report.rounds_per_s.unwrap_or(f64::NAN),
        }
    }

    fn name(self) -> String {
        match self {
            Self::Kv(op, clients, target) => {
                let (op, target) = (format!("{op:?}").to_lowercase(), format!("{target:?}").to_lowercase());
                format!("{op}, {clients} clients, {target}")
            }
            Self::Barrier => format!("barriers of {GANG} tasks"),
        }
    }
}

fn kv_options(cluster: &Cluster, load: Load, plan: Plan) -> Option<kv::Options> {
    let Load::Kv(op, clients, target) = load else { return None };
    Some(kv::Options {
        system: cluster.system(),
        endpoints: cluster.endpoints(),
        op,
        target,
        clients,
        connections: CONNECTIONS,
        value_bytes: VALUE_BYTES,
        keys: KEYS,
        plan,
    })
}

fn table(records: &[[Record; 2]], rounds: Rounds) -> String {
    let mut text = format!(
        "{} rounds of {} s after a warm-up; values of {VALUE_BYTES} B, {KEYS} keys, {CONNECTIONS} connections; the \
         ratio is the median of those of the rounds.\n\n\
         | load | this build, /s | p99 ms | earlier build, /s | p99 ms | errors | ratio | goal | |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        rounds.rounds, rounds.seconds
    );
    for (load, [now, before]) in LOADS.iter().zip(records) {
        let ratio = now.rate.median_ratio(&before.rate);
        let _ = writeln!(
            text,
            "| {} | {:.0} | {:.2} | {:.0} | {:.2} | {} | {ratio:.3}x | {} |",
            load.name(),
            now.rate.median(),
            now.p99_us.median() / 1000.0,
            before.rate.median(),
            before.p99_us.median() / 1000.0,
            now.errors + before.errors,
            GOAL.cells(ratio, "x"),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_load_has_a_row_that_names_both_builds() {
        let records: Vec<[Record; 2]> = LOADS.iter().map(|_| Default::default()).collect();
        let text = table(&records, Rounds { rounds: 1, seconds: 1.0 });
        for name in ["put, 256 clients, leader", "get, 64 clients, any", "barriers of 32 tasks"] {
            assert!(text.contains(&format!("| {name} |")), "{text}");
        }
        assert!(text.contains("**missed**"), "what was not measured is not met: {text}");
    }
}
