//! Reset and shutdown.

use tonic::Code;
use tripod_state::ids::DurationMs;
use tripod_state::job::Spec;

use crate::support::stage::{Stage, plain, refused, until_refused};
use crate::support::task::Task;

/// The task has left: its heartbeats are accepted, and after a while no more.
async fn has_grace(task: &Task) {
    task.beat().await.expect("within the grace period");
    let over = until_refused(|| task.beat()).await;
    assert_eq!(over.code(), Code::InvalidArgument, "{}", over.message());
    assert!(over.message().contains("must be registered before"), "{}", over.message());
}

#[tokio::test(start_paused = true)]
async fn reset_and_register_again() {
    let (stage, [task]) = Stage::connected().await;
    stage.worker(0).reset().await.expect("it leaves");
    task.restarted().register().await.expect("it comes back");
}

#[tokio::test(start_paused = true)]
async fn reset_heartbeats_are_accepted_for_a_grace_period() {
    let (stage, task) = Stage::with_short_grace().await;
    stage.worker(0).reset().await.expect("it leaves");
    has_grace(&task).await;
}

#[tokio::test(start_paused = true)]
async fn reset_fails_ongoing_barrier() {
    let (stage, [first, _]) = Stage::connected().await;
    let waiting = stage.hold(first.arrive("b", 0, &[])).await;
    stage.worker(1).reset().await.expect("it leaves");
    refused(waiting.end().await, Code::Internal);
}

#[tokio::test(start_paused = true)]
async fn shutdown_heartbeats_are_accepted_for_a_grace_period() {
    let (_stage, task) = Stage::with_short_grace().await;
    task.shut_down().await.expect("it leaves");
    has_grace(&task).await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_fails_ongoing_barrier() {
    let (stage, [first, second]) = Stage::connected().await;
    let waiting = stage.hold(first.arrive("b", 0, &[])).await;
    second.shut_down().await.expect("it leaves");
    let status = refused(waiting.end().await, Code::Internal);
    let text = "Barrier failed because: task disconnected. Barrier Id: b::0, Task: 1";
    assert_eq!(status.message(), text);
}

#[tokio::test(start_paused = true)]
async fn shutdown_with_barrier_barrier_succeeds() {
    let stage = Stage::set(Spec { shutdown_timeout_ms: DurationMs(60_000), ..plain(2) }).await;
    let [first, second] = stage.connect().await;
    let waiting = stage.hold(first.shut_down()).await;
    second.shut_down().await.expect("both leave");
    waiting.end().await.expect("both leave");
    for task in [first, second] {
        task.restarted().register().await.expect("it comes back");
    }
}

/// A job whose first task has waited in vain for the second one to leave.
async fn left_alone() -> (Stage, [Task; 2]) {
    let stage = Stage::set(Spec { shutdown_timeout_ms: DurationMs(200), ..plain(2) }).await;
    let tasks = stage.connect::<2>().await;
    let status = refused(tasks[0].shut_down().await, Code::Internal);
    assert!(status.message().starts_with("Shutdown barrier has failed."), "{}", status.message());
    assert!(status.message().contains("timed out"), "{}", status.message());
    (stage, tasks)
}

#[tokio::test(start_paused = true)]
async fn shutdown_with_barrier_barrier_fails_task_disconnects_other_task_is_alerted() {
    let (_stage, tasks) = left_alone().await;
    for task in tasks {
        refused(task.register().await, Code::Aborted);
        refused(task.restarted().register().await, Code::Aborted);
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_with_barrier_barrier_fails_without_client_connection_set_task_to_error() {
    let (_stage, [_, absent]) = left_alone().await;
    refused(absent.beat().await, Code::Aborted);
}
