//! A million tasks with the same number of live objects throughout: what nodes keep of tasks that are over.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tripod_load::closed_loop::Plan;
use tripod_load::tasks::{self, Options};

use super::Section;
use super::stats::Goal;
use tripod_processes::cluster::{Cluster, ClusterOptions};

/// A second half that is that much larger than the first, in percent, is growth and not noise.
const GROWTH_GOAL: Goal = Goal::AtMost(10.0);
/// Looks at memory and disk in a run.
const SAMPLES: u32 = 40;
/// The part of a run in which caches and the log before the first snapshots fill up.
const WARM_UP: f64 = 0.25;
/// A snapshot is made after so many commands: often enough that every part of a run has several.
const SNAPSHOT_EVERY: &str = "--snapshot-every-entries=2000";
/// How long the rate is measured before.
const TRIAL_S: f64 = 3.0;

/// How many tasks.
#[derive(Debug, Clone, Copy, Args)]
pub struct Amount {
    /// Tasks at least, one batch of 256 after the other by each of four drivers.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub tasks: u64,
}

impl Amount {
    pub(super) fn usual() -> Self {
        Self { tasks: 1_000_000 }
    }
}

/// A row of the table: what it is called, and where it comes from.
type Row = (&'static str, fn(&Sample) -> f64);

/// The largest node at one time.
#[derive(Debug, Clone, Copy)]
struct Sample {
    /// Of the run's time, from 0 to 1.
    at: f64,
    resident_mb: f64,
    snapshot_kb: f64,
}

/// Runs that many tasks, and looks at the nodes meanwhile.
pub(super) async fn run(amount: Amount) -> anyhow::Result<Section> {
    let nodes = || async { Cluster::start(ClusterOptions::tripod()?.with_args([SNAPSHOT_EVERY])).await };
    // The workers of the trial are gone without a word: those of the run have a cluster of their own.
    let cluster = nodes().await?;
    let mut options = Options {
        endpoints: cluster.endpoints(),
        job: "default".to_owned(),
        drivers: 4,
        workers: 4,
        batch: 256,
        slots: 256,
        plan: Plan::seconds(TRIAL_S)?,
    };
    let trial = tasks::run(&options).await.context("before the measured run")?;
    drop(cluster);
    let rate = trial.tasks_per_s.context("the trial did nothing")?;
    let seconds = (amount.tasks as f64 / rate * 1.3).max(TRIAL_S);
    eprintln!("{rate:.0} tasks a second; {} of them take some {seconds:.0} s", amount.tasks);
    let cluster = nodes().await?;
    options.endpoints = cluster.endpoints();
    options.plan = Plan::seconds(seconds)?;

    let (began, mut samples) = (Instant::now(), Vec::new());
    let mut ticks = interval(Duration::from_secs_f64(seconds / f64::from(SAMPLES)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut running = std::pin::pin!(tasks::run(&options));
    let report = loop {
        tokio::select! {
            report = &mut running => break report?,
            _ = ticks.tick() => {
                samples.push(sample(&cluster, began.elapsed().as_secs_f64() / seconds)?);
            }
        }
    };
    anyhow::ensure!(report.errors == 0, "{} batches failed: {:?}", report.errors, report.first_errors);
    let done = report.ops * options.batch as u64;
    Ok(Section { name: "tasks-flat", markdown: table(&samples, done, report.tasks_per_s.unwrap_or(0.0))? })
}

fn sample(cluster: &Cluster, at: f64) -> anyhow::Result<Sample> {
    let (mut resident, mut snapshot) = (0, 0);
    for node in cluster.ids() {
        resident = resident.max(cluster.process(node)?.resident_bytes()?);
        snapshot = snapshot.max(newest(&cluster.root().join(format!("node-{node}/snapshots")))?);
    }
    Ok(Sample { at, resident_mb: resident as f64 / 1e6, snapshot_kb: snapshot as f64 / 1e3 })
}

/// Bytes of the newest snapshot of a node; 0 while it has none. Files that go meanwhile do not count.
fn newest(directory: &Path) -> anyhow::Result<u64> {
    let files =
        std::fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let known = files.filter_map(|file| {
        let file = file.ok()?;
        // Only whole ones: others have another ending while they are written.
        let whole = file.path().extension().is_none_or(|ending| ending != "tmp" && ending != "part");
        let about = file.metadata().ok().filter(|about| whole && about.is_file())?;
        Some((about.modified().ok()?, about.len()))
    });
    Ok(known.max().map_or(0, |(_, bytes)| bytes))
}

fn table(samples: &[Sample], done: u64, rate: f64) -> anyhow::Result<String> {
    let part = |from: f64, to: f64| samples.iter().filter(move |sample| (from..to).contains(&sample.at));
    let middle = f64::midpoint(WARM_UP, 1.0);
    let mut text = format!(
        "{done} tasks at {rate:.0} a second by four drivers with 256 each under way; the largest node counts, the \
         first quarter is warm-up.\n\n| what | second quarter and half of the third | rest | growth | goal | |\n\
         |---|---|---|---|---|---|\n"
    );
    let figures: [Row; 2] = [
        ("resident MB", |sample| sample.resident_mb),
        ("kB of the newest snapshot", |sample| sample.snapshot_kb),
    ];
    for (what, figure) in figures {
        let first = median(part(WARM_UP, middle).map(figure));
        let second = median(part(middle, f64::INFINITY).map(figure));
        let (Some(first), Some(second)) = (first, second) else {
            anyhow::bail!("the run was too short for samples; next: give more --tasks");
        };
        let growth = (second / first - 1.0) * 100.0;
        let goal = GROWTH_GOAL.cells(growth, " %");
        let _ = writeln!(text, "| {what}, median | {first:.1} | {second:.1} | {growth:+.1} % | {goal} |");
    }
    Ok(text)
}

fn median(figures: impl Iterator<Item = f64>) -> Option<f64> {
    let mut figures: Vec<f64> = figures.filter(|figure| *figure > 0.0).collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(resident_mb: impl Fn(f64) -> f64) -> Vec<Sample> {
        let at = (0..SAMPLES).map(|place| f64::from(place) / f64::from(SAMPLES));
        at.map(|at| Sample { at, resident_mb: resident_mb(at), snapshot_kb: 8.0 }).collect()
    }

    #[test]
    fn growth_after_the_warm_up_misses_the_goal_and_growth_within_it_does_not() {
        let flat = table(&samples(|at| if at < WARM_UP { at } else { 100.0 }), 1, 1.0).unwrap();
        assert!(flat.contains("| resident MB, median | 100.0 | 100.0 | +0.0 % |"), "{flat}");
        let growing = table(&samples(|at| 100.0 * at), 1, 1.0).unwrap();
        assert_eq!(
            (flat.matches("**missed**").count(), growing.matches("**missed**").count()),
            (0, 1),
            "{growing}"
        );
        assert!(table(&samples(|at| at)[..5], 1, 1.0).is_err(), "too few");
    }

    #[test]
    fn the_newest_whole_snapshot_counts() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(newest(directory.path()).unwrap(), 0);
        std::fs::write(directory.path().join("1.snap"), [0; 9]).unwrap();
        std::fs::write(directory.path().join("2.tmp"), [0; 99]).unwrap();
        assert_eq!(newest(directory.path()).unwrap(), 9);
    }
}
