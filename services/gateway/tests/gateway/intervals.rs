//! How long a task may be silent whose program was told otherwise than its job, and one that has sent no heartbeat yet.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use tripod_gateway::{Gateway, Options};
use tripod_state::ids::{DurationMs, TaskId};
use tripod_state::job;
use tripod_state::limits::TIMEOUT_MS_MAX;
use tripod_state::task::Phase;

use crate::common::{HEARTBEAT_MS, Job, alive, job_of, life, raise, spec};

const SECOND: Duration = Duration::from_secs(1);
/// The interval of a program that is ten times as patient as its job.
const RARE_MS: u64 = 5 * HEARTBEAT_MS;
/// A connection.
const HERE: u64 = 7;

fn no_grace() -> Options {
    Options { grace: DurationMs(0), ..Options::default() }
}

/// A job of two tasks that have registered, at the newest level. What becomes of one is no affair of the other's.
async fn registered(gateway: &Gateway) -> Job {
    raise(gateway).await;
    let job = job_of(gateway, "test", job::Spec { recoverable: true, ..spec(2) }).await;
    job.register_all(2).await;
    job
}

async fn is_connected(job: &Job, task: i32) -> bool {
    job.phase_here(task).await.0 == Phase::Connected
}

async fn present(job: &Job, task: i32) -> bool {
    job.gateway.present(job.scope, TaskId(task), life(task), HERE).await
}

#[tokio::test(start_paused = true)]
async fn n1_a_program_that_is_more_patient_than_its_job_is_not_given_up() {
    let (gateway, memory) = Gateway::in_memory_with(no_grace());
    let job = registered(&gateway).await;
    // As jaxlib does: the first one comes after one interval.
    sleep(50 * SECOND).await;
    assert_eq!(job.beat_every(0, RARE_MS).await.unwrap(), alive());
    assert_eq!(job.beat_every(1, HEARTBEAT_MS / 2).await.unwrap(), alive());
    sleep(11 * SECOND).await;
    assert!(is_connected(&job, 0).await, "it said when the next one comes");
    assert!(!is_connected(&job, 1).await, "this one promised more");

    memory.elect();
    sleep(99 * SECOND).await;
    assert!(is_connected(&job, 0).await, "another leader knows it, too");
    sleep(2 * SECOND).await;
    assert!(!is_connected(&job, 0).await, "both sides agree that it is lost");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_changes_its_interval_is_taken_at_its_last_word() {
    let (gateway, memory) = Gateway::in_memory_with(no_grace());
    let job = registered(&gateway).await;
    let tolerated = || memory.state().silence(job.id, TaskId(0), life(0), None).unwrap().tolerated_ms;
    for interval_ms in [1_000, RARE_MS, 1_000, RARE_MS, 0] {
        assert_eq!(job.beat_every(0, interval_ms).await.unwrap(), alive());
    }
    assert_eq!(tolerated(), DurationMs(2 * RARE_MS), "none at all says nothing");
    job.beat_every(0, u64::MAX).await.unwrap().unwrap();
    assert_eq!(tolerated(), DurationMs(TIMEOUT_MS_MAX), "no job may wait for longer");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_never_beaten_has_a_minute_or_as_long_as_its_connection_stands() {
    let (gateway, _memory) = Gateway::in_memory_with(no_grace());
    let job = registered(&gateway).await;
    for _ in 0..10 {
        assert!(present(&job, 0).await);
        sleep(20 * SECOND).await;
    }
    assert!(is_connected(&job, 0).await);
    assert!(!is_connected(&job, 1).await, "nothing stood for it");
    assert_eq!(job.beat_every(0, HEARTBEAT_MS / 2).await.unwrap(), alive());
    assert!(!present(&job, 0).await, "it is heartbeats that count");
    sleep(11 * SECOND).await;
    assert!(!is_connected(&job, 0).await);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_killed_before_its_first_beat_is_lost_after_the_jobs_own_timeout() {
    let (gateway, _memory) = Gateway::in_memory_with(no_grace());
    let job = registered(&gateway).await;
    present(&job, 0).await;
    sleep(3 * SECOND).await;
    job.gateway.gone(job.scope, TaskId(0), life(0), HERE).await;
    sleep(9 * SECOND).await;
    assert!(is_connected(&job, 0).await);
    sleep(2 * SECOND).await;
    assert!(!is_connected(&job, 0).await);
    assert!(is_connected(&job, 1).await, "this one may be as slow as its program was told");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_dies_with_the_leader_before_its_first_beat_is_not_waited_for_a_minute() {
    let (gateway, memory) = Gateway::in_memory_with(no_grace());
    let job = registered(&gateway).await;
    assert!(present(&job, 0).await && present(&job, 1).await);
    memory.elect();
    sleep(SECOND / 10).await;
    assert!(!job.gateway.gone(job.scope, TaskId(0), life(0), HERE).await, "it was heard");
    // Another connection of it would be told within 20 s.
    assert!(present(&job, 1).await);
    sleep(28 * SECOND).await;
    assert!(is_connected(&job, 0).await);
    sleep(4 * SECOND).await;
    assert!(!is_connected(&job, 0).await);
    assert!(is_connected(&job, 1).await);
}

#[tokio::test(start_paused = true)]
async fn a_program_that_is_less_patient_than_its_job_is_answered_in_its_own_time() {
    let (gateway, memory) = Gateway::in_memory();
    let job = registered(&gateway).await;
    memory.depose();
    let held = timeout(Duration::from_millis(500), job.beat_every(0, 500)).await;
    assert_eq!(held.expect("the client has given up").unwrap(), alive());
}
