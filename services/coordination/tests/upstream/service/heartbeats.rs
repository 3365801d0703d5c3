//! Silence, and what it does to tasks that do not poll.

use tonic::Code;
use tripod_proto::xla::coordination::TaskState;
use tripod_state::ids::DurationMs;
use tripod_state::job::Spec;

use crate::support::stage::{Stage, plain, refused};
use crate::support::task::Task;

/// Waits until all tasks are in error, without a sign of life by any of them.
async fn until_all_fail(watcher: &Task) {
    let mut seen = -1;
    let all_fail = async {
        loop {
            let report = watcher.watch(seen).await.expect("a report");
            if report.task_state.iter().all(|task| task.state() == TaskState::Error) {
                return;
            }
            seen = report.version_number;
        }
    };
    tripod_wait::within("silence to be noticed", all_fail).await;
}

#[tokio::test(start_paused = true)]
async fn test_task_heartbeat_timeout() {
    let stage = Stage::set(Spec { heartbeat_timeout_ms: DurationMs(1000), ..plain(2) }).await;
    let tasks = stage.connect::<2>().await;
    for task in &tasks {
        task.beat().await.expect("alive");
    }
    until_all_fail(&tasks[0]).await;
    for task in tasks {
        let status = refused(task.beat().await, Code::Aborted);
        let text = format!("already-in-error task: {} with existing error: UNAVAILABLE", task.id);
        assert!(status.message().contains(&text), "{}", status.message());
    }
}

#[tokio::test(start_paused = true)]
async fn heartbeat_timeout_without_server_to_client_connection() {
    let (stage, [first, second]) = Stage::connected().await;
    stage.silence(&[&second]).await;
    let lost = refused(second.beat().await, Code::Aborted);
    assert!(lost.message().contains("heartbeat timeout"), "{}", lost.message());
    let told = refused(first.beat().await, Code::Aborted);
    let text = "All tasks were set to error because coordination service encountered an error, but was \
        unable to inform clients.";
    assert!(told.message().contains(text), "{}", told.message());
}
