//! Leaders change between what was told and that it stands in the log.

use tripod_gateway::Mishap;
use tripod_state::mindspore::cluster::{Order, Request};
use tripod_state::mindspore::{self, Decision};
use tripod_state::{Command, Envelope};

use crate::played::{Manner, Played};
use crate::support::{Cluster, heard};

/// Whether it says that nodes have answered.
fn is_echo(envelope: &Envelope) -> bool {
    let command = match &envelope.command {
        Command::Retried(command) => &**command,
        command => command,
    };
    let Command::Mindspore(mindspore::Command::Lead { decision, .. }) = command else { return false };
    matches!(decision, Decision::Echoed { .. })
}

/// From now on nothing that nodes have answered comes into the log.
pub(crate) fn lose_echoes(cluster: &Cluster) {
    let fate = |envelope: &Envelope| if is_echo(envelope) { Mishap::Silence } else { Mishap::Success };
    cluster.backend.set_mishaps(fate);
}

/// Another one leads, which knows what stands in the log and nothing else.
pub(crate) async fn next_leader(cluster: &Cluster) {
    cluster.backend.depose();
    // Whatever the last one was about to do it has done.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    cluster.backend.set_mishaps(|_| Mishap::Success);
    cluster.backend.elect();
}

async fn all_have_heard(nodes: &[Played], count: usize) {
    let have = || nodes.iter().all(|node| node.heard_so_far() == count).then_some(());
    tripod_wait::until("all have heard", have).await;
}

#[tokio::test(start_paused = true)]
async fn of_events_nothing_is_lost_with_a_leader_and_their_order_stays() {
    let mut cluster = Cluster::of(1, 2).await;
    let nodes = cluster.start_all(&["w0", "s0", "s1"]).await;
    lose_echoes(&cluster);
    for event in [1, 2, 3] {
        cluster.event("w0", event).await;
    }
    all_have_heard(&nodes, 1).await;
    next_leader(&cluster).await;
    cluster.settled().await;
    assert_eq!(heard(&nodes), [["event 1", "event 1", "event 2", "event 3"]; 3]);
}

#[tokio::test(start_paused = true)]
async fn that_the_cluster_scales_is_not_told_again_to_who_has_answered_by_the_log() {
    let mut cluster = Cluster::of(0, 3).await;
    let nodes = cluster.start_all(&["s0", "s1", "s2"]).await;
    nodes[2].behave(Manner::Silent);
    cluster.ask(Request::ScaleOut { workers: 0, servers: 1 }).await;
    all_have_heard(&nodes, 1).await;
    tripod_wait::until("two have answered", || (cluster.untold().len() == 1).then_some(())).await;
    next_leader(&cluster).await;
    nodes[2].behave(Manner::Answers);
    cluster.settled().await;
    let once = vec!["scale-out 0+4"];
    assert_eq!(heard(&nodes), [once.clone(), once, vec!["scale-out 0+4"; 2]]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_stands_in_the_log_before_the_next_order_is_told() {
    let mut cluster = Cluster::of(0, 1).await;
    let nodes = cluster.start_all(&["s0"]).await;
    lose_echoes(&cluster);
    cluster.event("s0", 1).await;
    cluster.event("s0", 2).await;
    all_have_heard(&nodes, 1).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(heard(&nodes), [["event 1"]]);
    let [orders] = <[_; 1]>::try_from(cluster.untold()).unwrap();
    assert_eq!(orders.orders, [Order::Event { sequence: 1, event: 1 }]);
    next_leader(&cluster).await;
    cluster.settled().await;
    assert_eq!(heard(&nodes), [["event 1", "event 2"]]);
}
