//! Power cuts: of whole disks, and of what was not flushed.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tripod_processes::cluster::{Cluster, ClusterOptions, find_tripod};
use tripod_processes::fault::storage::{Disks, FileSystem, Mercy, Shim, Taken, Verdict, Witness};

use super::{assert_kept, faulty_options, or_skip, start_on_disks, wanted, writes_go_on};

/// Room for a journal of full length, sled and snapshots.
const DISK_BYTES: u64 = 256 << 20;

/// Cuts, seeded, until `cuts` are made: all nodes, or one of them. Gives what the writers saw.
async fn cut_under_load(cluster: &mut Cluster, disks: &Disks, seed: u64, cuts: u64) -> (Verdict, u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let witness = Witness::start(cluster, "cut", 8, 256);
    let mut nodes_cut = 0;
    for cut in 1..=cuts {
        writes_go_on(&witness, random.random_range(20..200)).await;
        tokio::time::sleep(Duration::from_micros(random.random_range(0..20_000))).await;
        let all: Vec<u64> = cluster.ids().collect();
        let nodes = if cut % 2 == 1 { all } else { vec![random.random_range(1..=3)] };
        disks.cut(cluster, &nodes).unwrap();
        nodes_cut += nodes.len() as u64;
        for node in &nodes {
            cluster.restart(*node).unwrap();
        }
        cluster.wait_until_ready().await.unwrap();
    }
    (witness.verify(cluster).await.unwrap(), nodes_cut)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_power_cuts() {
    let options = ClusterOptions::tripod().unwrap();
    let Some((mut cluster, disks)) = start_on_disks(options, FileSystem::Ext4, DISK_BYTES).await else {
        return;
    };
    let (verdict, nodes) = cut_under_load(&mut cluster, &disks, 1, 3).await;
    println!("{nodes} nodes cut: {} acknowledged, {} unknown", verdict.acknowledged, verdict.unknown);
    assert_kept(&verdict);
}

/// The fault itself is shown to work: the same cut finds what a disk that lies has not made durable.
#[tokio::test(flavor = "multi_thread")]
async fn a_power_cut_finds_flushes_that_were_swallowed() {
    let Some(shim) = or_skip(Shim::prepare(&find_tripod().unwrap(), 3)) else { return };
    let options = faulty_options(&shim);
    let Some((mut cluster, disks)) = start_on_disks(options, FileSystem::Ext4, DISK_BYTES).await else {
        return;
    };
    for node in cluster.ids() {
        assert_eq!(
            shim.node(node).unwrap().counts().unwrap().attached,
            1,
            "node {node} runs without the library"
        );
        shim.node(node).unwrap().swallow_syncs(true).unwrap();
    }
    let witness = Witness::start(&cluster, "lost", 4, 256);
    writes_go_on(&witness, 200).await;
    let all: Vec<u64> = cluster.ids().collect();
    disks.cut(&mut cluster, &all).unwrap();
    shim.heal().unwrap();
    for node in all {
        cluster.restart(node).unwrap();
    }
    // Nodes that see what they lost, and do not start, are as good a proof as lost writes.
    if cluster.wait_until_ready().await.is_ok() {
        let verdict = witness.verify(&mut cluster).await.unwrap();
        assert!(
            !verdict.broken.is_empty(),
            "nothing of {} writes was lost without flushes",
            verdict.acknowledged
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a survey: TRIPOD_CUTS, TRIPOD_SEED"]
async fn many_power_cuts() {
    let options = ClusterOptions::tripod().unwrap();
    let Some((mut cluster, disks)) = start_on_disks(options, FileSystem::Ext4, DISK_BYTES).await else {
        return;
    };
    let (cuts, seed) = (wanted("TRIPOD_CUTS", 30), wanted("TRIPOD_SEED", 1));
    let begin = Instant::now();
    let (verdict, nodes) = cut_under_load(&mut cluster, &disks, seed, cuts).await;
    println!(
        "seed {seed}: {cuts} cuts of {nodes} nodes in {:?}: {} acknowledged, {} unknown, {} keys, {} broken",
        begin.elapsed(),
        verdict.acknowledged,
        verdict.unknown,
        verdict.keys,
        verdict.broken.len()
    );
    assert_kept(&verdict);
}

/// Cuts by the log of writes, seeded, as `tripod-chaos run power-cuts` makes them; gives what the writers saw and what was taken from all nodes together.
async fn tear_under_load(seed: u64, cuts: u64) -> Option<(Verdict, Taken)> {
    let shim = or_skip(Shim::prepare_for_cuts(&find_tripod().unwrap(), 3))?;
    let mut cluster = Cluster::start(faulty_options(&shim)).await.unwrap();
    let mut random = StdRng::seed_from_u64(seed);
    let witness = Witness::start(&cluster, "torn", 8, 2000);
    let mut total = Taken::default();
    for cut in 1..=cuts {
        writes_go_on(&witness, random.random_range(20..200)).await;
        tokio::time::sleep(Duration::from_micros(random.random_range(0..20_000))).await;
        let all: Vec<u64> = cluster.ids().collect();
        let nodes = if cut % 2 == 1 { all } else { vec![random.random_range(1..=3)] };
        let mercy = Mercy::draw(&mut random);
        for taken in shim.cut(&mut cluster, &nodes, mercy, &mut random).unwrap() {
            total.writes += taken.writes;
            total.sectors += taken.sectors;
            total.torn += taken.torn;
        }
        for node in &nodes {
            cluster.restart(*node).unwrap();
        }
        cluster.wait_until_ready().await.unwrap();
    }
    Some((witness.verify(&mut cluster).await.unwrap(), total))
}

/// The log is shown to work, as above.
#[tokio::test(flavor = "multi_thread")]
async fn taking_back_writes_finds_flushes_that_were_swallowed() {
    let Some(shim) = or_skip(Shim::prepare_for_cuts(&find_tripod().unwrap(), 3)) else { return };
    let mut cluster = Cluster::start(faulty_options(&shim)).await.unwrap();
    for node in cluster.ids() {
        shim.node(node).unwrap().swallow_syncs(true).unwrap();
    }
    let witness = Witness::start(&cluster, "lost", 4, 256);
    writes_go_on(&witness, 200).await;
    let all: Vec<u64> = cluster.ids().collect();
    let taken = shim.cut(&mut cluster, &all, Mercy::None, &mut StdRng::seed_from_u64(1)).unwrap();
    assert!(taken.iter().all(|taken| taken.sectors > 0), "{taken:?}");
    shim.heal().unwrap();
    for node in all {
        cluster.restart(node).unwrap();
    }
    if cluster.wait_until_ready().await.is_ok() {
        let verdict = witness.verify(&mut cluster).await.unwrap();
        assert!(
            !verdict.broken.is_empty(),
            "nothing of {} writes was lost without flushes",
            verdict.acknowledged
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a survey: TRIPOD_CUTS, TRIPOD_SEED"]
async fn many_torn_writes() {
    let (cuts, seed) = (wanted("TRIPOD_CUTS", 30), wanted("TRIPOD_SEED", 1));
    let begin = Instant::now();
    let Some((verdict, taken)) = tear_under_load(seed, cuts).await else { return };
    println!(
        "seed {seed}: {cuts} cuts in {:?}: {taken:?}; {} acknowledged, {} unknown, {} keys, {} broken",
        begin.elapsed(),
        verdict.acknowledged,
        verdict.unknown,
        verdict.keys,
        verdict.broken.len()
    );
    assert!(taken.torn > 0 || cuts < 10, "no write was torn");
    assert_kept(&verdict);
}
