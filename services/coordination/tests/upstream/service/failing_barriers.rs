//! Barriers of tasks that are in error.

use tonic::Code;

use crate::support::payloads::barrier_error;
use crate::support::stage::{Stage, refused};

#[tokio::test(start_paused = true)]
async fn barrier_fails_if_task_is_already_in_error() {
    let (stage, [first, second]) = Stage::connected().await;
    // Where somebody listens, an error puts nobody else in error.
    let poll = stage.hold(second.poll()).await;
    first.report(5, "boom").await.expect("accepted");
    refused(poll.end().await, Code::NotFound);
    let status = refused(second.arrive("b", 0, &[]).await, Code::Internal);
    let text = "Task (0) is already in error before the barrier was called. Barrier Id: b::0";
    assert!(status.message().starts_with(text), "{}", status.message());
    assert_eq!(barrier_error(&status), Some(("b".to_owned(), 0)));
}

#[tokio::test(start_paused = true)]
async fn barrier_fails_upon_task_error() {
    let (stage, [first, second, third]) = Stage::connected().await;
    let waiting = [stage.hold(first.arrive("b", 0, &[])).await, stage.hold(second.arrive("b", 0, &[])).await];
    third.report(5, "boom").await.expect("accepted");
    for call in waiting {
        let status = refused(call.end().await, Code::Internal);
        let text = "Barrier failed because: task is set to ERROR: NOT_FOUND: boom";
        assert!(status.message().starts_with(text), "{}", status.message());
    }
}

#[tokio::test(start_paused = true)]
async fn barrier_fails_if_task_is_in_error() {
    let (stage, [first, second]) = Stage::connected().await;
    stage.silence(&[&first, &second]).await;
    refused(first.arrive("b", 0, &[]).await, Code::Internal);
}

#[tokio::test(start_paused = true)]
async fn barrier_with_participating_tasks_fails_if_task_is_stale() {
    let (stage, [first, second]) = Stage::connected().await;
    stage.silence(&[&first, &second]).await;
    for members in [&[0][..], &[0, 1]] {
        let id = format!("of {}", members.len());
        refused(first.arrive(&id, 0, members).await, Code::Internal);
    }
}
#[tokio::test(start_paused = true)]
async fn barrier_with_subset_fails_if_task_is_stale() {
    let (stage, [first, second, third]) = Stage::connected().await;
    let poll = stage.hold(first.poll()).await;
    stage.silence(&[&second]).await;
    refused(poll.end().await, Code::Unavailable);
    refused(first.arrive("b", 0, &[0, 1]).await, Code::Internal);
    // Those who are well may still meet without the lost one.
    let waiting = stage.hold(first.arrive("c", 0, &[0, 2])).await;
    third.arrive("c", 0, &[0, 2]).await.expect("both are here");
    waiting.end().await.expect("both are here");
}

#[tokio::test(start_paused = true)]
async fn barrier_fails_after_error_polling_response() {
    let (stage, [first, second]) = Stage::connected().await;
    let polls = [stage.hold(first.poll()).await, stage.hold(second.poll()).await];
    stage.silence(&[&second]).await;
    for poll in polls {
        refused(poll.end().await, Code::Unavailable);
    }
    refused(first.arrive("b", 0, &[]).await, Code::Internal);
}
