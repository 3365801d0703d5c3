//! Connecting and leaving.

use std::time::Duration;

use tripod_state::job;

use super::{start, usual};
use crate::client::plays::life;
use crate::client::{Config, IMPATIENT, ms};

#[tokio::test(start_paused = true)]
async fn connect_and_shutdown_are_barriers() {
    life::connect_and_shutdown_are_barriers(&start(usual(3)).await).await;
}

#[tokio::test(start_paused = true)]
async fn clients_shutdown_successfully() {
    life::clients_shutdown_successfully(&start(usual(3)).await).await;
}

#[tokio::test(start_paused = true)]
async fn late_clients_are_ok() {
    life::late_clients_are_ok(&start(usual(3)).await).await;
}

#[tokio::test(start_paused = true)]
async fn connect_eventually_times_out_if_a_client_does_not_show_up() {
    let spec = job::Spec { register_timeout_ms: ms(Duration::from_millis(500)), ..usual(3) };
    life::connect_eventually_times_out_if_a_client_does_not_show_up(&start(spec).await).await;
}

#[tokio::test(start_paused = true)]
async fn client_restart_after_connect_fails() {
    let spec = job::Spec { heartbeat_timeout_ms: ms(IMPATIENT), ..usual(3) };
    life::client_restart_after_connect_fails(&start(spec).await).await;
}

#[tokio::test(start_paused = true)]
async fn client_restart_during_connect_succeeds() {
    life::client_restart_during_connect_succeeds(&start(usual(3)).await).await;
}

#[tokio::test(start_paused = true)]
async fn zero_init_timeout_should_still_wait_for_other_tasks() {
    let mut cluster = start(usual(2)).await;
    cluster.config = Config { init_timeout: Duration::ZERO, ..cluster.config };
    let [first, straggler] = cluster.agents().await;
    let mut early = cluster.connecting(&first).await;
    early.waits().await;
    straggler.connect().await.expect("the first one has waited");
    early.end().await.expect("at its first attempt");
}
