//! Rounds of a barrier, ours (replicated) beside jaxlib's (one process, in memory).

use std::fmt::Write as _;
use std::path::Path;

use tripod_load::barrier;
use tripod_load::closed_loop::Plan;
use tripod_load::job::BenchJob;
use tripod_load::report::Report;

use super::jaxlib::JaxlibService;
use super::record::Record;
use super::stats::Goal;
use super::{Rounds, Section};
use tripod_processes::cluster::{Cluster, ClusterOptions};

const TASKS: usize = 32;
/// Of the ratio of medians: we pay for durability on a quorum.
const GOAL: Goal = Goal::AtMost(3.0);

/// Where the tasks are attached. JAX attaches all tasks to the first address that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placement {
    Leader,
    /// Their calls share one stream.
    LeaderStream,
    Follower,
    Spread,
    Jaxlib,
}

/// Runs every placement, `rounds` times.
pub(super) async fn run(rounds: Rounds, python: Option<&Path>) -> anyhow::Result<Section> {
    let plan = Plan::seconds(rounds.seconds)?;
    let mut cluster = Cluster::start(ClusterOptions::tripod()?).await?;
    let mut placements =
        vec![Placement::Leader, Placement::LeaderStream, Placement::Follower, Placement::Spread];
    if python.is_some() {
        placements.push(Placement::Jaxlib);
    }
    let mut records: Vec<Record> = placements.iter().map(|_| Record::default()).collect();
    let mut version = String::new();
    for round in 0..usize::try_from(rounds.rounds)? {
        for turn in 0..placements.len() {
            let which = (turn + round) % placements.len();
            let report = match (placements[which], python) {
                (Placement::Jaxlib, Some(python)) => {
                    let service = JaxlibService::start(python, TASKS).await?;
                    version.clone_from(&service.version);
                    barrier::run("jaxlib", std::slice::from_ref(&service.address), TASKS, plan).await?
                }
                (placement, _) => measure_ours(&mut cluster, placement, plan).await?,
            };
            eprintln!(
                "round {} of {}: {}: p50 {} us, {} errors",
                round + 1,
                rounds.rounds,
                placements[which].name(),
                report.p50_us,
                report.errors
            );
            records[which].add(report.rounds_per_s.unwrap_or(f64::NAN), &report);
        }
    }
    Ok(Section { name: "barrier", markdown: table(&placements, &records, rounds, &version) })
}

async fn measure_ours(cluster: &mut Cluster, placement: Placement, plan: Plan) -> anyhow::Result<Report> {
    let leader = cluster.wait_for_leader().await?;
    let job = BenchJob::create(&cluster.endpoints(), TASKS).await?;
    let on = |chosen: &dyn Fn(u64) -> bool| {
        let addresses = job.addresses.iter().filter(|(node, _)| chosen(**node));
        addresses.map(|(_, address)| address.clone()).collect::<Vec<String>>()
    };
    let addresses = match placement {
        Placement::Leader | Placement::LeaderStream => on(&|node| node == leader),
        Placement::Follower => on(&|node| node != leader).into_iter().take(1).collect(),
        Placement::Spread | Placement::Jaxlib => job.all_addresses(),
    };
    let report = match placement {
        Placement::LeaderStream => barrier::run_on(1, "tripod", &addresses, TASKS, plan).await,
        _ => barrier::run("tripod", &addresses, TASKS, plan).await,
    };
    job.delete().await?;
    report
}

impl Placement {
    fn name(self) -> &'static str {
        match self {
            Self::Leader => "tripod, all on the leader",
            Self::LeaderStream => "tripod, all on the leader by one stream",
            Self::Follower => "tripod, all on one follower",
            Self::Spread => "tripod, spread over the nodes",
            Self::Jaxlib => "jaxlib's own service",
        }
    }
}

fn table(placements: &[Placement], records: &[Record], rounds: Rounds, version: &str) -> String {
    let mut text =
        format!("{} rounds of {} s after a warm-up; {TASKS} tasks.", rounds.rounds, rounds.seconds);
    let peer = placements.iter().position(|placement| *placement == Placement::Jaxlib);
    if peer.is_some() {
        let _ = write!(text, " Peer: jaxlib {version}; the ratio is that of the p50 of a call.");
    }
    text.push_str(
        "\n\n| system | barriers/s (median) | p50 ms (median) | min..max | p99 ms | errors | ratio | goal | |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for (placement, record) in placements.iter().zip(records) {
        let compared = match peer {
            Some(peer) if *placement != Placement::Jaxlib => {
                let ratio = record.p50_us.median_ratio(&records[peer].p50_us);
                format!("{ratio:.3}x | {}", GOAL.cells(ratio, "x"))
            }
            _ => " | | ".into(),
        };
        let _ = writeln!(
            text,
            "| {} | {:.0} | {:.2} | {:.2}..{:.2} | {:.2} | {} | {compared} |",
            placement.name(),
            record.rate.median(),
            record.p50_us.median() / 1000.0,
            record.p50_us.min() / 1000.0,
            record.p50_us.max() / 1000.0,
            record.p99_us.median() / 1000.0,
            record.errors,
        );
    }
    text
}
