//! Connecting, leaving, and being missed.

use std::time::Duration;

use tonic::Code;
use tripod_state::job;
use tripod_state::task::Phase;

use crate::client::plays::life;
use crate::client::{Cluster, impatient, ms, spec};
use crate::support::payloads::service_error;

#[tokio::test(start_paused = true)]
async fn connect_and_shutdown_are_barriers() {
    life::connect_and_shutdown_are_barriers(&Cluster::start(spec(3)).await).await;
}

#[tokio::test(start_paused = true)]
async fn clients_terminate_shutdown_if_any_client_goes_away() {
    let cluster = Cluster::start(impatient(3)).await;
    let [dying, quick, slow] = cluster.connected().await;
    let leaving = cluster.shutting_down(&quick).await;
    drop(dying);

    let interrupted = leaving.end().await.expect_err("one is missing");
    assert_eq!(interrupted.code(), Code::Internal);
    assert!(interrupted.message().contains("heartbeat timeout"), "{interrupted:?}");
    let told = slow.failed().await;
    assert_eq!(told.code(), Code::Internal, "{told:?}");
    let late = slow.shut_down().await.expect_err("the agent is in error");
    assert_eq!(late.code(), Code::FailedPrecondition);
}

#[tokio::test(start_paused = true)]
async fn clients_shutdown_successfully() {
    life::clients_shutdown_successfully(&Cluster::start(spec(3)).await).await;
}

#[tokio::test(start_paused = true)]
async fn missed_heartbeat_callback_is_executed_if_any_client_goes_away() {
    let cluster = Cluster::start(impatient(3)).await;
    life::missed_heartbeat_callback_is_executed_if_any_client_goes_away(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_error_is_propagated_to_clients() {
    let spec = job::Spec { shutdown_timeout_ms: ms(Duration::from_millis(500)), ..spec(2) };
    let cluster = Cluster::start(spec).await;
    let [leaving, staying] = cluster.connected().await;
    let alone = leaving.shut_down().await.expect_err("nobody else leaves");
    assert_eq!(alone.code(), Code::Internal);
    assert!(alone.message().contains("timed out"), "{alone:?}");
    for agent in [leaving, staying] {
        let told = agent.failed().await;
        assert_eq!(told.code(), Code::Internal, "task {}: {told:?}", agent.task());
    }
}

#[tokio::test(start_paused = true)]
async fn late_clients_are_ok() {
    life::late_clients_are_ok(&Cluster::start(spec(3)).await).await;
}

#[tokio::test(start_paused = true)]
async fn connect_eventually_times_out_if_a_client_does_not_show_up() {
    let spec = job::Spec { register_timeout_ms: ms(Duration::from_millis(500)), ..spec(3) };
    let cluster = Cluster::start(spec).await;
    life::connect_eventually_times_out_if_a_client_does_not_show_up(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn client_restart_after_connect_fails() {
    life::client_restart_after_connect_fails(&Cluster::start(spec(3)).await).await;
}

#[tokio::test(start_paused = true)]
async fn client_restart_during_connect_succeeds() {
    life::client_restart_during_connect_succeeds(&Cluster::start(spec(3)).await).await;
}

#[tokio::test(start_paused = true)]
async fn nonrecoverable_client_dies_error_propagated() {
    let cluster = Cluster::start(impatient(3)).await;
    let [dying, second, third] = cluster.connected().await;
    drop(dying);
    for survivor in [&second, &third] {
        let told = survivor.failed().await;
        assert_eq!(told.code(), Code::Unavailable);
        assert!(service_error(&told).is_some(), "the service's word, not a lost connection: {told:?}");
    }
    assert_eq!(cluster.phase(0), Phase::Error);
    assert_eq!(
        cluster.phase(second.task()),
        Phase::Connected,
        "an error is told to it, and not made its own"
    );
}
