//! 100,000 keys: what they cost in memory, and at a restart.

use std::fmt::Write as _;
use std::time::Duration;

use tokio::time::Instant;
use tripod_load::closed_loop::Plan;
use tripod_load::kv::{self, Op, Options, Target};

use super::Section;
use super::restart::{Restarts, kill_and_restart, until_serving};
use super::stats::Goal;
use tripod_processes::cluster::{Cluster, ClusterOptions};

const KEYS: u64 = 100_000;
const VALUE_BYTES: usize = 256;
/// Of the resident memory of the largest node, in megabytes (10^6 bytes).
const RESIDENT_GOAL: Goal = Goal::AtMost(200.0);
/// Of every restart, in seconds.
const RESTART_GOAL: Goal = Goal::AtMost(3.0);

/// When memory is looked at again after a restart.
const SETTLED: Duration = Duration::from_secs(5);

struct Measured {
    name: &'static str,
    /// By node, after the fill.
    resident_mb: Vec<f64>,
    /// By node, after all of them were killed and restarted, at the moment when the last one serves:
    /// what recovery used and has not given back yet is in it.
    resident_serving_mb: Vec<f64>,
    /// The same, [`SETTLED`] later.
    resident_after_mb: Vec<f64>,
    restarts: Restarts,
}

/// Fills and restarts each system.
pub(super) async fn run(vs_etcd: bool) -> anyhow::Result<Section> {
    let mut measured = vec![measure(ClusterOptions::tripod()?).await?];
    if vs_etcd {
        measured.push(measure(ClusterOptions::etcd()?).await?);
    }
    Ok(Section { name: "memory", markdown: table(&measured) })
}

async fn measure(options: ClusterOptions) -> anyhow::Result<Measured> {
    let mut cluster = Cluster::start(options).await?;
    let system = cluster.system();
    let name = system.name();
    eprintln!("{name}: writing {KEYS} keys");
    let options = Options {
        system: system.clone(),
        endpoints: cluster.endpoints(),
        op: Op::Put,
        target: Target::Leader,
        clients: 8,
        connections: 8,
        streams: 0,
        value_bytes: VALUE_BYTES,
        keys: KEYS,
        plan: Plan::seconds(1.0)?,
    };
    kv::fill(&options).await?;
    let last_key = kv::key(KEYS - 1);
    for address in cluster.endpoints() {
        // A read that sees the last write: this node holds them all.
        until_serving(&system, &address, &last_key, Instant::now()).await?;
    }
    let resident_mb = resident(&cluster)?;

    let restarts = kill_and_restart(&mut cluster, &last_key).await?;
    let resident_serving_mb = resident(&cluster)?;
    tokio::time::sleep(SETTLED).await;
    let resident_after_mb = resident(&cluster)?;
    Ok(Measured { name, resident_mb, resident_serving_mb, resident_after_mb, restarts })
}

fn resident(cluster: &Cluster) -> anyhow::Result<Vec<f64>> {
    cluster.ids().map(|node| Ok(cluster.process(node)?.resident_bytes()? as f64 / 1e6)).collect()
}

fn largest(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(0.0, f64::max)
}

fn table(measured: &[Measured]) -> String {
    let mut text = format!(
        "{KEYS} keys of {VALUE_BYTES} B on three nodes; the largest (slowest) node counts.\n\n\
         | what | system | figure | goal | |\n|---|---|---|---|---|\n"
    );
    for (position, system) in measured.iter().enumerate() {
        let rows = [
            ("resident MB after writing", largest(&system.resident_mb), RESIDENT_GOAL, ""),
            ("resident MB at the end of a restart", largest(&system.resident_serving_mb), RESIDENT_GOAL, ""),
            ("resident MB 5 s after a restart", largest(&system.resident_after_mb), RESIDENT_GOAL, ""),
            ("s from start to serving, one follower", system.restarts.one.as_secs_f64(), RESTART_GOAL, " s"),
            (
                "s from start to serving, all nodes at once",
                system.restarts.all.as_secs_f64(),
                RESTART_GOAL,
                " s",
            ),
        ];
        for (what, figure, goal, unit) in rows {
            let goal = if position == 0 { goal.cells(figure, unit) } else { " | ".into() };
            let _ = writeln!(text, "| {what} | {} | {figure:.2} | {goal} |", system.name);
        }
    }
    text
}
