//! A node joins a cluster that holds many keys, and a snapshot of it is saved: how long does it take, and what do
//! those who write notice?

use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use tokio::process::Command;
use tokio::time::Instant;
use tripod_load::closed_loop::Plan;
use tripod_load::kv::{self, Op, Options, Target};

use super::{Goal, Row, operator};
use tripod_processes::cluster::{Cluster, find_tripod};

const VALUE_BYTES: usize = 256;
/// Clients that fill, and those whose latency is measured.
const FILLERS: usize = 64;
const WRITERS: usize = 8;
/// How long puts are measured at a time.
const MEASURED_S: f64 = 5.0;
/// How long when nothing else happens: long enough for a node to make a snapshot for itself, as it does while something
/// else happens, too.
const QUIET: Duration = Duration::from_secs(20);
/// Of a node that joins, in seconds.
const JOIN_GOAL: Goal = Goal::AtMost(30.0);
/// Of the p99 of puts meanwhile, beside that when nothing happens.
const RATIO_GOAL: Goal = Goal::AtMost(2.0);
/// The machine of the node that joins.
const SPARE: u64 = 4;

/// Measures both with so many keys in place.
pub(super) async fn run(keys: u64) -> anyhow::Result<Vec<Row>> {
    let mut cluster = operator::three_and(1).await?;
    let options = Options {
        system: cluster.system(),
        endpoints: (1..=3).map(|node| cluster.endpoint(node)).collect(),
        op: Op::Put,
        target: Target::Leader,
        clients: FILLERS,
        connections: 8,
        streams: 0,
        value_bytes: VALUE_BYTES,
        keys,
        plan: Plan::seconds(MEASURED_S)?,
    };
    eprintln!("writing {keys} keys");
    kv::fill(&options).await?;
    let options = Options { clients: WRITERS, ..options };

    let quiet_us = quiet(&options).await?;
    let (saved, saving_us) = while_puts(&options, save(&cluster)).await?;
    eprintln!("saving: {:.1} s, put p99 {saving_us} us instead of {quiet_us} us", saved.as_secs_f64());
    let quiet_again_us = quiet(&options).await?;
    let began = Instant::now();
    let (joined, joining_us) = while_puts(&options, async {
        operator::join(&mut cluster, SPARE).await?;
        Ok(began.elapsed())
    })
    .await?;
    eprintln!(
        "joining: {:.1} s, put p99 {joining_us} us instead of {quiet_again_us} us",
        joined.as_secs_f64()
    );

    let ratio = |busy: u64, quiet: u64| busy as f64 / quiet as f64;
    Ok(vec![
        Row::new("an empty node joins", joined.as_secs_f64(), " s", Some(JOIN_GOAL)),
        Row::new("put p99 meanwhile", ratio(joining_us, quiet_again_us), "x", Some(RATIO_GOAL)),
        Row::new("`snapshot save`", saved.as_secs_f64(), " s", None),
        Row::new("put p99 meanwhile", ratio(saving_us, quiet_us), "x", Some(RATIO_GOAL)),
    ])
}

/// As [`while_puts`] when nothing else happens.
async fn quiet(options: &Options) -> anyhow::Result<u64> {
    let nothing = async {
        tokio::time::sleep(QUIET).await;
        Ok(QUIET)
    };
    while_puts(options, nothing).await.map(|(_, worst_us)| worst_us)
}

/// Puts go on until `work` has ended, in measurements of some seconds; the worst p99 of them, in microseconds.
async fn while_puts(
    options: &Options,
    work: impl Future<Output = anyhow::Result<Duration>>,
) -> anyhow::Result<(Duration, u64)> {
    let ended = std::cell::Cell::new(None);
    let measure = async {
        let mut worst = 0;
        while ended.get().is_none() {
            let p99_us = kv::run(options).await?.p99_us;
            eprintln!("puts for {MEASURED_S} s: p99 {p99_us} us");
            worst = worst.max(p99_us);
        }
        anyhow::Ok(worst)
    };
    let work = async {
        let done = work.await;
        // Whether it went well or not, there is nothing more to measure.
        ended.set(Some(()));
        done
    };
    let (took, worst) = futures::future::join(work, measure).await;
    Ok((took?, worst?))
}

/// Saves a snapshot as an operator does; how long it took.
async fn save(cluster: &Cluster) -> anyhow::Result<Duration> {
    let folder = tempfile::tempdir().context("a directory for the snapshot")?;
    let began = Instant::now();
    let output = Command::new(find_tripod()?)
        .args(["snapshot", "save"])
        .arg(folder.path().join("bench.snap"))
        .args(["--endpoints", &cluster.endpoint(1), "--timeout", "600"])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("tripod snapshot save")?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(began.elapsed())
}
