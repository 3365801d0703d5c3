//! Errors that are told by held polls.

use tonic::Code;
use tripod_state::ids::DurationMs;
use tripod_state::job::Spec;

use crate::support::payloads::service_error;
use crate::support::stage::{Stage, plain, refused, until_refused};

#[tokio::test(start_paused = true)]
async fn error_polling_requests_got_cancelled_error_upon_service_shutdown() {
    let (mut stage, [first, second]) = Stage::connected().await;
    let polls = [stage.hold(first.poll()).await, stage.hold(second.poll()).await];
    stage.served.begin_to_stop();
    for poll in polls {
        refused(poll.end().await, Code::Cancelled);
    }
}

#[tokio::test(start_paused = true)]
async fn heartbeat_timeout_error_can_propagate_through_error_polling() {
    let stage = Stage::set(Spec { heartbeat_timeout_ms: DurationMs(2000), ..plain(2) }).await;
    let [first, second] = stage.connect().await;
    for task in [&first, &second] {
        task.beat().await.expect("alive");
    }
    let polls = [tokio::spawn(first.poll()), tokio::spawn(second.poll())];
    for poll in polls {
        refused(poll.await.expect("no panic"), Code::Unavailable);
    }
}

#[tokio::test(start_paused = true)]
async fn heartbeat_timeout_error_from_one_task_can_propagate_through_error_polling() {
    let (stage, [first, second]) = Stage::connected().await;
    let polls = [stage.hold(first.poll()).await, stage.hold(second.poll()).await];
    stage.silence(&[&second]).await;
    for poll in polls {
        let status = refused(poll.end().await, Code::Unavailable);
        let text = "The following tasks are unhealthy (stopped sending heartbeats):\n1\n";
        assert!(status.message().starts_with(text), "{}", status.message());
    }
    first.beat().await.expect("still alive");
}

#[tokio::test(start_paused = true)]
async fn reported_error_can_propagate_through_error_polling() {
    let (stage, [first, second]) = Stage::connected().await;
    let polls = [stage.hold(first.poll()).await, stage.hold(second.poll()).await];
    second.report(8, "disk is full").await.expect("accepted");
    for poll in polls {
        let status = refused(poll.end().await, Code::ResourceExhausted);
        assert_eq!(status.message(), "disk is full");
        let error = service_error(&status).expect("the service's error");
        assert!(error.is_reported_error);
        assert_eq!(error.source_task_id, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn do_not_allow_poll_for_error_if_not_in_cluster() {
    let (stage, [_, _]) = Stage::connected().await;
    for stranger in [-1, 2] {
        let status = refused(stage.task(stranger).poll().await, Code::InvalidArgument);
        assert!(status.message().contains("not in the cluster"), "{}", status.message());
    }
}

#[tokio::test(start_paused = true)]
async fn do_not_allow_poll_for_error_if_task_not_registered() {
    let stage = Stage::set(plain(1)).await;
    let [task] = stage.tasks();
    let status = refused(task.poll().await, Code::FailedPrecondition);
    assert!(status.message().contains("has not been registered"), "{}", status.message());
}

#[tokio::test(start_paused = true)]
async fn allow_poll_for_error_within_grace_period_if_task_has_shut_down() {
    let (mut stage, [task]) = Stage::connected().await;
    task.shut_down().await.expect("it leaves");
    let poll = stage.hold(task.poll()).await;
    stage.served.begin_to_stop();
    refused(poll.end().await, Code::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn do_not_allow_poll_for_error_if_task_has_shut_down() {
    let (_stage, task) = Stage::with_short_grace().await;
    task.shut_down().await.expect("it leaves");
    let over = until_refused(|| task.beat()).await;
    assert_eq!(over.code(), Code::InvalidArgument, "{}", over.message());
    let status = refused(task.poll().await, Code::FailedPrecondition);
    assert!(status.message().contains("has disconnected"), "{}", status.message());
}

#[tokio::test(start_paused = true)]
async fn do_not_allow_poll_for_error_after_reset() {
    let (stage, task) = Stage::with_short_grace().await;
    stage.worker(0).reset().await.expect("it leaves");
    let over = until_refused(|| task.beat()).await;
    assert_eq!(over.code(), Code::InvalidArgument, "{}", over.message());
    let status = refused(task.poll().await, Code::FailedPrecondition);
    assert!(status.message().contains("has disconnected"), "{}", status.message());
}

#[tokio::test(start_paused = true)]
async fn do_not_allow_poll_for_error_when_in_error_state() {
    let (_stage, [task]) = Stage::connected().await;
    task.report(5, "boom").await.expect("accepted");
    let status = refused(task.poll().await, Code::FailedPrecondition);
    assert!(status.message().contains("already in error"), "{}", status.message());
}

#[tokio::test(start_paused = true)]
async fn do_not_allow_poll_for_error_if_task_is_stale() {
    let (stage, [task]) = Stage::connected().await;
    stage.silence(&[&task]).await;
    let status = refused(task.poll().await, Code::FailedPrecondition);
    assert!(status.message().contains("already in error"), "{}", status.message());
}

#[tokio::test(start_paused = true)]
async fn can_propagate_task_registration_error_through_error_polling() {
    let (stage, [first, second]) = Stage::connected().await;
    let poll = stage.hold(first.poll()).await;
    let conflict = refused(second.restarted().register().await, Code::Aborted);
    let told = refused(poll.end().await, Code::Aborted);
    assert_eq!(told.message(), conflict.message());
}

#[tokio::test(start_paused = true)]
async fn late_polling_task_can_get_error() {
    let (stage, [first, second]) = Stage::connected().await;
    let poll = stage.hold(first.poll()).await;
    first.report(5, "boom").await.expect("accepted");
    refused(poll.end().await, Code::NotFound);
    let late = refused(second.poll().await, Code::NotFound);
    assert_eq!(late.message(), "boom");
}
