//! Keys.

use bytes::Bytes;
use tonic::Code;

use super::{start, usual};
use crate::client::plays::keys;
use crate::client::{Agent, Cluster};

async fn connected() -> (Cluster, Agent) {
    let cluster = start(usual(1)).await;
    let [agent] = cluster.connected().await;
    (cluster, agent)
}

#[tokio::test(start_paused = true)]
async fn key_value_dir_get() {
    let (_cluster, agent) = connected().await;
    keys::directory(&agent).await;
}

#[tokio::test(start_paused = true)]
async fn key_value_set_duplicate_fails() {
    let (_cluster, agent) = connected().await;
    keys::duplicate_fails(&agent).await;
}

#[tokio::test(start_paused = true)]
async fn key_value_set_duplicate_overwrites() {
    let (_cluster, agent) = connected().await;
    keys::duplicate_overwrites(&agent).await;
}

#[tokio::test(start_paused = true)]
async fn key_value_try_get() {
    let (_cluster, agent) = connected().await;
    let refused = agent.try_get("test_key").await.expect_err("it is not there yet");
    assert_eq!(refused.code(), Code::NotFound);
    agent.insert("test_key", "value").await.expect("stored");
    assert_eq!(agent.try_get("test_key").await.expect("found"), "value");
}

#[tokio::test(start_paused = true)]
async fn async_key_value_get() {
    let (cluster, agent) = connected().await;
    let mut early = cluster.getting(&agent, "test_key").await;
    early.waits().await;
    agent.insert("test_key", "value").await.expect("stored");
    assert_eq!(early.end().await.expect("woken"), "value");
    assert_eq!(agent.get("test_key").await.expect("at once"), "value");
}

#[tokio::test(start_paused = true)]
async fn key_value_increment() {
    let (_cluster, agent) = connected().await;
    assert_eq!(agent.increment("counter", 2).await.expect("from nothing"), 2);
    assert_eq!(agent.increment("counter", -5).await.expect("a number"), -3);
    agent.insert("text", "word").await.expect("stored");
    let refused = agent.increment("text", 1).await.expect_err("no number");
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert_eq!(agent.try_get("text").await.expect("found"), "word");
}

#[tokio::test(start_paused = true)]
async fn key_value_delete() {
    let (_cluster, agent) = connected().await;
    keys::delete(&agent).await;
}

#[tokio::test(start_paused = true)]
async fn key_value_delete_directory() {
    let (_cluster, agent) = connected().await;
    keys::delete_directory(&agent).await;
}

#[tokio::test(start_paused = true)]
async fn use_compression() {
    let (cluster, agent) = connected().await;
    assert!(cluster.config.compresses);
    let value = Bytes::from(vec![b'1'; 100_000]);
    agent.put("foo/bar/1", value.clone(), false).await.expect("stored");
    assert_eq!(agent.get("foo/bar/1").await.expect("found"), value);
    agent.shut_down().await.expect("it leaves");
}
