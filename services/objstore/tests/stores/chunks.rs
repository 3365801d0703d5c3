//! `mars.v1.Worker` of a store.

use tonic::Code;
use tripod_proto::mars::v1::worker_client::WorkerClient;
use tripod_proto::mars::v1::{GetChunksDataRequest, GetWorkerStatusRequest};

use crate::support::Scene;

#[tokio::test]
async fn a_store_is_a_worker_and_says_what_the_nodes_say() {
    let scene = Scene::new().await;
    let mut config = scene.config();
    config.mutable_directory = Some(scene.path("mutable"));
    let store = scene.store_with(config).await;
    store.put(5, 1000).await;
    let address = store.store.address().to_owned();
    let mut worker = WorkerClient::connect(format!("http://{address}")).await.expect("connected");
    let status =
        worker.get_worker_status(GetWorkerStatusRequest::default()).await.expect("told").into_inner();
    assert_eq!((status.worker_id, status.chunks, status.memory_used_bytes), (address, 1, 1000));
    assert!(scene.path("mutable").is_dir());
    let request = GetChunksDataRequest {
        session_id: "s".to_owned(),
        chunk_keys: vec!["k".to_owned()],
        ..GetChunksDataRequest::default()
    };
    // These nodes know nothing of sessions.
    let refused = worker.get_chunks_data(request.clone()).await.expect_err("refused");
    assert_eq!(refused.code(), Code::Unimplemented);
    let other = GetChunksDataRequest { worker_id: "other:1".to_owned(), ..request };
    assert_eq!(worker.get_chunks_data(other).await.expect_err("refused").code(), Code::FailedPrecondition);
}
