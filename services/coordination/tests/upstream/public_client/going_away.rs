//! Somebody goes away: a task, or the service.

use tonic::Code;
use tripod_state::job;

use super::{start, usual};
use crate::client::plays::life;
use crate::client::{Cluster, Config, IMPATIENT, ms};

/// A job where a silent task is soon missed.
async fn impatient() -> Cluster {
    start(job::Spec { heartbeat_timeout_ms: ms(IMPATIENT), ..usual(3) }).await
}

/// The same, of processes that never poll.
async fn without_polls() -> Cluster {
    let mut cluster = impatient().await;
    cluster.config = Config { polls: false, ..cluster.config };
    cluster
}

/// One leaves, one falls silent, and the third one learns by its heartbeat that nobody will leave any more.
async fn shutdown_is_interrupted(cluster: &Cluster) {
    let [dying, quick, slow] = cluster.connected().await;
    let leaving = cluster.shutting_down(&quick).await;
    drop(dying);

    let interrupted = leaving.end().await.expect_err("one is missing");
    assert_eq!(interrupted.code(), Code::Internal);
    assert!(interrupted.message().contains("heartbeat timeout"), "{interrupted:?}");
    let told = slow.failed().await;
    assert_eq!(told.code(), Code::Aborted, "{told:?}");
    assert!(told.message().contains("Shutdown barrier has failed"), "{told:?}");
    let late = slow.shut_down().await.expect_err("the agent is in error");
    assert_eq!(late.code(), Code::FailedPrecondition);
}

#[tokio::test(start_paused = true)]
async fn clients_terminate_shutdown_if_any_client_goes_away() {
    shutdown_is_interrupted(&impatient().await).await;
}

#[tokio::test(start_paused = true)]
async fn clients_terminate_shutdown_if_any_client_goes_away_without_error_polling() {
    shutdown_is_interrupted(&without_polls().await).await;
}

#[tokio::test(start_paused = true)]
async fn missed_heartbeat_callback_is_executed_if_any_client_goes_away() {
    life::missed_heartbeat_callback_is_executed_if_any_client_goes_away(&impatient().await).await;
}

#[tokio::test(start_paused = true)]
async fn clients_receive_missed_heartbeat_if_any_client_goes_away_without_error_polling() {
    let cluster = without_polls().await;
    let [dying, second, third] = cluster.connected().await;
    drop(dying);
    for survivor in [second, third] {
        // Nobody ever polled, so all are set to error, and each learns that of itself.
        let told = survivor.failed().await;
        assert_eq!(told.code(), Code::Aborted, "{told:?}");
        assert!(told.message().contains("(stopped sending heartbeats):\n0\n"), "{told:?}");
    }
}

/// There is one address here and nothing behind it once the service has stopped.
#[tokio::test(start_paused = true)]
async fn clients_terminate_if_service_goes_away() {
    let cluster = impatient().await;
    let agents: [_; 3] = cluster.connected().await;
    cluster.served.stop().await;
    for agent in agents {
        let told = agent.failed().await;
        assert_eq!(told.code(), Code::Unavailable, "a lost connection: {told:?}");
        let late = agent.shut_down().await.expect_err("the agent is in error");
        assert_eq!(late.code(), Code::FailedPrecondition);
    }
}
