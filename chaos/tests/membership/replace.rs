//! A dead node is replaced under writes, and leaders are killed while it is.

use tripod_processes::cluster::{Cluster, ClusterOptions};
use tripod_wait::until;

use crate::assert_equal_digests;
use crate::counting::Counting;
use crate::operator::{Machines, Operator, told};

const COUNTERS: usize = 4;
const BETWEEN: u64 = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_node_is_replaced_although_the_leader_is_killed_meanwhile() {
    let every = "--snapshot-every-entries=300";
    let mut cluster = Cluster::start(ClusterOptions::tripod().unwrap().with_args([every])).await.unwrap();
    let machines = Machines::new();
    let all = [cluster.endpoints(), vec![machines.client(4)]].concat();
    let operator = Operator::of(&all);
    let counting = Counting::start(&all, COUNTERS);
    counting.go_on(400).await;
    let leader = cluster.wait_for_leader().await.unwrap();
    let dead = cluster.ids().find(|node| *node != leader).unwrap();
    cluster.kill(dead).unwrap();

    let (dead_id, peer) = (dead.to_string(), machines.peer(4));
    let wrong = operator.run(&["replace", &dead_id, &format!("7={peer}")]).await;
    assert!(told(&wrong).contains("would get id 4, not 7"), "{}", told(&wrong));
    let begun = operator.done(&["replace", &dead_id, &format!("4={peer}"), "--no-wait"]).await;
    assert_eq!((&begun["before"]["quorum"], &begun["after"]["quorum"]), (&2.into(), &2.into()));
    let second = operator.run(&["add", "127.0.0.1:1"]).await;
    assert!(told(&second).contains("change in progress by "), "{}", told(&second));
    assert!(!second.status.success());

    // The change is in the log, and nobody remembers it but the log.
    cluster.kill(leader).unwrap();
    cluster.restart(leader).unwrap();
    counting.go_on(BETWEEN).await;
    let _newcomer = machines.join(4, &cluster);
    let list = operator.list_when("an end", |list| list["last_change"]["id"] == begun["change"]).await;
    assert_eq!(list["last_change"]["ending"], "done", "{list}");
    let voters: Vec<u64> =
        list["votes"]["voters"].as_array().unwrap().iter().filter_map(serde_json::Value::as_u64).collect();
    let mut expected: Vec<u64> = (1..=4).filter(|node| *node != dead).collect();
    expected.sort_unstable();
    assert_eq!(voters, expected);
    counting.go_on(BETWEEN).await;

    // The dead one comes back, and is told.
    cluster.restart(dead).unwrap();
    let log = cluster.log(dead);
    until(format!("node {dead} to be told that it was replaced"), || {
        let said = std::fs::read_to_string(&log).unwrap();
        said.contains("T4201 node-removed: ").then_some(())
    })
    .await;

    let left: Vec<String> = cluster
        .ids()
        .filter(|node| *node != dead)
        .map(|node| cluster.endpoint(node))
        .chain([machines.client(4)])
        .collect();
    counting.stop_and_check(&left).await;
    assert_equal_digests(&left).await;
}
