//! Barriers.

use std::time::Duration;

use tonic::transport::Endpoint;
use tonic::{Code, Status};
use tripod_proto::xla::coordination as pb;
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient;
use tripod_state::job;

use crate::client::plays::barriers::{self, LONG, SHORT};
use crate::client::{Agent, Cluster, incarnations, ms, spec};
use crate::support::payloads::barrier_error;

async fn both(first: &Agent, second: &Agent, id: &str) -> Result<(), Status> {
    let (left, right) =
        tokio::join!(first.wait_at_barrier(id, LONG, &[]), second.wait_at_barrier(id, LONG, &[]));
    left.and(right)
}

#[tokio::test(start_paused = true)]
async fn wait_at_barrier_succeed() {
    barriers::wait_at_barrier_succeed(&Cluster::start(spec(2)).await).await;
}

#[tokio::test(start_paused = true)]
async fn wait_at_barrier_timeout() {
    barriers::wait_at_barrier_timeout(&Cluster::start(spec(2)).await).await;
}

#[tokio::test(start_paused = true)]
async fn wait_at_barrier_timeout_with_different_barrier_id() {
    barriers::wait_at_barrier_timeout_with_different_barrier_id(&Cluster::start(spec(2)).await).await;
}

#[tokio::test(start_paused = true)]
async fn wait_at_barrier_reuse_same_id_succeeds() {
    let cluster = Cluster::start(spec(2)).await;
    let [first, second] = cluster.connected().await;
    for (round, id) in ["barrier_1", "barrier_2", "barrier_1", "barrier_2"].into_iter().enumerate() {
        let mut waiting = cluster.at_barrier(&first, id).await;
        waiting.waits().await;
        second.wait_at_barrier(id, LONG, &[]).await.unwrap_or_else(|status| panic!("{round}: {status:?}"));
        waiting.end().await.unwrap_or_else(|status| panic!("{round}: {status:?}"));
    }
}

#[tokio::test(start_paused = true)]
async fn wait_at_barrier_restart_and_barrier_again_fails() {
    let spec = job::Spec { shutdown_timeout_ms: ms(Duration::ZERO), ..spec(2) };
    let cluster = Cluster::start(spec).await;
    let [first, second] = cluster.connected().await;
    for _ in 0..3 {
        both(&first, &second, "barrier_1").await.expect("the job makes progress");
    }
    second.destroy().await;
    let restarted = cluster.agent(1).await;
    cluster.connect(&restarted).await.expect("whoever left may come again");
    let refused =
        restarted.wait_at_barrier("barrier_1", LONG, &[]).await.expect_err("it counts from 0 again");
    assert_eq!(refused.code(), Code::Internal);
    assert!(refused.message().contains("restarted"), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn wait_at_barrier_timeout_then_okay_straggling_task_gets_same_error() {
    let cluster = Cluster::start(spec(2)).await;
    let [quick, straggler] = cluster.connected().await;
    let early = quick.wait_at_barrier("barrier_1", SHORT, &[]).await.expect_err("nobody else came");
    let late = straggler.wait_at_barrier("barrier_1", SHORT, &[]).await.expect_err("it is over");
    for refused in [early, late] {
        assert_eq!(refused.code(), Code::DeadlineExceeded);
        assert_eq!(
            barrier_error(&refused),
            Some(("barrier_1".into(), 0)),
            "or the next call has the wrong number"
        );
    }
    both(&quick, &straggler, "barrier_1").await.expect("both come in the next round");
}

#[tokio::test(start_paused = true)]
async fn wait_at_barrier_quick_task_start_barrier_twice_late_task_gets_slow_error() {
    let cluster = Cluster::start(spec(2)).await;
    let [quick, slow] = cluster.connected().await;
    for _ in 0..2 {
        both(&quick, &slow, "barrier_1").await.expect("both are there");
    }
    for counter in 2..4 {
        let early = quick.wait_at_barrier("barrier_1", SHORT, &[]).await.expect_err("nobody else came");
        assert_eq!(early.code(), Code::DeadlineExceeded);
        assert_eq!(barrier_error(&early), Some(("barrier_1".into(), counter)));
    }
    let late = slow.wait_at_barrier("barrier_1", LONG, &[]).await.expect_err("two rounds behind");
    assert_eq!(late.code(), Code::Internal);
    assert!(late.message().contains("too quick / slow"), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn wait_at_barrier_subset_succeeds() {
    barriers::wait_at_barrier_subset_succeeds(&Cluster::start(spec(3)).await).await;
}

#[tokio::test(start_paused = true)]
async fn wait_at_barrier_different_subset_fails() {
    let cluster = Cluster::start(spec(2)).await;
    let [first, second] = cluster.connected().await;
    first.wait_at_barrier("barrier_1", LONG, &[0]).await.expect("it waits for nobody else");
    let refused = second.wait_at_barrier("barrier_1", LONG, &[1]).await.expect_err("another list");
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("Conflicting tasks specified"), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn wait_at_barrier_subset_non_participating_process_attempts_fails() {
    barriers::wait_at_barrier_subset_non_participating_process_attempts_fails(&Cluster::start(spec(3)).await)
        .await;
}

/// What a gRPC client accepts in headers or trailers unless it is told otherwise.
const METADATA_BYTES_MAX: u32 = 8 << 10;

#[tokio::test(start_paused = true)]
async fn barrier_timeout_many_late_tasks_returns_correct_error() {
    for tasks in [100, 1_000_000] {
        let cluster = Cluster::start(spec(tasks)).await;
        let limited = |endpoint: Endpoint| endpoint.http2_max_header_list_size(METADATA_BYTES_MAX);
        let channel = cluster.served.connect_as(limited).await;
        let arrival = pb::BarrierRequest {
            incarnations: incarnations(),
            barrier_id: "test_barrier".to_owned(),
            barrier_timeout_in_ms: 100,
            ..Default::default()
        };
        let refused = CoordinationServiceClient::new(channel).barrier(arrival).await.expect_err("alone");
        assert_eq!(refused.code(), Code::DeadlineExceeded, "{tasks} tasks: {refused:?}");
        assert!(refused.message().contains(&format!("1/{tasks}.")), "{refused:?}");
        assert_eq!(barrier_error(&refused), Some(("test_barrier".into(), 0)));
    }
}
