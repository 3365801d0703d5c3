//! Barriers whose members are well.

use tonic::Code;

use crate::support::payloads::{barrier_error, service_error};
use crate::support::stage::{Stage, refused};

#[tokio::test(start_paused = true)]
async fn barrier() {
    let (stage, [first, second, third]) = Stage::connected().await;
    let waiting = [stage.hold(first.arrive("b", 0, &[])).await, stage.hold(second.arrive("b", 0, &[])).await];
    assert_eq!(third.arrive("b", 0, &[]).await.expect("all are here"), 0);
    for call in waiting {
        assert_eq!(call.end().await.expect("all are here"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn barrier_with_subset_of_tasks() {
    let (stage, [first, second, _]) = Stage::connected().await;
    let waiting = stage.hold(first.arrive("b", 0, &[0, 1])).await;
    second.arrive("b", 0, &[1, 0]).await.expect("both are here");
    waiting.end().await.expect("both are here");
}

#[tokio::test(start_paused = true)]
async fn barrier_with_mismatched_tasks() {
    let (stage, [first, second, _]) = Stage::connected().await;
    let waiting = stage.hold(first.arrive("b", 0, &[0, 1])).await;
    let status = refused(second.arrive("b", 0, &[1, 2]).await, Code::InvalidArgument);
    let text = "Conflicting tasks specified by different processes for the same barrier: b::0.";
    assert!(status.message().starts_with(text), "{}", status.message());
    refused(waiting.end().await, Code::InvalidArgument);
}

#[tokio::test(start_paused = true)]
async fn barrier_by_non_participating_task() {
    let (stage, [first, _, third]) = Stage::connected().await;
    refused(first.arrive("a", 0, &[1, 2]).await, Code::InvalidArgument);
    let waiting = stage.hold(first.arrive("b", 0, &[0, 1])).await;
    let stranger = refused(third.arrive("b", 0, &[0, 1]).await, Code::InvalidArgument);
    assert_eq!(stranger.message(), "A non-participating task (2) called the barrier: b::0");
    let told = refused(waiting.end().await, Code::InvalidArgument);
    assert_eq!(told.message(), stranger.message());
}
#[tokio::test(start_paused = true)]
async fn barrier_by_non_participating_task_three_tasks() {
    let (stage, [first, second, third]) = Stage::connected().await;
    let waiting = stage.hold(first.arrive("b", 0, &[0, 1])).await;
    second.arrive("b", 0, &[0, 1]).await.expect("both are here");
    waiting.end().await.expect("both are here");
    refused(third.arrive("b", 0, &[0, 1]).await, Code::InvalidArgument);
}
#[tokio::test(start_paused = true)]
async fn barrier_by_non_cluster_task() {
    let (_stage, [first, _]) = Stage::connected().await;
    let status = refused(first.arrive("b", 0, &[0, 9]).await, Code::InvalidArgument);
    assert!(status.message().starts_with("Unexpected task (9)"), "{}", status.message());
}

#[tokio::test(start_paused = true)]
async fn barrier_timeout() {
    let (stage, [first, second, _]) = Stage::connected().await;
    let waiting = stage.hold(second.arrive_within(2000, "b", 0, &[])).await;
    let status = refused(first.arrive("b", 0, &[]).await, Code::DeadlineExceeded);
    let text = status.message();
    assert!(text.starts_with("Barrier timed out. Id: b::0."), "{text}");
    assert!(text.contains("# of tasks that reached the barrier: 2/3.\n"), "{text}");
    assert!(text.contains("The first task at the barrier: 1. Some timed out task names:\n2\n"), "{text}");
    assert_eq!(barrier_error(&status), Some(("b".to_owned(), 0)));
    let told = refused(waiting.end().await, Code::DeadlineExceeded);
    assert_eq!(told.message(), text);
}

#[tokio::test(start_paused = true)]
async fn barrier_returns_previous_error() {
    let (stage, [first, second]) = Stage::connected().await;
    let waiting = stage.hold(first.arrive("b", 0, &[])).await;
    first.report(13, "boom").await.expect("accepted");
    let early = refused(waiting.end().await, Code::Internal);
    let late = refused(second.arrive("b", 0, &[]).await, Code::Internal);
    assert_eq!(late.message(), early.message());
}
#[tokio::test(start_paused = true)]
async fn two_consecutive_barriers_succeed() {
    let (stage, [first, second]) = Stage::connected().await;
    for counter in 0..2 {
        let waiting = stage.hold(first.arrive("b", counter, &[])).await;
        assert_eq!(second.arrive("b", counter, &[]).await.expect("both are here"), counter);
        assert_eq!(waiting.end().await.expect("both are here"), counter);
    }
}

#[tokio::test(start_paused = true)]
async fn barrier_ongoing_but_mismatched_counter_internal_error() {
    let (stage, [first, second, third]) = Stage::connected().await;
    let waiting = stage.hold(first.arrive("b", 0, &[])).await;
    let wrong = second.arrive("b", 1, &[]).await;
    for outcome in [wrong, waiting.end().await, third.arrive("b", 0, &[]).await] {
        let status = refused(outcome, Code::Internal);
        assert_eq!(barrier_error(&status), Some(("b".to_owned(), 0)), "the service's own counter");
    }
}
#[tokio::test(start_paused = true)]
async fn second_barrier_use_wrong_counter_internal_error() {
    let (stage, [first, second]) = Stage::connected().await;
    let waiting = stage.hold(first.arrive("b", 0, &[])).await;
    second.arrive("b", 0, &[]).await.expect("both are here");
    waiting.end().await.expect("both are here");
    assert_eq!(first.arrive("b", 0, &[]).await.expect("the first one's outcome"), 0);
    for counter in [-1, 2] {
        let status = refused(first.arrive("b", counter, &[]).await, Code::Internal);
        let text = format!(
            "Barrier (b::{counter}) is invoked by the task, but the service thinks it is the 0-th instance."
        );
        assert!(status.message().starts_with(&text), "{}", status.message());
        assert_eq!(barrier_error(&status), Some(("b".to_owned(), 0)), "the service's own counter");
    }
}
#[tokio::test(start_paused = true)]
async fn barrier_cancelled() {
    let (stage, [first, second]) = Stage::connected().await;
    let waiting = stage.hold(first.arrive("b", 0, &[])).await;
    second.cancel("b", 0).await.expect("cancelled");
    let status = refused(waiting.end().await, Code::Cancelled);
    assert_eq!(status.message(), "Barrier (b::0) is cancelled by task: 1");
}

#[tokio::test(start_paused = true)]
async fn cancel_after_barrier_has_passed() {
    let (stage, [first, second]) = Stage::connected().await;
    let waiting = stage.hold(first.arrive("b", 0, &[])).await;
    second.arrive("b", 0, &[]).await.expect("both are here");
    waiting.end().await.expect("both are here");
    let late = refused(first.cancel("b", 0).await, Code::FailedPrecondition);
    assert!(late.message().contains("has already been passed"), "{}", late.message());
    second.arrive("b", 0, &[]).await.expect("it has passed all the same");
}

#[tokio::test(start_paused = true)]
async fn cancel_barrier_wrong_counter_failed_precondition() {
    let (stage, [first, second]) = Stage::connected().await;
    let waiting = stage.hold(first.arrive("b", 0, &[])).await;
    second.arrive("b", 0, &[]).await.expect("both are here");
    waiting.end().await.expect("both are here");
    let waiting = stage.hold(first.arrive("b", 1, &[])).await;
    for counter in [0, 2] {
        let status = refused(second.cancel("b", counter).await, Code::FailedPrecondition);
        assert!(status.message().contains("likely due to a restart"), "{}", status.message());
        stage.still_holds(&waiting).await;
    }
    second.cancel("b", 1).await.expect("cancelled");
    refused(waiting.end().await, Code::Cancelled);
}
#[tokio::test(start_paused = true)]
async fn passed_barrier_returns_immediately() {
    let (stage, [first, second]) = Stage::connected().await;
    let waiting = stage.hold(first.arrive("b", 0, &[])).await;
    second.arrive("b", 0, &[]).await.expect("both are here");
    waiting.end().await.expect("both are here");
    assert_eq!(first.arrive("b", 0, &[]).await.expect("it has passed"), 0);
}

#[tokio::test(start_paused = true)]
async fn barrier_still_blocks_if_same_task_calls_ongoing_barrier_repeatedly() {
    let (stage, [first, second]) = Stage::connected().await;
    let earlier = stage.hold(first.arrive("b", 0, &[])).await;
    let later = stage.hold(first.arrive("b", 0, &[])).await;
    let status = refused(earlier.end().await, Code::Cancelled);
    assert_eq!(service_error(&status), None, "no error of the barrier");
    stage.still_holds(&later).await;
    second.arrive("b", 0, &[]).await.expect("both are here");
    later.end().await.expect("both are here");
}
