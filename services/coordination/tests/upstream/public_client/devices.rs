//! The exchange of device topologies over keys.

use std::sync::Arc;

use tonic::{Code, Status};
use tripod_state::job;

use super::{start, usual};
use crate::client::topology::{self, Global, Local, exchange};
use crate::client::{Agent, Call, Cluster};

/// Exchanges in the background.
fn exchanging(agent: &Arc<Agent>, nodes: i32, local: &Local) -> Call<Global> {
    let (agent, local) = (Arc::clone(agent), local.clone());
    Call::new(async move { exchange(&agent, nodes, &local).await })
}

#[tokio::test(start_paused = true)]
async fn connect_and_enumerate_devices() {
    let cluster = start(usual(2)).await;
    let [first, second] = cluster.connected().await.map(Arc::new);
    let [local_first, local_second] = topology::two_nodes();
    let mut waiting = exchanging(&second, 2, &local_second);
    waiting.waits().await;
    let seen_by_first = exchange(&first, 2, &local_first).await.expect("the other one is there");
    let seen_by_second = waiting.end().await.expect("the first one puts them together");
    for seen in [seen_by_first, seen_by_second] {
        assert_eq!(seen, topology::two_nodes_together());
    }
    let (left, right) = tokio::join!(
        async {
            first.insert("key1", "value1").await?;
            first.get("key2").await
        },
        async {
            let found = second.get("key1").await?;
            second.insert("key2", "value2").await?;
            Ok::<_, Status>(found)
        }
    );
    assert_eq!(left.expect("the second one stores it"), "value2");
    assert_eq!(right.expect("the first one stores it"), "value1");
}

#[tokio::test(start_paused = true)]
async fn enumerate_eleven_devices() {
    let cluster = start(usual(11)).await;
    let agents: [Arc<Agent>; 11] = cluster.connected().await.map(Arc::new);
    let locals = topology::eleven_nodes();
    let calls: Vec<Call<Global>> =
        agents.iter().zip(&locals).map(|(agent, local)| exchanging(agent, 11, local)).collect();
    for (task, call) in calls.into_iter().enumerate() {
        let seen = call.end().await.unwrap_or_else(|status| panic!("task {task}: {status:?}"));
        assert_eq!(seen, topology::eleven_nodes_together(), "task {task}");
    }
}

/// Two processes of a job that lets them restart, and what they have.
async fn two() -> (Cluster, [Agent; 2], [Local; 2]) {
    let cluster = start(job::Spec { recoverable: true, ..usual(2) }).await;
    let agents = cluster.connected().await;
    (cluster, agents, [Local::new(0, "", &[0, 0]), Local::new(1, "", &[0, 1])])
}

async fn exchange_both(agents: &[Agent; 2], locals: &[Local; 2]) -> Global {
    let (left, right) =
        tokio::join!(exchange(&agents[0], 2, &locals[0]), exchange(&agents[1], 2, &locals[1]));
    let (left, right) = (left.expect("both are there"), right.expect("both are there"));
    assert_eq!(left, right);
    left
}

/// The second process dies, and another life of it connects.
async fn restart_second(cluster: &Cluster, agents: [Agent; 2]) -> [Agent; 2] {
    let [first, second] = agents;
    drop(second);
    let restarted = cluster.agent(1).await;
    cluster.connect(&restarted).await.expect("it may come again");
    [first, restarted]
}

#[tokio::test(start_paused = true)]
async fn exchange_topology() {
    let (_cluster, agents, locals) = two().await;
    let seen = exchange_both(&agents, &locals).await;
    let devices: Vec<usize> = seen.nodes.iter().map(|node| node.devices.len()).collect();
    assert_eq!(devices, [2, 2]);
}

#[tokio::test(start_paused = true)]
async fn exchange_topology_twice_succeeds() {
    let (cluster, agents, locals) = two().await;
    let before = exchange_both(&agents, &locals).await;
    let [_first, restarted] = restart_second(&cluster, agents).await;
    let after = exchange(&restarted, 2, &locals[1]).await.expect("it finds what it left");
    assert_eq!(after, before);
}

#[tokio::test(start_paused = true)]
async fn exchange_topology_twice_with_different_local_topology_fails() {
    let (cluster, agents, locals) = two().await;
    exchange_both(&agents, &locals).await;
    let [_first, restarted] = restart_second(&cluster, agents).await;
    let refused = exchange(&restarted, 2, &Local::new(1, "", &[0, 1, 2])).await;
    assert_eq!(refused.expect_err("it had two devices before").code(), Code::Internal);
}
