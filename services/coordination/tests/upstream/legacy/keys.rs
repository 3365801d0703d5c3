//! Directories and deletions, which only dialect T has: clients of dialect L refuse them themselves.

use std::sync::Arc;
use std::time::Duration;

use tonic::Code;

use super::link::Options;
use super::t::Client;
use crate::client::{Cluster, spec};
use crate::support::LONG;

/// How long a get waits for a key that is not there.
const PATIENCE: Duration = Duration::from_millis(200);

const NESTED: [(&str, &str); 3] =
    [("test_dir/3", "3"), ("test_dir/sub_dir/1", "1"), ("test_dir/sub_dir/2", "2")];

/// The one client of a job.
async fn connected() -> (Cluster, Arc<Client>) {
    let cluster = Cluster::start(spec(1)).await;
    let client = Arc::new(Client::new(cluster.served.connect().await, 0, Options::default()));
    Arc::clone(&client).connect().await.expect("it is alone");
    (cluster, client)
}

#[tokio::test(start_paused = true)]
async fn key_value_dir_get() {
    let (_cluster, client) = connected().await;
    for (key, value) in NESTED.into_iter().chain([("test", "4")]) {
        client.set(key, value).await.expect("stored");
    }
    let found = client.directory("test_dir/").await.expect("a list");
    assert_eq!(found, NESTED.map(|(key, value)| (key.to_owned(), value.into())));
}

#[tokio::test(start_paused = true)]
async fn key_value_delete() {
    let (_cluster, client) = connected().await;
    client.set("to_be_deleted", "deleted").await.expect("stored");
    client.set("to_be_kept", "kept").await.expect("stored");
    client.delete("to_be_deleted").await.expect("deleted");
    let gone = client.get("to_be_deleted", PATIENCE).await.expect_err("deleted");
    assert_eq!(gone.code(), Code::DeadlineExceeded);
    assert_eq!(client.get("to_be_kept", LONG).await.expect("found"), "kept");
}

#[tokio::test(start_paused = true)]
async fn key_value_delete_directory() {
    let (_cluster, client) = connected().await;
    for (key, value) in NESTED {
        client.set(key, value).await.expect("stored");
    }
    client.delete("test_dir/").await.expect("deleted");
    assert_eq!(client.directory("test_dir/").await.expect("a list"), []);
}
