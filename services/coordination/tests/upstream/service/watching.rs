//! The states of all tasks, as one of them sees them.

use tripod_proto::xla::coordination::{TaskState, WatchTasksResponse};

use crate::support::stage::Stage;

/// Everything that is there, now.
const NOW: i64 = -1;

/// Task, state and life of all, ascending.
fn states(report: &WatchTasksResponse) -> Vec<(i32, TaskState, u64)> {
    let states = report.task_state.iter().map(|task| (task.task_id, task.state(), task.incarnation));
    states.collect()
}

#[tokio::test(start_paused = true)]
async fn watch_tasks_succeeds() {
    let (_stage, [first, second]) = Stage::connected().await;
    let report = first.watch(NOW).await.expect("a report");
    let connected = TaskState::Connected;
    assert_eq!(states(&report), [(0, connected, first.life), (1, connected, second.life)]);
}

#[tokio::test(start_paused = true)]
async fn watch_tasks_returns_disconnected() {
    let (stage, [first, second]) = Stage::connected().await;
    stage.worker(1).reset().await.expect("it leaves");
    let report = first.watch(NOW).await.expect("a report");
    assert_eq!(states(&report)[1], (1, TaskState::Disconnected, second.life));
}

#[tokio::test(start_paused = true)]
async fn watch_tasks_returns_new_incarnation() {
    let (stage, [first, second]) = Stage::connected().await;
    stage.worker(1).reset().await.expect("it leaves");
    let second = second.restarted();
    second.register().await.expect("it comes back");
    let report = first.watch(NOW).await.expect("a report");
    assert_eq!(states(&report)[1], (1, TaskState::Connected, second.life));
}

#[tokio::test(start_paused = true)]
async fn watch_tasks_blocks_until_change() {
    let (stage, [first, second]) = Stage::connected().await;
    let now = first.watch(NOW).await.expect("a report").version_number;
    let watch = stage.hold(first.watch(now)).await;
    second.shut_down().await.expect("it leaves");
    let report = watch.end().await.expect("a report");
    assert!(report.version_number > now);
    assert_eq!(states(&report)[1], (1, TaskState::Disconnected, second.life));
}

#[tokio::test(start_paused = true)]
async fn watch_tasks_after_two_state_changes() {
    let (_stage, [first, second]) = Stage::connected().await;
    let old = first.watch(NOW).await.expect("a report").version_number;
    second.shut_down().await.expect("it leaves");
    let second = second.restarted();
    second.register().await.expect("it comes back");
    let report = first.watch(old).await.expect("at once");
    assert_eq!(states(&report)[1], (1, TaskState::Connected, second.life));
}
