//! Which tasks of a set are alive.

use tonic::Code;

use crate::support::stage::{Stage, refused};
use crate::support::task::Task;

const ALL: [i32; 3] = [0, 1, 2];

fn lives<const N: usize>(tasks: [&Task; N]) -> Vec<(i32, u64)> {
    tasks.iter().map(|task| (task.id, task.life)).collect()
}

/// A job of three, one of which is polled for, so that errors of another put nobody in error.
async fn three_that_listen() -> (Stage, [Task; 3]) {
    let (stage, tasks) = Stage::connected().await;
    stage.hold(tasks[0].poll()).await;
    (stage, tasks)
}

#[tokio::test(start_paused = true)]
async fn successful_get_alive_tasks() {
    let (stage, [first, second, third]) = Stage::connected().await;
    let waiting = [stage.hold(first.alive(&ALL)).await, stage.hold(second.alive(&ALL)).await];
    let everybody = lives([&first, &second, &third]);
    assert_eq!(third.alive(&ALL).await.expect("all have asked"), everybody);
    for call in waiting {
        assert_eq!(call.end().await.expect("all have asked"), everybody);
    }
}

#[tokio::test(start_paused = true)]
async fn failed_task_before_calling_get_alive_tasks() {
    let (stage, [first, second, third]) = three_that_listen().await;
    third.report(5, "boom").await.expect("accepted");
    let waiting = stage.hold(first.alive(&ALL)).await;
    let living = lives([&first, &second]);
    assert_eq!(second.alive(&ALL).await.expect("the living have asked"), living);
    assert_eq!(waiting.end().await.expect("the living have asked"), living);
}

#[tokio::test(start_paused = true)]
async fn failed_task_after_calling_get_alive_tasks() {
    let (stage, [first, second, third]) = three_that_listen().await;
    let waiting = [stage.hold(first.alive(&ALL)).await, stage.hold(second.alive(&ALL)).await];
    third.report(5, "boom").await.expect("accepted");
    for call in waiting {
        assert_eq!(call.end().await.expect("the living have asked"), lives([&first, &second]));
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_get_alive_tasks() {
    let (stage, [first, second, third]) = Stage::connected().await;
    let left = stage.hold(first.alive(&[0, 1])).await;
    let right = stage.hold(second.alive(&[1, 2])).await;
    assert_eq!(third.alive(&[1, 2]).await.expect("both have asked"), lives([&second, &third]));
    assert_eq!(right.end().await.expect("both have asked"), lives([&second, &third]));
    stage.still_holds(&left).await;
    assert_eq!(second.alive(&[0, 1]).await.expect("both have asked"), lives([&first, &second]));
    assert_eq!(left.end().await.expect("both have asked"), lives([&first, &second]));
}

#[tokio::test(start_paused = true)]
async fn calling_get_alive_tasks_without_being_a_member() {
    let (_stage, [first, _]) = Stage::connected().await;
    let status = refused(first.alive(&[1]).await, Code::InvalidArgument);
    let text = "Requesting task 0 is not one of the tasks specified in a GetAliveTasks request.";
    assert_eq!(status.message(), text);
}

#[tokio::test(start_paused = true)]
async fn redundant_get_alive_tasks() {
    let (stage, [first, second]) = Stage::connected().await;
    let twice = [stage.hold(first.alive(&[0, 1])).await, stage.hold(first.alive(&[0, 1])).await];
    let both = lives([&first, &second]);
    assert_eq!(second.alive(&[0, 1]).await.expect("both have asked"), both);
    for call in twice {
        assert_eq!(call.end().await.expect("both have asked"), both);
    }
}
