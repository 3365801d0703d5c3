//! Whether nodes hold the same state.

use tokio::time::Instant;
use tripod_load::connect;
use tripod_proto::tripod::v1::StatusRequest;
use tripod_proto::tripod::v1::cluster_client::ClusterClient;

use crate::{LOOK_PAUSE, PATIENCE};

/// Asserts that the nodes at these addresses come to hold the same state.
pub(crate) async fn assert_equal_digests(endpoints: &[String]) {
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
