//! Who may join a job, and when.

use tonic::Code;
use tripod_state::ids::DurationMs;
use tripod_state::job::Spec;

use crate::support::SERVICE;
use crate::support::payloads::service_error;
use crate::support::stage::{Stage, plain, refused};

#[tokio::test(start_paused = true)]
async fn test_standalone_service() {
    let (stage, [first, second]) = Stage::connected().await;
    assert_eq!(first.beat().await.expect("alive"), SERVICE);
    assert_eq!(second.beat().await.expect("alive"), SERVICE);
    refused(stage.task(2).beat().await, Code::InvalidArgument);
    for _ in 0..2 {
        refused(second.restarted().beat().await, Code::Aborted);
    }
}

#[tokio::test(start_paused = true)]
async fn register_task_already_connected_succeeds() {
    let (_stage, [task]) = Stage::connected().await;
    assert_eq!(task.register().await.expect("the same life"), SERVICE);
}

#[tokio::test(start_paused = true)]
async fn register_task_already_connected_different_incarnation_fails() {
    let (_stage, [_, task]) = Stage::connected().await;
    let status = refused(task.restarted().register().await, Code::Aborted);
    assert_eq!(
        status.message(),
        "1 unexpectedly tried to connect with a different incarnation. It has likely restarted."
    );
    assert_eq!(service_error(&status).expect("the service's error").source_task_id, 1);
}

#[tokio::test(start_paused = true)]
async fn register_task_already_in_error_fails() {
    let (_stage, [task]) = Stage::connected().await;
    task.report(5, "boom").await.expect("accepted");
    let status = refused(task.register().await, Code::Aborted);
    let text = "0 unexpectedly tried to connect while it is already in error.";
    assert!(status.message().starts_with(text), "{}", status.message());
}

#[tokio::test(start_paused = true)]
async fn test_task_restart() {
    let (_stage, [first, second]) = Stage::connected().await;
    refused(second.restarted().register().await, Code::Aborted);
    // Nobody polls, so the others hear of it by their heartbeats.
    refused(first.beat().await, Code::Aborted);
}

#[tokio::test(start_paused = true)]
async fn register_with_barrier_old_heartbeat_restarted_tasks_can_reconnect() {
    let stage = Stage::set(plain(2)).await;
    let [first, second] = stage.tasks();
    let stray = refused(first.beat().await, Code::InvalidArgument);
    assert!(stray.message().contains("must be registered before"), "{}", stray.message());
    let waiting = stage.hold(first.register()).await;
    second.register().await.expect("all are here");
    waiting.end().await.expect("all are here");
    first.beat().await.expect("the stray beat has done no harm");
}

#[tokio::test(start_paused = true)]
async fn register_with_barrier_restart_before_barrier_succeeds() {
    let stage = Stage::set(plain(2)).await;
    let [first, second] = stage.tasks();
    let old = stage.hold(first.register()).await;
    let first = first.restarted();
    let new = stage.hold(first.register()).await;
    let status = refused(old.end().await, Code::AlreadyExists);
    assert_eq!(status.message(), "Aborted connect attempt as there is a request from a newer incarnation.");
    second.register().await.expect("all are here");
    new.end().await.expect("all are here");
    first.register().await.expect("a repeated call");
}

#[tokio::test(start_paused = true)]
async fn register_with_barrier_restart_after_barrier_fails() {
    let (_stage, [first, second]) = Stage::connected().await;
    refused(first.restarted().register().await, Code::Aborted);
    refused(second.arrive("b", 0, &[]).await, Code::Internal);
}

#[tokio::test(start_paused = true)]
async fn register_with_barrier_timeout() {
    let spec = Spec { register_timeout_ms: DurationMs(200), ..plain(2) };
    let stage = Stage::set(spec).await;
    let [first, second] = stage.tasks();
    let status = refused(first.register().await, Code::DeadlineExceeded);
    assert!(status.message().starts_with("Barrier timed out."), "{}", status.message());
    refused(second.register().await, Code::Aborted);
}
