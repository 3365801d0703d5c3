//! The leader is killed under writers: how long does nobody get an acknowledgement, and is every
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
/// Of the median pause by default, in seconds.
const GOAL: Goal = Goal::AtMost(1.1);
/// The same, with a heartbeat of 50 ms and elections after 150 to 300 ms.
const FAST_GOAL: Goal = Goal::AtMost(0.6);

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

/// Kills the leader of each system `trials` times, in turn.
pub(super) async fn run(trials: Trials, vs_etcd: bool) -> anyhow::Result<Section> {
    let mut rows = vec![
        Row { name: "tripod", goal: Some(GOAL) },
        Row { name: "tripod --timing fast", goal: Some(FAST_GOAL) },
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
            let pause = trial(cluster, number, record).await?;
            eprintln!(
                "trial {number} of {}: {name}: pause {:.0} ms",
                trials.trials,
                pause.as_secs_f64() * 1e3
            );
        }
    }
    Ok(Section { name: "failover", markdown: table(&rows, &records, trials) })
}

async fn trial(cluster: &mut Cluster, number: u64, record: &mut Record) -> anyhow::Result<Duration> {
    let system = cluster.system();
    let endpoints = cluster.endpoints();
    let leader = cluster.wait_for_leader().await?;
    let running = Writers::start(&system, &endpoints, &format!("failover/{number}"))?;
    running.wait_for(ENOUGH, Instant::now(), None, PATIENCE).await.context("before the kill")?;

    let killed_at = Instant::now();
    cluster.kill(leader)?;
    let dead = usize::try_from(leader - 1)?;
    running.wait_for(ENOUGH, killed_at, Some(dead), PATIENCE).await.context("after the leader was killed")?;
    let acknowledged = running.stop().await;
    let pause = writers::longest_gap(&acknowledged, killed_at).context("no write after the kill")?;

    cluster.restart(leader)?;
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

fn table(rows: &[Row], records: &[Record], trials: Trials) -> String {
    let mut text = format!(
        "{} kills of each system's leader by SIGKILL; default timing where none is named.\n\n\
         | system | pause s (median) | min..max | acknowledged | lost | goal | |\n|---|---|---|---|---|---|---|\n",
        trials.trials
    );
    for (Row { name, goal }, record) in rows.iter().zip(records) {
        let pause = record.pause_s.median();
        let goal = goal.map_or(" | ".into(), |goal| goal.cells(pause, " s"));
        let _ = writeln!(
            text,
            "| {name} | {pause:.2} | {:.2}..{:.2} | {} | {} | {goal} |",
            record.pause_s.min(),
            record.pause_s.max(),
            record.acknowledged,
            record.lost,
        );
    }
    text
}
