//! A node is drained under writes: it goes on voting, and leads nothing and has no clients until it is undrained.

use serde_json::Value;
use tripod_load::connect;
use tripod_processes::cluster::{Cluster, ClusterOptions};
use tripod_proto::tripod::v1::WatchMembersRequest;
use tripod_proto::tripod::v1::agents_client::AgentsClient;
use tripod_wait::{until_async, within};

use crate::assert_equal_digests;
use crate::counting::Counting;
use crate::endpoints::Endpoints;
use crate::operator::{Operator, told};

const COUNTERS: usize = 4;
/// Increments between two steps.
const BETWEEN: u64 = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drained_node_votes_and_leads_nothing_until_it_is_undrained() {
    let mut cluster = Cluster::start(ClusterOptions::tripod().unwrap()).await.unwrap();
    let all = cluster.endpoints();
    let operator = Operator::of(&all);
    let counting = Counting::start(&all, COUNTERS);
    counting.go_on(BETWEEN).await;
    let drained = cluster.wait_for_leader().await.unwrap();
    operator.level_when_raised().await;
    let id = drained.to_string();
    let port: u16 = cluster.endpoint(drained).rsplit(':').next().unwrap().parse().unwrap();
    let beside = cluster.ids().find(|node| *node != drained).unwrap();
    let mut endpoints = Endpoints::watch(&cluster.endpoint(beside)).await;
    endpoints.with(port).await;

    let done = node(&operator, "drain", &id).await;
    assert_eq!((&done["node"], &done["drained"]), (&drained.into(), &true.into()), "{done}");
    let leader = cluster.wait_for_leader().await.unwrap();
    assert_ne!(leader, drained);
    let list = operator.list_when("drained", |list| shows(list, drained, true)).await;
    assert_eq!(list["votes"]["voters"].as_array().unwrap().len(), 3, "it votes: {list}");
    agents_are_sent_to(&all, &[1, 2, 3].into_iter().filter(|node| *node != drained).collect::<Vec<_>>())
        .await;
    endpoints.without(port).await;
    let refused = operator.run_any(&["leader", "transfer", "--to", &id]).await;
    assert!(told(&refused).contains("is drained"), "{}", told(&refused));
    counting.go_on(BETWEEN).await;

    // Its vote makes the other one the leader, and it stands back itself: also when it has just been started again.
    cluster.kill(drained).unwrap();
    cluster.restart(drained).unwrap();
    cluster.wait_until_ready().await.unwrap();
    cluster.kill(leader).unwrap();
    let other = cluster.ids().find(|node| ![drained, leader].contains(node)).unwrap();
    wait_until_leads(&mut cluster, other).await;
    counting.go_on(BETWEEN).await;
    assert_eq!(cluster.wait_for_leader().await.unwrap(), other);
    let nobody_else = operator.run_any(&["node", "drain", &other.to_string()]).await;
    assert!(told(&nobody_else).contains("nobody else could lead"), "{}", told(&nobody_else));
    cluster.restart(leader).unwrap();
    cluster.wait_until_ready().await.unwrap();

    node(&operator, "undrain", &id).await;
    operator.list_when("undrained", |list| shows(list, drained, false)).await;
    agents_are_sent_to(&all, &[1, 2, 3]).await;
    Endpoints::watch(&cluster.endpoint(beside)).await.with(port).await;
    // On a busy machine an heir may not take over in time, and everything stays as it was.
    until_async("a transfer", || async {
        let moved = operator.run_any(&["leader", "transfer", "--to", &id]).await;
        moved.status.success().then_some(())
    })
    .await;
    counting.go_on(BETWEEN).await;
    let unknown = operator.run_any(&["node", "drain", "9"]).await;
    assert!(told(&unknown).contains("there is no node 9"), "{}", told(&unknown));
    counting.stop_and_check(&all).await;
    assert_equal_digests(&all).await;
}

/// Gives a command that must succeed, and its answer.
async fn node(operator: &Operator, command: &str, id: &str) -> Value {
    let output = operator.run_any(&["node", command, id]).await;
    assert!(output.status.success(), "{command} {id}: {}", told(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn shows(list: &Value, node: u64, drained: bool) -> bool {
    let members = list["members"].as_array().into_iter().flatten();
    members.into_iter().any(|member| member["id"] == node && member["drained"] == drained)
}

/// Waits until agents are told to use these nodes and no others.
async fn agents_are_sent_to(endpoints: &[String], nodes: &[u64]) {
    let agents = AgentsClient::new(connect::lazy(&endpoints[0]).unwrap());
    until_async(format!("agents to be sent to {nodes:?}"), || async {
        // A node that is drained ends the streams of its clients, who ask again.
        let told = agents.clone().watch_members(WatchMembersRequest {}).await.ok()?;
        let told = told.into_inner().message().await.ok()??;
        let mut members: Vec<u64> = told.members.iter().map(|member| member.node_id).collect();
        members.sort_unstable();
        (members == nodes).then_some(())
    })
    .await;
}

async fn wait_until_leads(cluster: &mut Cluster, node: u64) {
    within(format!("node {node} to lead"), async {
        while cluster.wait_for_leader().await.unwrap() != node {}
    })
    .await;
}
