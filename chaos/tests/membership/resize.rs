//! Three nodes become five and three again, under writes, and the first leader is among those that go.

use std::time::Duration;

use tokio::time::Instant;
use tripod_chaos::cluster::{Cluster, ClusterOptions};
use tripod_load::connect;
use tripod_proto::tripod::v1::WatchMembersRequest;
use tripod_proto::tripod::v1::agents_client::AgentsClient;

use crate::counting::Counting;
use crate::endpoints::Endpoints;
use crate::operator::{Machines, Operator, told};
use crate::{PATIENCE, assert_equal_digests};

const COUNTERS: usize = 4;
/// How soon agents and gRPC clients know that a member is gone, once the change has ended, also on a busy machine:
/// whoever is not told finds out later, by calls that fail. `tripod-chaos bench membership` measures it.
const TOLD_WITHIN: Duration = Duration::from_secs(10);
/// Increments between two changes.
const BETWEEN: u64 = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_become_five_and_three_again_under_writes() {
    let every = "--snapshot-every-entries=300";
    let mut cluster = Cluster::start(ClusterOptions::tripod().unwrap().with_args([every])).await.unwrap();
    let machines = Machines::new();
    let newcomers = [4, 5].map(|machine| machines.client(machine));
    let all = [cluster.endpoints(), newcomers.to_vec()].concat();
    let operator = Operator::of(&all);
    let counting = Counting::start(&all, COUNTERS);
    counting.go_on(400).await;

    let mut processes = Vec::new();
    for node in [4_u64, 5] {
        processes.push(machines.join(node, &cluster));
        let id = node.to_string();
        let is_learner = |list: &serde_json::Value| {
            list["members"].as_array().is_some_and(|members| {
                members
                    .iter()
                    .any(|member| member["id"] == node && member["client_address"] == machines.client(node))
            })
        };
        let list = operator.list_when("a learner that has caught up and told its address", is_learner).await;
        assert_eq!(list["votes"]["voters"].as_array().unwrap().len() as u64, node - 1, "{list}");

        let planned = operator.done_when_caught_up(&["promote", &id, "--plan"]).await;
        assert_eq!(planned["change"], serde_json::json!(null), "{planned}");
        let promoted = operator.done_when_caught_up(&["promote", &id]).await;
        assert_eq!(promoted["after"]["voters"].as_array().unwrap().len() as u64, node, "{promoted}");
        assert_eq!(
            (&promoted["before"]["quorum"], &promoted["after"]["quorum"]),
            (&((node - 1) / 2 + 1).into(), &(node / 2 + 1).into())
        );
        counting.go_on(BETWEEN).await;
    }

    let mut agents = AgentsClient::new(connect::lazy(&machines.client(4)).unwrap());
    let mut told_members = agents.watch_members(WatchMembersRequest {}).await.unwrap().into_inner();
    let mut endpoints = Endpoints::watch(&machines.client(4)).await;
    let leader = cluster.wait_for_leader().await.unwrap();
    let other = cluster.ids().find(|node| *node != leader).unwrap();
    for (node, left) in [(leader, 4), (other, 3)] {
        let removed = operator.done(&["remove", &node.to_string()]).await;
        assert_eq!(removed["ending"], "done", "{removed}");
        let ended = Instant::now();
        loop {
            let members =
                tokio::time::timeout(PATIENCE, told_members.message()).await.expect("told").unwrap().unwrap();
            if members.members.len() == left && members.members.iter().all(|member| member.node_id != node) {
                break;
            }
        }
        assert!(ended.elapsed() <= TOLD_WITHIN, "agents knew after {:?}", ended.elapsed());
        endpoints.without(port_of(&cluster.endpoint(node))).await;
        assert!(ended.elapsed() <= TOLD_WITHIN, "gRPC clients knew after {:?}", ended.elapsed());
        let ended = wait_for_its_end(&mut cluster, node).await;
        assert_eq!(ended.code(), Some(1));
        let log = std::fs::read_to_string(cluster.log(node)).unwrap();
        assert!(log.contains("error: T4201 node-removed: "), "{log}");
        counting.go_on(BETWEEN).await;
    }
    let refused = operator.run(&["promote", &leader.to_string()]).await;
    assert!(told(&refused).contains("T4201 node-removed"), "{}", told(&refused));

    let stays = cluster.ids().find(|node| ![leader, other].contains(node)).unwrap();
    let left = [vec![cluster.endpoint(stays)], newcomers.to_vec()].concat();
    counting.stop_and_check(&left).await;
    assert_equal_digests(&left).await;
}

fn port_of(endpoint: &str) -> u16 {
    endpoint.rsplit_once(':').expect("HOST:PORT").1.parse().unwrap()
}

async fn wait_for_its_end(cluster: &mut Cluster, node: u64) -> std::process::ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some((_, status)) = cluster.take_ended().into_iter().find(|(ended, _)| *ended == node) {
            return status;
        }
        assert!(Instant::now() < deadline, "node {node} was removed and still runs");
        tokio::time::sleep(crate::LOOK_PAUSE).await;
    }
}
