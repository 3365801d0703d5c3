//! Keys, and who is alive.

use crate::client::plays::keys;
use crate::client::{Agent, Cluster, spec};

async fn connected() -> (Cluster, Agent) {
    let cluster = Cluster::start(spec(1)).await;
    let [agent] = cluster.connected().await;
    (cluster, agent)
}

#[tokio::test(start_paused = true)]
async fn get_alive_tasks_succeed() {
    let cluster = Cluster::start(spec(2)).await;
    let [first, second] = cluster.connected().await;
    let (left, right) = tokio::join!(first.alive(&[0, 1]), second.alive(&[1, 0]));
    let expected = vec![(0, first.incarnation()), (1, second.incarnation())];
    assert_eq!(left.expect("both have asked"), expected);
    assert_eq!(right.expect("both have asked"), expected);
}

#[tokio::test(start_paused = true)]
async fn get_key_value_dir() {
    let (_cluster, agent) = connected().await;
    keys::directory(&agent).await;
}

#[tokio::test(start_paused = true)]
async fn insert_key_value_duplicate_fails() {
    let (_cluster, agent) = connected().await;
    keys::duplicate_fails(&agent).await;
}

#[tokio::test(start_paused = true)]
async fn insert_key_value_duplicate_overwrites() {
    let (_cluster, agent) = connected().await;
    keys::duplicate_overwrites(&agent).await;
}

#[tokio::test(start_paused = true)]
async fn delete_key_value() {
    let (_cluster, agent) = connected().await;
    keys::delete(&agent).await;
}

#[tokio::test(start_paused = true)]
async fn delete_key_value_directory() {
    let (_cluster, agent) = connected().await;
    keys::delete_directory(&agent).await;
}
