//! Tests that only older trees have.

use tonic::Code;
use tripod_gateway::Options;
use tripod_proto::tensorflow::{CoordinatedTaskState, WatchJobStateResponse};
use tripod_state::ids::DurationMs;
use tripod_state::job::{Group, Spec};

use crate::support::stage::{Stage, plain, refused};
use crate::support::worker::Worker;

/// Everything that is there, now.
const NOW: i64 = -1;

/// The code of an error that says that a task was lost.
const UNAVAILABLE: i32 = 14;

/// Two workers, both registered.
async fn pair() -> (Stage, [Worker; 2]) {
    let stage = Stage::set(plain(2)).await;
    let workers = [stage.worker(0), stage.worker(1)];
    register(&stage, &workers).await;
    (stage, workers)
}

/// Registers workers one after the other; the last one lets all pass.
async fn register(stage: &Stage, workers: &[Worker]) {
    let (last, others) = workers.split_last().expect("somebody");
    let mut waiting = Vec::new();
    for worker in others {
        waiting.push(stage.hold(worker.register()).await);
    }
    last.register().await.expect("all are here");
    for call in waiting {
        call.end().await.expect("all are here");
    }
}

#[tokio::test(start_paused = true)]
async fn test_coordinated_jobs() {
    let group = |name: &str, tasks| Group { name: name.to_owned(), tasks };
    let groups = vec![group("chief", 1), group("worker", 2)];
    let stage = Stage::set(Spec { groups, ..plain(3) }).await;
    let named = |name, id| Worker::of_group(&stage.channel(), name, id);
    let everybody = [named("chief", 0), named("worker", 0), named("worker", 1)];
    register(&stage, &everybody).await;
    for task in &everybody {
        task.beat().await.expect("alive");
    }
    for stranger in [named("evaluator", 0), named("chief", 1), named("worker", 2)] {
        refused(stranger.register().await, Code::InvalidArgument);
    }
}

#[tokio::test(start_paused = true)]
async fn list_cluster_devices_tf_device() {
    let (stage, [first, second]) = pair().await;
    // Who comes first does not matter: devices stand in the order of the tasks.
    let waiting = stage.hold(second.exchange_devices(&["c"])).await;
    let all = first.exchange_devices(&["a", "b"]).await.expect("both are here");
    assert_eq!(all, ["a", "b", "c"]);
    assert_eq!(waiting.end().await.expect("both are here"), all);
}

#[tokio::test(start_paused = true)]
async fn list_cluster_devices_devices_are_not_added_twice() {
    let (stage, [first, second]) = pair().await;
    let waiting = stage.hold(first.exchange_devices(&["a"])).await;
    let all = second.exchange_devices(&["b"]).await.expect("both are here");
    assert_eq!(all, ["a", "b"]);
    assert_eq!(waiting.end().await.expect("both are here"), all);
    for later in [["a"], ["x"]] {
        assert_eq!(first.exchange_devices(&later).await.expect("the first list stays"), all);
    }
}

/// A job of one task that may restart and one that may not, both registered.
async fn mixed() -> (Stage, [Worker; 2]) {
    let stage = Stage::set(plain(2)).await;
    let workers = [stage.worker(0).recoverable(), stage.worker(1)];
    register(&stage, &workers).await;
    (stage, workers)
}

#[tokio::test(start_paused = true)]
async fn recoverable_and_non_recoverable_tasks() {
    let (stage, [recoverable, other]) = mixed().await;
    let poll = stage.hold(other.poll()).await;
    recoverable.report(5, "boom").await.expect("accepted");
    stage.still_holds(&poll).await;
    other.beat().await.expect("it is not concerned");
    recoverable.reset().await.expect("it leaves");
    recoverable.restarted().register().await.expect("it comes back");
    other.report(5, "bang").await.expect("accepted");
    assert_eq!(refused(poll.end().await, Code::NotFound).message(), "bang");
}

#[tokio::test(start_paused = true)]
async fn unrecoverable_task_propagates_error() {
    let (stage, [recoverable, other]) = mixed().await;
    let poll = stage.hold(recoverable.poll()).await;
    other.report(5, "bang").await.expect("accepted");
    assert_eq!(refused(poll.end().await, Code::NotFound).message(), "bang");
}

#[tokio::test(start_paused = true)]
async fn unavailable_task_can_reconnect() {
    let stage = Stage::set(Spec { reconnect: true, ..plain(1) }).await;
    let worker = stage.worker(0);
    worker.register().await.expect("all are here");
    stage.silence(&[&stage.task(0)]).await;
    let second = worker.restarted();
    second.register().await.expect("it was only lost");
    second.report(UNAVAILABLE, "gone").await.expect("accepted");
    let third = second.restarted();
    third.register().await.expect("it was only lost");
    // Any other error is for good.
    third.report(13, "boom").await.expect("accepted");
    refused(third.restarted().register().await, Code::Aborted);
}

/// State and life of each, ascending.
fn states(report: &WatchJobStateResponse) -> Vec<(CoordinatedTaskState, u64)> {
    report.task_state.iter().map(|task| (task.state(), task.incarnation)).collect()
}

const CONNECTED: CoordinatedTaskState = CoordinatedTaskState::TaskstateConnected;
const DISCONNECTED: CoordinatedTaskState = CoordinatedTaskState::TaskstateDisconnected;

#[tokio::test(start_paused = true)]
async fn watch_job_state_succeeds() {
    let (_stage, [first, second]) = pair().await;
    let report = first.watch(NOW).await.expect("a report");
    assert_eq!(states(&report), [(CONNECTED, first.life), (CONNECTED, second.life)]);
}

#[tokio::test(start_paused = true)]
async fn watch_job_state_returns_disconnected() {
    let (_stage, [first, second]) = pair().await;
    second.reset().await.expect("it leaves");
    let report = first.watch(NOW).await.expect("a report");
    assert_eq!(states(&report)[1], (DISCONNECTED, second.life));
}

#[tokio::test(start_paused = true)]
async fn watch_job_state_returns_new_incarnation() {
    let (_stage, [first, second]) = pair().await;
    second.reset().await.expect("it leaves");
    let second = second.restarted();
    second.register().await.expect("it comes back");
    let report = first.watch(NOW).await.expect("a report");
    assert_eq!(states(&report)[1], (CONNECTED, second.life));
}

#[tokio::test(start_paused = true)]
async fn watch_job_state_blocks_until_change() {
    let (stage, [first, second]) = pair().await;
    let now = first.watch(NOW).await.expect("a report").version_number;
    let watch = stage.hold(first.watch(now)).await;
    second.reset().await.expect("it leaves");
    let report = watch.end().await.expect("a report");
    assert!(report.version_number > now);
    assert_eq!(states(&report)[1], (DISCONNECTED, second.life));
}

#[tokio::test(start_paused = true)]
async fn watch_job_state_after_two_state_changes() {
    let (_stage, [first, second]) = pair().await;
    let old = first.watch(NOW).await.expect("a report").version_number;
    second.reset().await.expect("it leaves");
    let second = second.restarted();
    second.register().await.expect("it comes back");
    let report = first.watch(old).await.expect("at once");
    assert_eq!(states(&report)[1], (CONNECTED, second.life));
}

#[tokio::test(start_paused = true)]
async fn connect_after_reset_error() {
    let (_stage, [first, _]) = pair().await;
    first.report(5, "boom").await.expect("accepted");
    refused(first.register().await, Code::Aborted);
    first.reset().await.expect("it leaves");
    first.register().await.expect("it comes back");
    first.beat().await.expect("alive");
}

#[tokio::test(start_paused = true)]
async fn connect_after_reset_with_error_polling() {
    let (stage, [first, _]) = pair().await;
    let poll = stage.hold(first.poll()).await;
    first.report(5, "boom").await.expect("accepted");
    refused(poll.end().await, Code::NotFound);
    first.reset().await.expect("it leaves");
    first.register().await.expect("it comes back");
    first.beat().await.expect("alive");
    // What has ended the job for the others is told to whoever asks for errors anew.
    refused(first.poll().await, Code::NotFound);
}

#[tokio::test(start_paused = true)]
async fn reset_can_be_retried() {
    let options = Options { hold: std::time::Duration::from_millis(50), ..Options::default() };
    let stage = Stage::with_options(plain(1), options).await;
    let worker = stage.worker(0);
    worker.register().await.expect("all are here");
    worker.report(5, "boom").await.expect("accepted");
    stage.served.backend.depose();
    refused(worker.reset().await, Code::Unavailable);
    stage.served.backend.elect();
    worker.reset().await.expect("it leaves");
    worker.register().await.expect("it comes back");
}

#[tokio::test(start_paused = true)]
async fn shutdown_in_error_should_return_error() {
    let stage = Stage::set(Spec { shutdown_timeout_ms: DurationMs(60_000), ..plain(1) }).await;
    let worker = stage.worker(0);
    worker.register().await.expect("all are here");
    worker.report(5, "boom").await.expect("accepted");
    let status = refused(worker.shut_down().await, Code::Internal);
    assert!(status.message().starts_with("Shutdown barrier has failed."), "{}", status.message());
}
