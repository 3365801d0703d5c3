//! A million puts: what they write, what they leave on the disk, and what a restart makes of it.

use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use tokio::time::Instant;
use tripod_load::closed_loop::Plan;
use tripod_load::kv::{self, Op, Options, Target};

use super::Section;
use super::restart::{Restarts, kill_and_restart};
use super::stats::Goal;
use tripod_processes::cluster::{Cluster, ClusterOptions};

const VALUE_BYTES: usize = 256;
/// Bytes that all nodes together write for a put.
const WRITTEN_GOAL: Goal = Goal::AtMost(3_000.0);
/// Megabytes (10^6 bytes) in the data directory of a node.
const HELD_GOAL: Goal = Goal::AtMost(400.0);
/// Of every restart, in seconds.
const RESTART_GOAL: Goal = Goal::AtMost(2.0);

/// The unit in which the kernel tells what a file takes, whatever the file system's own is.
const BLOCK_BYTES: u64 = 512;

struct Measured {
    name: &'static str,
    puts_per_s: f64,
    /// By all nodes together.
    bytes_per_put: f64,
    /// The node that holds most.
    held_mb: f64,
    restarts: Restarts,
}

/// How much is written, by 64 clients.
#[derive(Debug, Clone, Copy, Args)]
pub struct Amount {
    /// Different keys. The default is what the benchmark of keys has.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub keys: u64,
    /// How often each key is written, one round after the other.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub times: u64,
}

impl Amount {
    fn puts(self) -> u64 {
        self.keys.saturating_mul(self.times)
    }
}

/// Writes that much to each system.
pub(super) async fn run(amount: Amount, vs_etcd: bool) -> anyhow::Result<Section> {
    let mut measured = vec![measure(ClusterOptions::tripod()?, amount).await?];
    if vs_etcd {
        measured.push(measure(ClusterOptions::etcd()?, amount).await?);
    }
    Ok(Section { name: "disk", markdown: table(&measured, amount) })
}

async fn measure(options: ClusterOptions, amount: Amount) -> anyhow::Result<Measured> {
    let mut cluster = Cluster::start(options).await?;
    let name = cluster.system().name();
    let options = Options {
        system: cluster.system(),
        endpoints: cluster.endpoints(),
        op: Op::Put,
        target: Target::Leader,
        clients: 64,
        connections: 8,
        streams: 0,
        value_bytes: VALUE_BYTES,
        keys: amount.keys,
        plan: Plan::seconds(1.0)?,
    };
    let (before, began) = (written(&cluster)?, Instant::now());
    for time in 1..=amount.times {
        kv::fill(&options).await?;
        if time % amount.times.div_ceil(10) == 0 {
            eprintln!("{name}: {} of {} puts", time * amount.keys, amount.puts());
        }
    }
    let puts = amount.puts() as f64;
    let puts_per_s = puts / began.elapsed().as_secs_f64();
    let bytes_per_put = (written(&cluster)? - before) as f64 / puts;
    let held = cluster.ids().map(|node| held_bytes(&cluster.root().join(format!("node-{node}"))));
    let held_mb = held.collect::<anyhow::Result<Vec<u64>>>()?.into_iter().max().unwrap_or(0) as f64 / 1e6;

    let restarts = kill_and_restart(&mut cluster, &kv::key(amount.keys - 1)).await?;
    Ok(Measured { name, puts_per_s, bytes_per_put, held_mb, restarts })
}

/// Bytes that all nodes together have written.
fn written(cluster: &Cluster) -> anyhow::Result<u64> {
    cluster.ids().map(|node| cluster.process(node)?.written_bytes()).sum()
}

/// Bytes that all files below a directory take on the disk. A file that goes meanwhile does not count.
pub(super) fn held_bytes(directory: &Path) -> anyhow::Result<u64> {
    let entries =
        std::fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut bytes = 0;
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {}", directory.display()))?;
        bytes += match entry.metadata() {
            Ok(found) if found.is_dir() => held_bytes(&entry.path())?,
            Ok(found) => found.blocks() * BLOCK_BYTES,
            Err(_) => 0,
        };
    }
    Ok(bytes)
}

fn table(measured: &[Measured], amount: Amount) -> String {
    let mut text = format!(
        "{} puts of {VALUE_BYTES} B by 64 clients at the leader, {} keys in turn; the slowest node (the \
         one that holds most) counts.\n\n| what | system | figure | goal | |\n|---|---|---|---|---|\n",
        amount.puts(),
        amount.keys
    );
    for (position, system) in measured.iter().enumerate() {
        let rows = [
            ("puts per second", system.puts_per_s, None, ""),
            ("bytes written per put, all nodes together", system.bytes_per_put, Some(WRITTEN_GOAL), " B"),
            ("MB in the data directory", system.held_mb, Some(HELD_GOAL), " MB"),
            (
                "s from start to serving, one follower",
                system.restarts.one.as_secs_f64(),
                Some(RESTART_GOAL),
                " s",
            ),
            (
                "s from start to serving, all nodes at once",
                system.restarts.all.as_secs_f64(),
                Some(RESTART_GOAL),
                " s",
            ),
        ];
        for (what, figure, goal, unit) in rows {
            let goal = goal.filter(|_| position == 0);
            let goal = goal.map_or(" | ".into(), |goal| goal.cells(figure, unit));
            let _ = writeln!(text, "| {what} | {} | {figure:.2} | {goal} |", system.name);
        }
    }
    text
}
