//! The leader is killed, or stands still, under writers: how long does nobody get an acknowledgement, and is every
//! acknowledged write there afterwards?

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::Instant;

use super::stats::{Goal, Samples};
use super::writers::{self, Writers};
use super::{Section, Trials};
use tripod_processes::cluster::{Cluster, ClusterOptions};

/// Acknowledgements of every writer before the kill, and of every surviving one after it.
const ENOUGH: usize = 50;
/// How long writers may be without them.
const PATIENCE: Duration = Duration::from_secs(60);
/// Of the median pause after a kill, in seconds, whatever the timing: its connections tell that the leader has ended.
const KILLED_GOAL: Goal = Goal::AtMost(0.05);
/// The same of a leader that stands still, about whom only the timers tell.
const STOPPED_GOAL: Goal = Goal::AtMost(1.1);
/// The same, with a heartbeat of 50 ms and elections after 150 to 300 ms.
const FAST_STOPPED_GOAL: Goal = Goal::AtMost(0.6);

/// What the leader gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LeaderSignal {
    /// SIGKILL: its process ends, and its connections with it.
    Kill,
    /// SIGSTOP: it keeps its connections and says nothing, as a machine without power does.
    Stop,
}

/// A system under test, in one row of the table.
struct Row {
    name: &'static str,
    goal: Option<Goal>,
}

#[derive(Default)]
struct Record {
    pause_s: Samples,
    acknowledged: usize,
    lost: usize,
}

/// Sends the leader of each system this signal `trials` times, in turn.
pub(super) async fn run(trials: Trials, signal: LeaderSignal, vs_etcd: bool) -> anyhow::Result<Section> {
    let [goal, fast_goal] = match signal {
        LeaderSignal::Kill => [KILLED_GOAL, KILLED_GOAL],
        LeaderSignal::Stop => [STOPPED_GOAL, FAST_STOPPED_GOAL],
    };
    let mut rows = vec![
        Row { name: "tripod", goal: Some(goal) },
        Row { name: "tripod --timing fast", goal: Some(fast_goal) },
    ];
    let fast = ClusterOptions::tripod()?.with_args(["--timing", "fast"]);
    let mut clusters = vec![Cluster::start(ClusterOptions::tripod()?).await?, Cluster::start(fast).await?];
    if vs_etcd {
        rows.push(Row { name: "etcd", goal: None });
        clusters.push(Cluster::start(ClusterOptions::etcd()?).await?);
    }
    let mut records: Vec<Record> = clusters.iter().map(|_| Record::default()).collect();
    for number in 1..=trials.trials {
        for ((cluster, record), Row { name, .. }) in clusters.iter_mut().zip(&mut records).zip(&rows) {
            let pause = trial(cluster, number, signal, record).await?;
            eprintln!(
                "trial {number} of {}: {name}: pause {:.0} ms",
                trials.trials,
                pause.as_secs_f64() * 1e3
            );
        }
    }
    let name = match signal {
        LeaderSignal::Kill => "failover",
        LeaderSignal::Stop => "failover-stop",
    };
    Ok(Section { name, markdown: table(&rows, &records, trials, signal) })
}

async fn trial(
    cluster: &mut Cluster,
    number: u64,
    signal: LeaderSignal,
    record: &mut Record,
) -> anyhow::Result<Duration> {
    let system = cluster.system();
    let endpoints = cluster.endpoints();
    let leader = cluster.wait_for_leader().await?;
    let running = Writers::start(&system, &endpoints, &format!("failover/{number}"))?;
    running.wait_for(ENOUGH, Instant::now(), None, PATIENCE).await.context("before the signal")?;

    let sent_at = Instant::now();
    match signal {
        LeaderSignal::Kill => cluster.kill(leader)?,
        LeaderSignal::Stop => cluster.pause(leader)?,
    }
    let dead = usize::try_from(leader - 1)?;
    let replaced = running.wait_for(ENOUGH, sent_at, Some(dead), PATIENCE).await;
    let acknowledged = running.stop().await;
    match signal {
        LeaderSignal::Kill => cluster.restart(leader)?,
        LeaderSignal::Stop => cluster.resume(leader)?,
    }
    replaced.context("after the signal")?;
    let pause = writers::longest_gap(&acknowledged, sent_at).context("no write after the signal")?;
    cluster.wait_until_ready().await?;
    let lost = writers::find_lost(&system, &endpoints, &acknowledged).await?;
    for key in lost.iter().take(3) {
        eprintln!("error: acknowledged but not there: {key}");
    }
    record.pause_s.push(pause.as_secs_f64());
    record.acknowledged += acknowledged.len();
    record.lost += lost.len();
    Ok(pause)
}

fn table(rows: &[Row], records: &[Record], trials: Trials, signal: LeaderSignal) -> String {
    let what = match signal {
        LeaderSignal::Kill => "kills of each system's leader by SIGKILL",
        LeaderSignal::Stop => "stops of each system's leader by SIGSTOP",
    };
    let mut text = format!(
        "{} {what}; default timing where none is named.\n\n\
         | system | pause s (median) | min..max | acknowledged | lost | goal | |\n|---|---|---|---|---|---|---|\n",
        trials.trials
    );
    for (Row { name, goal }, record) in rows.iter().zip(records) {
        let pause = record.pause_s.median();
        let goal = goal.map_or(" | ".into(), |goal| goal.cells(pause, " s"));
        let _ = writeln!(
            text,
            "| {name} | {pause:.3} | {:.3}..{:.3} | {} | {} | {goal} |",
            record.pause_s.min(),
            record.pause_s.max(),
            record.acknowledged,
            record.lost,
        );
    }
    text
}
