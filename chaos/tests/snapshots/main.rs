//! Snapshots and purged logs under load, on real processes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

mod catch_up;
mod memory;
mod writers;

use std::time::Duration;

use tripod_load::connect;
use tripod_processes::cluster::Cluster;
use tripod_proto::tripod::v1::cluster_client::ClusterClient;
use tripod_proto::tripod::v1::{StatusRequest, StatusResponse};
use tripod_wait::until_async;

/// How long a node may take to say how it is, before it is asked again.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// What a node says of itself; `None` while it does not answer.
async fn status(cluster: &Cluster, node: u64, digest: bool) -> Option<StatusResponse> {
    let mut client = ClusterClient::new(connect::lazy(&cluster.endpoint(node)).unwrap());
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, client.status(StatusRequest { digest })).await;
    Some(answer.ok()?.ok()?.into_inner())
}

/// Asks a node again until what it says of itself is what is waited for.
async fn status_when(
    cluster: &Cluster,
    node: u64,
    what: &str,
    is_so: impl Fn(&StatusResponse) -> bool,
) -> StatusResponse {
    until_async(format!("node {node}: {what}"), || async {
        status(cluster, node, false).await.filter(&is_so)
    })
    .await
}
