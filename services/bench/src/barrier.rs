//! Rounds of a barrier, ours (replicated) beside jaxlib's (one process, in memory).

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use tripod_load::barrier;
use tripod_load::closed_loop::Plan;
use tripod_load::job::BenchJob;
use tripod_load::report::Report;

use super::jaxlib::JaxlibService;
use super::record::Record;
use super::stats::Goal;
use super::{Rounds, Section};
use tripod_processes::cluster::{Agent, Cluster, ClusterOptions, ReservedPorts};

const TASKS: usize = 32;
/// Agents that stand for as many hosts, with eight tasks each.
pub(super) const AGENTS: u16 = 4;

/// Where the tasks are attached. JAX attaches all tasks to the first address that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placement {
    Leader,
    /// Their calls share one stream.
    LeaderStream,
    Follower,
    Spread,
    /// Behind agents, each of which sends its tasks' calls by one stream.
    AgentsLeader,
    AgentsFollower,
    AgentsSpread,
    Jaxlib,
}

/// Runs every placement, `rounds` times; those behind agents with so many, if there are any.
pub(super) async fn run(rounds: Rounds, agents: u16, python: Option<&Path>) -> anyhow::Result<Section> {
    let plan = Plan::seconds(rounds.seconds)?;
    let mut cluster = Cluster::start(ClusterOptions::tripod()?).await?;
    let mut placements =
        vec![Placement::Leader, Placement::LeaderStream, Placement::Follower, Placement::Spread];
    if agents > 0 {
        placements.extend([Placement::AgentsLeader, Placement::AgentsFollower, Placement::AgentsSpread]);
    }
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
                (placement, _) => measure_ours(&mut cluster, placement, agents, plan).await?,
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
    Ok(Section { name: "barrier", markdown: table(&placements, &records, rounds, agents, &version) })
}

async fn measure_ours(
    cluster: &mut Cluster,
    placement: Placement,
    agents: u16,
    plan: Plan,
) -> anyhow::Result<Report> {
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
        Placement::AgentsLeader | Placement::AgentsFollower | Placement::AgentsSpread => Vec::new(),
    };
    let nodes: Vec<u64> = match placement {
        Placement::AgentsLeader => vec![leader],
        Placement::AgentsFollower => cluster.ids().filter(|node| *node != leader).take(1).collect(),
        Placement::AgentsSpread => cluster.ids().collect(),
        _ => Vec::new(),
    };
    // They run until the tasks have left.
    let agents = Agents::start(cluster, &nodes, agents, &job.name).await?;
    let report = match placement {
        Placement::LeaderStream => barrier::run_on(1, "tripod", &addresses, TASKS, plan).await,
        _ if !nodes.is_empty() => barrier::run("tripod", &agents.places(), TASKS, plan).await,
        _ => barrier::run("tripod", &addresses, TASKS, plan).await,
    };
    drop(agents);
    job.delete().await?;
    report
}

/// The agents of one measurement, until this is dropped.
struct Agents {
    agents: Vec<Agent>,
    // Fields drop in this order: ports and logs are given back when the processes are gone.
    _ports: Option<ReservedPorts>,
    _folder: tempfile::TempDir,
}

impl Agents {
    /// So many, each attached to one of `nodes`, in turn; none if there are no nodes.
    async fn start(cluster: &Cluster, nodes: &[u64], count: u16, job: &str) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("a directory for the agents' logs")?;
        let mut agents = Vec::new();
        if nodes.is_empty() {
            return Ok(Self { agents, _ports: None, _folder: folder });
        }
        let ports = ReservedPorts::reserve(count)?;
        for (port, node) in ports.range().zip(nodes.iter().cycle()) {
            let endpoint = cluster.endpoint(*node);
            let flags = ["--cluster", endpoint.as_str(), "--job", job].map(str::to_owned).to_vec();
            let log = folder.path().join(format!("agent-{port}.log"));
            agents.push(Agent::start(&format!("127.0.0.1:{port}"), flags, &log).await?);
        }
        Ok(Self { agents, _ports: Some(ports), _folder: folder })
    }

    fn places(&self) -> Vec<String> {
        self.agents.iter().map(|agent| agent.place().to_owned()).collect()
    }
}

impl Placement {
    /// Of the ratio of medians: we pay for durability on a quorum, and less where calls share frames.
    fn goal(self) -> Goal {
        Goal::AtMost(match self {
            Self::AgentsLeader => 1.1,
            Self::AgentsFollower => 1.6,
            Self::AgentsSpread => 2.1,
            Self::Leader | Self::LeaderStream | Self::Follower | Self::Spread | Self::Jaxlib => 3.0,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Leader => "tripod, all on the leader",
            Self::LeaderStream => "tripod, all on the leader by one stream",
            Self::Follower => "tripod, all on one follower",
            Self::Spread => "tripod, spread over the nodes",
            Self::AgentsLeader => "tripod, behind agents on the leader",
            Self::AgentsFollower => "tripod, behind agents on one follower",
            Self::AgentsSpread => "tripod, behind agents spread over the nodes",
            Self::Jaxlib => "jaxlib's own service",
        }
    }
}

fn table(placements: &[Placement], records: &[Record], rounds: Rounds, agents: u16, version: &str) -> String {
    let mut text =
        format!("{} rounds of {} s after a warm-up; {TASKS} tasks.", rounds.rounds, rounds.seconds);
    if agents > 0 {
        let _ = write!(text, " In rows with agents there are {agents}, each with as many of the tasks.");
    }
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
                format!("{ratio:.3}x | {}", placement.goal().cells(ratio, "x"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_has_all_columns_and_rows_behind_agents_have_goals_of_their_own() {
        let placements = [
            Placement::Leader,
            Placement::AgentsLeader,
            Placement::AgentsFollower,
            Placement::AgentsSpread,
            Placement::Jaxlib,
        ];
        let record = || {
            let mut record = Record::default();
            for samples in [&mut record.rate, &mut record.p50_us, &mut record.p99_us] {
                samples.push(1_000.0);
            }
            record
        };
        let records: Vec<Record> = placements.iter().map(|_| record()).collect();
        let text = table(&placements, &records, Rounds { rounds: 1, seconds: 1.0 }, AGENTS, "0.12");
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), 2 + placements.len());
        for row in &rows {
            assert_eq!(row.matches('|').count(), 10, "{row}");
        }
        for goal in ["<= 3x", "<= 1.1x", "<= 1.6x", "<= 2.1x"] {
            assert_eq!(text.matches(goal).count(), 1, "{text}");
        }
    }
}
