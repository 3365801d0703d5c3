//! A build of ours beside an earlier one: what a change costs.
//!
//! Tasks of the scheduler are measured by `tripod bench tasks` of this build, in a process for each run: a cluster gives the
//! played workers of a run the addresses of those before, at which a process that is still there answers.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, ensure};
use tokio::process::Command;
use tripod_load::barrier;
use tripod_load::closed_loop::Plan;
use tripod_load::job::BenchJob;
use tripod_load::kv::{self, Op, Target};
use tripod_load::report::Report;
use tripod_processes::cluster::{Cluster, ClusterOptions, find_tripod};

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
#[derive(Debug, Clone, Copy, PartialEq)]
enum Load {
    Kv(Op, usize, Target),
    /// Of [`GANG`] tasks, spread over the nodes.
    Barrier,
    /// Of a scheduler, with workers that are only played.
    Tasks,
}

const LOADS: [Load; 7] = [
    Load::Kv(Op::Put, 1, Target::Leader),
    Load::Kv(Op::Put, 64, Target::Leader),
    Load::Kv(Op::Put, 256, Target::Leader),
    Load::Kv(Op::Get, 64, Target::Leader),
    Load::Kv(Op::Get, 64, Target::Any),
    Load::Barrier,
    Load::Tasks,
];

/// Runs every load, or those that are named, on a cluster of each build in turn, `rounds` times.
pub(super) async fn run(rounds: Rounds, before: &Path, only: &[String]) -> anyhow::Result<Section> {
    let loads = picked(only)?;
    let plan = Plan::seconds(rounds.seconds)?;
    let clusters = [
        Cluster::start(ClusterOptions::tripod()?).await?,
        Cluster::start(ClusterOptions::tripod_at(before)?).await?,
    ];
    for cluster in &clusters {
        if let Some(options) = loads.iter().find_map(|load| kv_options(cluster, *load, plan)) {
            kv::fill(&options).await?;
        }
    }
    let mut records: Vec<[Record; 2]> = loads.iter().map(|_| Default::default()).collect();
    for round in 0..usize::try_from(rounds.rounds)? {
        for (row, load) in loads.iter().enumerate() {
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
    Ok(Section { name: "builds", markdown: table(&loads, &records, rounds) })
}

/// The loads of these names; all, if there are none.
fn picked(only: &[String]) -> anyhow::Result<Vec<Load>> {
    let names = LOADS.map(Load::word);
    if let Some(unknown) = only.iter().find(|name| !names.contains(name)) {
        anyhow::bail!("there is no load `{unknown}`; there are {}", names.join(", "));
    }
    let is_picked = |load: &Load| only.is_empty() || only.contains(&load.word());
    Ok(LOADS.into_iter().filter(is_picked).collect())
}

impl Load {
    async fn run(self, cluster: &Cluster, plan: Plan) -> anyhow::Result<Report> {
        if let Some(options) = kv_options(cluster, self, plan) {
            return kv::run(&options).await;
        }
        if self == Self::Tasks {
            return tasks(&cluster.endpoints(), plan).await;
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
            Self::Tasks => report.tasks_per_s.unwrap_or(f64::NAN),
        }
    }

    /// As it is written on command lines.
    fn word(self) -> String {
        match self {
            Self::Kv(op, clients, target) => {
                let op = format!("{op:?}").to_lowercase();
                let target = if target == Target::Any { "-any" } else { "" };
                format!("{op}-{clients}{target}")
            }
            Self::Barrier => "barriers".to_owned(),
            Self::Tasks => "tasks".to_owned(),
        }
    }

    fn name(self) -> String {
        match self {
            Self::Kv(op, clients, target) => {
                let (op, target) = (format!("{op:?}").to_lowercase(), format!("{target:?}").to_lowercase());
                format!("{op}, {clients} clients, {target}")
            }
            Self::Barrier => format!("barriers of {GANG} tasks"),
            Self::Tasks => "tasks of the scheduler".to_owned(),
        }
    }
}

/// What `tripod bench tasks` of this build measures of a cluster.
async fn tasks(endpoints: &[String], plan: Plan) -> anyhow::Result<Report> {
    let program = find_tripod()?;
    let mut command = Command::new(&program);
    command.args(["--endpoints", &endpoints.join(","), "bench", "tasks", "-o", "json"]);
    command.args(["--seconds", &plan.measured.as_secs_f64().to_string()]).kill_on_drop(true);
    let output = command.output().await.with_context(|| format!("cannot start {}", program.display()))?;
    ensure!(output.status.success(), "bench tasks: {}", String::from_utf8_lossy(&output.stderr).trim());
    serde_json::from_slice(&output.stdout).context("what bench tasks measured")
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
        streams: 0,
        value_bytes: VALUE_BYTES,
        keys: KEYS,
        plan,
    })
}

fn table(loads: &[Load], records: &[[Record; 2]], rounds: Rounds) -> String {
    let mut text = format!(
        "{} rounds of {} s after a warm-up; values of {VALUE_BYTES} B, {KEYS} keys, {CONNECTIONS} connections; the \
         ratio is the median of those of the rounds.\n\n\
         | load | this build, /s | p99 ms | earlier build, /s | p99 ms | errors | ratio | goal | |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        rounds.rounds, rounds.seconds
    );
    for (load, [now, before]) in loads.iter().zip(records) {
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
        let text = table(&LOADS, &records, Rounds { rounds: 1, seconds: 1.0 });
        for name in [
            "put, 256 clients, leader",
            "get, 64 clients, any",
            "barriers of 32 tasks",
            "tasks of the scheduler",
        ] {
            assert!(text.contains(&format!("| {name} |")), "{text}");
        }
        assert!(text.contains("**missed**"), "what was not measured is not met: {text}");
    }

    #[test]
    fn loads_are_picked_by_their_names_and_an_unknown_one_is_told_all() {
        let words = LOADS.map(Load::word);
        assert_eq!(words, ["put-1", "put-64", "put-256", "get-64", "get-64-any", "barriers", "tasks"]);
        assert_eq!(picked(&[]).unwrap(), LOADS);
        assert_eq!(picked(&["tasks".into(), "put-1".into()]).unwrap(), [LOADS[0], Load::Tasks]);
        let refused = picked(&["put".into()]).unwrap_err().to_string();
        assert!(refused.contains("get-64-any, barriers, tasks"), "{refused}");
    }
}
