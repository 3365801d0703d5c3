//! Storage and clock faults on real nodes under load. Short by default; the surveys, behind `--ignored`, take
//! minutes and print tables:
//!
//! ```text
//! TRIPOD_FLIPS=60 cargo test -p tripod-chaos --test storage_faults -- --ignored --nocapture flipped_bits
//! TRIPOD_CUTS=100 cargo test -p tripod-chaos --test storage_faults -- --ignored --nocapture many_power_cuts
//! ```

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests may panic, and surveys print tables")]

mod damage;
mod flushes;
mod full;
mod power;

use tripod_processes::cluster::{Cluster, ClusterOptions, Kind};
use tripod_processes::fault::storage::{Disks, FileSystem, Shim, Skip, Verdict, Witness};
use tripod_wait::{deadline, until};

/// The value, or `None` after saying why this machine cannot make the fault.
fn or_skip<T>(made: anyhow::Result<T>) -> Option<T> {
    match made {
        Ok(made) => Some(made),
        Err(error) => {
            let skip = Skip::of(&error).unwrap_or_else(|| panic!("{error:#}"));
            println!("{skip}");
            None
        }
    }
}

/// A number from the environment, for surveys.
fn wanted(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

fn faulty_options(shim: &Shim) -> ClusterOptions {
    let mut options = ClusterOptions::tripod().unwrap();
    options.kind = Kind::Tripod { binary: shim.program().to_owned() };
    options
}

async fn start_on_disks(
    options: ClusterOptions,
    file_system: FileSystem,
    bytes: u64,
) -> Option<(Cluster, Disks)> {
    let mut cluster = Cluster::prepare(options).unwrap();
    let disks = or_skip(Disks::mount(&cluster, cluster.ids(), file_system, bytes))?;
    for node in cluster.ids() {
        cluster.restart(node).unwrap();
    }
    cluster.wait_until_ready().await.unwrap();
    Some((cluster, disks))
}

fn assert_kept(verdict: &Verdict) {
    assert!(verdict.broken.is_empty(), "{} broken, such as {:?}", verdict.broken.len(), &verdict.broken[..1]);
}

/// Waits until so many more writes are acknowledged than now.
async fn writes_go_on(witness: &Witness, count: u64) {
    witness.wait_for_more(count, deadline()).await.unwrap();
}

async fn wait_until_ended(cluster: &mut Cluster, node: u64) {
    until(format!("the end of node {node}"), || (!cluster.running().contains(&node)).then_some(())).await;
}

fn tail(cluster: &Cluster, node: u64) -> String {
    let log = std::fs::read_to_string(cluster.root().join(format!("node-{node}.log"))).unwrap_or_default();
    log.lines().rev().take(5).collect::<Vec<_>>().join("\n")
}
