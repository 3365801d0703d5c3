//! Barriers, and who is alive.

use tonic::Code;

use super::{start, usual};
use crate::client::plays::barriers;

#[tokio::test(start_paused = true)]
async fn wait_at_barrier_succeed() {
    barriers::wait_at_barrier_succeed(&start(usual(2)).await).await;
}

#[tokio::test(start_paused = true)]
async fn wait_at_barrier_timeout() {
    barriers::wait_at_barrier_timeout(&start(usual(2)).await).await;
}

#[tokio::test(start_paused = true)]
async fn wait_at_barrier_timeout_with_different_barrier_id() {
    barriers::wait_at_barrier_timeout_with_different_barrier_id(&start(usual(2)).await).await;
}

#[tokio::test(start_paused = true)]
async fn wait_at_barrier_subset_succeeds() {
    barriers::wait_at_barrier_subset_succeeds(&start(usual(3)).await).await;
}

#[tokio::test(start_paused = true)]
async fn wait_at_barrier_subset_non_participating_process_attempts_fails() {
    let cluster = start(usual(3)).await;
    barriers::wait_at_barrier_subset_non_participating_process_attempts_fails(&cluster).await;
}

#[tokio::test(start_paused = true)]
async fn get_live_tasks_succeeds() {
    let cluster = start(usual(3)).await;
    let [first, second, third] = cluster.connected().await;
    let all = [0, 1, 2];
    let (left, middle, right) = tokio::join!(first.alive(&all), second.alive(&all), third.alive(&all));
    for live in [left, middle, right] {
        let ids: Vec<i32> = live.expect("all have asked").into_iter().map(|(task, _)| task).collect();
        assert_eq!(ids, all);
    }
}

#[tokio::test(start_paused = true)]
async fn get_live_tasks_without_being_a_member() {
    let cluster = start(usual(3)).await;
    let agents: [_; 3] = cluster.connected().await;
    for agent in &agents {
        let others: Vec<i32> = (0..3).filter(|task| *task != agent.task()).collect();
        let refused = agent.alive(&others).await.expect_err("it does not ask about itself");
        assert_eq!(refused.code(), Code::InvalidArgument, "task {}", agent.task());
        assert!(refused.details().is_empty(), "upstream sends no payload here: {refused:?}");
    }
}
