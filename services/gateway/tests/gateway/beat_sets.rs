//! Sets of heartbeats: what is told in a word does what the heartbeats would do, or nothing.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep};
use tripod_gateway::{BeatSession, BeatSetId, Gateway, Options, SetBeat, SetWord};
use tripod_state::ids::{DurationMs, TaskId};
use tripod_state::job::{Poll, Spec};
use tripod_state::task::{self, Phase};
use tripod_state::{Command, Fault};

use crate::common::{HEARTBEAT_MS, Job, SERVICE, alive, job_of, life, spec};
use crate::follower::Follower;

const TIMEOUT: Duration = Duration::from_millis(HEARTBEAT_MS);
/// Two ticks of the timers.
const TICKS: Duration = Duration::from_millis(100);
const ID: BeatSetId = BeatSetId { session: BeatSession([7; 16]), digest: 99, count: 2 };

async fn pair_of(gateway: &Gateway, spec: Spec) -> Job {
    let job = job_of(gateway, "test", spec).await;
    job.register_all_known(2).await;
    job
}

async fn pair(gateway: &Gateway) -> Job {
    pair_of(gateway, spec(2)).await
}

fn no_grace() -> Options {
    Options { grace: DurationMs(0), ..Options::default() }
}

fn beats(job: &Job) -> Vec<SetBeat> {
    let interval = Some(DurationMs(HEARTBEAT_MS / 2));
    let beat = |task| SetBeat { scope: job.scope, task: TaskId(task), incarnation: life(task), interval };
    vec![beat(0), beat(1)]
}

async fn keep(job: &Job) -> SetWord {
    job.gateway.keep_heartbeats(ID, beats(job)).await
}

/// All of the set were made again.
async fn again(job: &Job) -> SetWord {
    job.gateway.heartbeats_again(ID, Bytes::new()).await
}

async fn is_connected(job: &Job, task: i32) -> bool {
    job.phase_here(task).await.0 == Phase::Connected
}

#[tokio::test(start_paused = true)]
async fn a_word_keeps_those_alive_that_were_made_and_nobody_else() {
    let (gateway, _memory) = Gateway::in_memory_with(no_grace());
    // Where tasks may come back, the death of one fails no other, and holds no beat of another.
    let job = pair_of(&gateway, Spec { recoverable: true, ..spec(2) }).await;
    assert_eq!(keep(&job).await, SetWord::Kept(SERVICE));
    let start = Instant::now();
    while start.elapsed() < 3 * TIMEOUT {
        assert_eq!(again(&job).await, SetWord::Same);
        sleep(TIMEOUT / 2).await;
    }
    assert!(is_connected(&job, 0).await && is_connected(&job, 1).await);

    let silent = Instant::now();
    loop {
        let word = gateway.heartbeats_again(ID, Bytes::from_static(&[1])).await;
        if !is_connected(&job, 1).await {
            break;
        }
        assert_eq!(word, SetWord::Same);
        sleep(TICKS).await;
        assert!(silent.elapsed() <= TIMEOUT + 3 * TICKS, "silence was not noticed");
    }
    assert!(is_connected(&job, 0).await);
    assert_eq!(again(&job).await, SetWord::Differs, "one of them is no more");
}

#[tokio::test(start_paused = true)]
async fn to_keep_a_set_is_no_sign_of_life() {
    let (gateway, _memory) = Gateway::in_memory_with(no_grace());
    let job = pair(&gateway).await;
    sleep(TIMEOUT - TICKS).await;
    assert_eq!(keep(&job).await, SetWord::Kept(SERVICE));
    sleep(3 * TICKS).await;
    assert!(!is_connected(&job, 0).await && !is_connected(&job, 1).await);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_know_session_digest_and_count_keeps_nobody_alive() {
    let (gateway, _memory) = Gateway::in_memory_with(no_grace());
    let job = pair(&gateway).await;
    assert_eq!(keep(&job).await, SetWord::Kept(SERVICE));
    let guesses = [
        BeatSetId { session: BeatSession([8; 16]), ..ID },
        BeatSetId { digest: 98, ..ID },
        BeatSetId { count: 1, ..ID },
    ];
    let start = Instant::now();
    while start.elapsed() <= TIMEOUT + 3 * TICKS {
        for guess in guesses {
            let word = gateway.heartbeats_again(guess, Bytes::new()).await;
            assert!(word == SetWord::Unknown, "{word:?}");
        }
        sleep(TICKS).await;
    }
    assert!(!is_connected(&job, 0).await && !is_connected(&job, 1).await);
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_knows_no_set_until_it_is_kept_again() {
    let (gateway, memory) = Gateway::in_memory();
    let job = pair(&gateway).await;
    assert_eq!(keep(&job).await, SetWord::Kept(SERVICE));
    memory.depose();
    assert_eq!(again(&job).await, SetWord::Differs, "nobody leads, so each is to be told");
    memory.elect();
    sleep(TICKS).await;
    assert_eq!(again(&job).await, SetWord::Unknown);
    assert_eq!(job.beat(0).await.unwrap(), alive());
    assert_eq!(keep(&job).await, SetWord::Kept(SERVICE));
    assert_eq!(again(&job).await, SetWord::Same);
}

#[tokio::test(start_paused = true)]
async fn a_follower_passes_sets_on_to_the_leader() {
    let (gateway, memory) = Gateway::in_memory_with(no_grace());
    let job = pair(&gateway).await;
    let (following, follower) = Follower::start(&memory, Options::default());
    follower.catch_up();
    let there = job.on(&following);
    assert_eq!(keep(&there).await, SetWord::Kept(SERVICE));
    let start = Instant::now();
    while start.elapsed() < 2 * TIMEOUT {
        assert_eq!(again(&there).await, SetWord::Same);
        sleep(TIMEOUT / 2).await;
    }
    assert!(is_connected(&job, 0).await && is_connected(&job, 1).await);
}

#[tokio::test(start_paused = true)]
async fn a_life_that_is_over_is_not_kept_alive_by_its_set() {
    let (gateway, _memory) = Gateway::in_memory();
    let job = pair(&gateway).await;
    assert_eq!(keep(&job).await, SetWord::Kept(SERVICE));
    gateway.lost(job.id, TaskId(1), life(1)).await.unwrap().unwrap();
    assert_eq!(again(&job).await, SetWord::Differs);
    assert!(job.beat(1).await.unwrap().is_err(), "told by itself it is refused");
}

#[tokio::test(start_paused = true)]
async fn under_a_suspicion_each_beat_is_told_by_itself() {
    let (gateway, _memory) = Gateway::in_memory();
    // The leader has begun its term, so that nobody is given its grace.
    sleep(TICKS).await;
    let job = pair_of(&gateway, Spec { poll: Poll::Release, ..spec(2) }).await;
    // Who has asked for errors, and is to hear of them by its beats, is held while somebody is overdue.
    let asks = Command::Task(task::Command::Poll { scope: job.scope, task: TaskId(0), wish: None });
    assert_eq!(gateway.submit(asks).await.unwrap(), Err(Fault::PollReleased));
    assert_eq!(keep(&job).await, SetWord::Kept(SERVICE));
    assert_eq!(again(&job).await, SetWord::Same);
    sleep(TIMEOUT * 7 / 10).await;
    assert_eq!(gateway.heartbeats_again(ID, Bytes::from_static(&[1])).await, SetWord::Differs);
}
