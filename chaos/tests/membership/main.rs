//! Members of a cluster of real processes come, go and change places, by the command line, while clients
//! write.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

mod counting;
mod drain;
mod endpoints;
mod operator;
mod replace;
mod resize;

use std::time::Duration;

use tokio::time::Instant;
use tripod_load::connect;
use tripod_proto::tripod::v1::StatusRequest;
use tripod_proto::tripod::v1::cluster_client::ClusterClient;

/// How long anything may take before a test gives up: far more than it needs, for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pause between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Asserts that the nodes at these addresses come to hold the same state.
async fn assert_equal_digests(endpoints: &[String]) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut digests = Vec::new();
        for endpoint in endpoints {
            let mut client = ClusterClient::new(connect::lazy(endpoint).unwrap());
            if let Ok(status) = client.status(StatusRequest { digest: true }).await {
                let status = status.into_inner();
                digests.push((status.applied_index, status.digest));
            }
        }
        let same_index = digests.len() == endpoints.len() && digests.iter().all(|one| one.0 == digests[0].0);
        if same_index {
            assert!(digests.iter().all(|one| one.1 == digests[0].1), "nodes differ: {digests:?}");
            return;
        }
        assert!(Instant::now() < deadline, "nodes never came to the same index: {digests:?}");
        tokio::time::sleep(LOOK_PAUSE).await;
    }
}
