//! Whether nodes hold the same state.

use tripod_load::connect;
use tripod_proto::tripod::v1::StatusRequest;
use tripod_proto::tripod::v1::cluster_client::ClusterClient;
use tripod_wait::until_async;

/// Asserts that the nodes at these addresses come to hold the same state.
pub(crate) async fn assert_equal_digests(endpoints: &[String]) {
    let digests = until_async("nodes at the same index", || async {
        let mut digests = Vec::new();
        for endpoint in endpoints {
            let mut client = ClusterClient::new(connect::lazy(endpoint).unwrap());
            let status = client.status(StatusRequest { digest: true }).await.ok()?.into_inner();
            digests.push((status.applied_index, status.digest));
        }
        digests.iter().all(|one| one.0 == digests[0].0).then_some(digests)
    });
    let digests = digests.await;
    assert!(digests.iter().all(|one| one.1 == digests[0].1), "nodes differ: {digests:?}");
}
