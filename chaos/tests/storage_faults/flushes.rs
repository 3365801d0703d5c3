//! Flushes that are slow, stall or fail, and clocks that jump.

use std::time::{Duration, Instant};

use tripod_client::{Client, Condition, Config};
use tripod_processes::cluster::{Cluster, find_tripod};
use tripod_processes::fault::storage::{Shim, Witness};
use tripod_wait::until;

use super::{assert_kept, faulty_options, or_skip, tail, wait_until_ended, wanted, writes_go_on};

const EIO: i32 = 5;
/// How long somebody waits for what cannot come.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_flushes_fail_ends_with_a_code_and_the_others_serve() {
    let Some(shim) = or_skip(Shim::prepare(&find_tripod().unwrap(), 3)) else { return };
    let mut cluster = Cluster::start(faulty_options(&shim)).await.unwrap();
    let leader = cluster.wait_for_leader().await.unwrap();
    let witness = Witness::start(&cluster, "eio", 4, 256);
    writes_go_on(&witness, 50).await;
    let controls = shim.node(leader).unwrap();
    controls.fail_syncs(EIO, 5).unwrap();
    wait_until_ended(&mut cluster, leader).await;
    assert!(controls.counts().unwrap().syncs_failed >= 1);
    let log = std::fs::read_to_string(cluster.root().join(format!("node-{leader}.log"))).unwrap();
    // sled panics in a thread of the dying process when its own last flush fails, so a panic says nothing
    // here.
    assert!(log.contains(&format!("error: T3102 log-io: node {leader} cannot go on: cannot sync")), "{log}");
    let errors = log.lines().filter(|line| line.contains("ERROR tripod"));
    let uncoded: Vec<&str> = errors.clone().filter(|line| !line.contains(" code=T3102")).collect();
    assert!(errors.count() >= 2 && uncoded.is_empty(), "without the code as a field: {uncoded:?}\n{log}");
    writes_go_on(&witness, 50).await;
    // The same disk answers again: what it holds is proved or refused, and never less.
    controls.heal().unwrap();
    let _ = cluster.kill(leader);
    cluster.restart(leader).unwrap();
    cluster.wait_until_ready().await.unwrap();
    assert_kept(&witness.verify(&mut cluster).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_and_stalled_flushes_lose_nothing() {
    let Some(shim) = or_skip(Shim::prepare(&find_tripod().unwrap(), 3)) else { return };
    let mut cluster = Cluster::start(faulty_options(&shim)).await.unwrap();
    let leader = cluster.wait_for_leader().await.unwrap();
    let witness = Witness::start(&cluster, "slow", 4, 256);
    let controls = shim.node(leader).unwrap();
    controls.delay_syncs(Duration::from_millis(50)).unwrap();
    writes_go_on(&witness, 50).await;
    controls.stall_syncs(true).unwrap();
    // The others elect somebody whose disk answers.
    writes_go_on(&witness, 50).await;
    controls.heal().unwrap();
    cluster.wait_until_ready().await.unwrap();
    writes_go_on(&witness, 50).await;
    assert_kept(&witness.verify(&mut cluster).await.unwrap());
}

/// Nothing is acknowledged that a quorum has not flushed: with two of three nodes inside a flush, nothing is.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_acknowledged_while_the_flushes_of_two_nodes_stall() {
    let Some(shim) = or_skip(Shim::prepare(&find_tripod().unwrap(), 3)) else { return };
    let mut cluster = Cluster::start(faulty_options(&shim)).await.unwrap();
    let leader = cluster.wait_for_leader().await.unwrap();
    let others: Vec<u64> = cluster.ids().filter(|node| *node != leader).collect();
    for stalled in [vec![leader, others[0]], others] {
        let witness = Witness::start(&cluster, &format!("stalled/{stalled:?}"), 4, 256);
        writes_go_on(&witness, 50).await;
        for node in &stalled {
            shim.node(*node).unwrap().stall_syncs(true).unwrap();
        }
        for node in &stalled {
            wait_until_flush_waits(&shim, *node).await;
        }
        let kv = Client::new(&Config { timeout: CALL_TIMEOUT, ..Config::new(cluster.endpoints()) })
            .unwrap()
            .kv("");
        let told = kv.put("new", "value".into(), Condition::Always).await;
        assert!(told.is_err(), "acknowledged while nodes {stalled:?} could not flush: {told:?}");
        shim.heal().unwrap();
        cluster.wait_until_ready().await.unwrap();
        writes_go_on(&witness, 20).await;
        assert_kept(&witness.verify(&mut cluster).await.unwrap());
    }
}

async fn wait_until_flush_waits(shim: &Shim, node: u64) {
    let waits = || shim.node(node).unwrap().counts().unwrap().syncs_waiting > 0;
    until(format!("node {node} to flush"), || waits().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a look: TRIPOD_SECONDS"]
async fn a_leader_whose_flushes_stall_for_long() {
    let Some(shim) = or_skip(Shim::prepare(&find_tripod().unwrap(), 3)) else { return };
    let mut cluster = Cluster::start(faulty_options(&shim)).await.unwrap();
    let leader = cluster.wait_for_leader().await.unwrap();
    let witness = Witness::start(&cluster, "long", 16, 16 << 10);
    writes_go_on(&witness, 200).await;
    let controls = shim.node(leader).unwrap();
    controls.stall_syncs(true).unwrap();
    let begin = Instant::now();
    let mut before = witness.acknowledged();
    while begin.elapsed() < Duration::from_secs(wanted("TRIPOD_SECONDS", 15)) {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = witness.acknowledged();
        let (leads, resident) =
            (cluster.wait_for_leader().await, cluster.process(leader).unwrap().resident_bytes());
        println!(
            "{:?}: {} writes, leader {leads:?} (stalled: {leader}), {resident:?} bytes",
            begin.elapsed(),
            now - before
        );
        before = now;
    }
    controls.heal().unwrap();
    let healed = Instant::now();
    cluster.wait_until_ready().await.unwrap();
    println!("ready {:?} after the stall; {:?}", healed.elapsed(), controls.counts());
    println!("{}", tail(&cluster, leader));
    assert_kept(&witness.verify(&mut cluster).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn wall_clocks_that_jump_change_nothing() {
    let Some(shim) = or_skip(Shim::prepare(&find_tripod().unwrap(), 3)) else { return };
    // Slower than the default: an election on a loaded machine is not what is tested.
    let timing = ["--raft-heartbeat-ms=200", "--election-min-ms=2000", "--election-max-ms=4000"];
    let mut cluster = Cluster::start(faulty_options(&shim).with_args(timing)).await.unwrap();
    let witness = Witness::start(&cluster, "clock", 4, 256);
    for shift_ms in [3_600_000, -3_600_000, 0] {
        let leader = cluster.wait_for_leader().await.unwrap();
        let reads = shim.node(leader).unwrap().counts().unwrap().wall_reads;
        shim.node(leader).unwrap().shift_wall_clock(shift_ms).unwrap();
        writes_go_on(&witness, 50).await;
        assert!(
            shim.node(leader).unwrap().counts().unwrap().wall_reads > reads,
            "the clock is read elsewhere"
        );
        assert_eq!(
            cluster.wait_for_leader().await.unwrap(),
            leader,
            "a jump of {shift_ms} ms moved leadership"
        );
    }
    assert_eq!(cluster.running().len(), 3);
    assert_kept(&witness.verify(&mut cluster).await.unwrap());
}
