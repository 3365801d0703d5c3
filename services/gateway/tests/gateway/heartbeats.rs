//! Heartbeats and timers: silence is found out, and only silence.

use std::time::Duration;

use crate::common::{HEARTBEAT_MS, Job, alive, job, job_of, life, passed, spec};
use crate::follower::Follower;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, advance, sleep, timeout};
use tripod_gateway::{Gateway, MemoryBackend, Mishap, Options, Outage, Replica as _};
use tripod_state::ids::{DurationMs, Incarnation, JobId, NodeId, TaskId};
use tripod_state::task::Phase;
use tripod_state::{BarrierFault, Command, Envelope, Fault, job, level, session, task};

const TIMEOUT: Duration = Duration::from_millis(HEARTBEAT_MS);
/// Two ticks of the timers.
const TICKS: Duration = Duration::from_millis(100);

fn no_grace() -> Options {
    Options { grace: DurationMs(0), ..Options::default() }
}

/// A job of two tasks, both connected, which send heartbeats as often as it asks.
async fn pair(gateway: &Gateway) -> Job {
    let job = job(gateway, 2).await;
    job.register_all_known(2).await;
    job
}

/// Every command that is proposed from now on, but those that end sessions of before the level rose.
fn proposals(memory: &MemoryBackend) -> UnboundedReceiver<Envelope> {
    let (told, proposals) = tokio::sync::mpsc::unbounded_channel();
    memory.set_mishaps(move |envelope| {
        if !matches!(envelope.command, Command::Session(session::Command::Close { .. })) {
            told.send(envelope.clone()).expect("the test listens");
        }
        Mishap::Success
    });
    proposals
}

async fn is_connected(job: &Job, task: i32) -> bool {
    job.phase_here(task).await.0 == Phase::Connected
}

/// Both tasks beat every half timeout for `length`.
async fn beat_both(job: &Job, length: Duration) {
    let end = Instant::now() + length;
    while Instant::now() < end {
        assert_eq!(job.beat(0).await.unwrap(), alive());
        assert_eq!(job.beat(1).await.unwrap(), alive());
        sleep(TIMEOUT / 2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_task_fails_and_a_beating_one_does_not() {
    let (gateway, _memory) = Gateway::in_memory();
    let job = pair(&gateway).await;
    let start = Instant::now();
    beat_both(&job, 3 * TIMEOUT).await;

    while is_connected(&job, 1).await {
        assert_eq!(job.beat(0).await.unwrap(), alive());
        sleep(TICKS).await;
        assert!(start.elapsed() < 5 * TIMEOUT, "silence was not noticed");
    }

    assert_eq!(job.phase_here(1).await, (Phase::Error, Some(Fault::HeartbeatTimeout { task: TaskId(1) })));
    let silent = start.elapsed().checked_sub(3 * TIMEOUT - TIMEOUT / 2).unwrap();
    assert!(silent >= TIMEOUT && silent <= TIMEOUT + 3 * TICKS, "{silent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_beats_no_more_fails_after_its_timeout() {
    let (gateway, _memory) = Gateway::in_memory_with(no_grace());
    let job = pair(&gateway).await;

    sleep(TIMEOUT - TICKS).await;
    assert!(is_connected(&job, 0).await && is_connected(&job, 1).await);
    sleep(3 * TICKS).await;

    assert!(!is_connected(&job, 0).await && !is_connected(&job, 1).await);
}

/// In the leader's memory, so a new one knows only whom it has heard itself.
#[tokio::test(start_paused = true)]
async fn the_leader_tells_how_long_ago_it_heard_each_task() {
    let (gateway, memory) = Gateway::in_memory();
    let job = pair(&gateway).await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(job.beat(1).await.unwrap(), alive());
    sleep(Duration::from_secs(1)).await;
    let ages = async || {
        let ages = gateway.heartbeat_ages(job.id, 5).await?;
        Some(ages.into_iter().map(|(task, (of, age))| (task.0, of, age.0 / 500)).collect::<Vec<_>>())
    };
    assert_eq!(ages().await, Some(vec![(0, life(0), 6), (1, life(1), 2)]));
    memory.depose();
    sleep(TICKS).await;
    assert_eq!(ages().await, None, "nobody leads");
    memory.elect();
    sleep(TICKS).await;
    assert_eq!(ages().await, Some(Vec::new()), "nobody was heard since");
    assert_eq!(job.beat(0).await.unwrap(), alive());
    assert_eq!(ages().await, Some(vec![(0, life(0), 0)]));
}

#[tokio::test(start_paused = true)]
async fn silent_tasks_of_one_tick_are_proposed_together() {
    let (gateway, memory) = Gateway::in_memory();
    let job = pair(&gateway).await;
    let mut proposals = proposals(&memory);

    sleep(2 * TIMEOUT).await;

    let expiry = proposals.recv().await.unwrap();
    let silent = vec![(TaskId(0), life(0)), (TaskId(1), life(1))];
    assert_eq!(expiry.command, Command::Task(task::Command::Expire { job: job.id, silent }));
    assert_eq!(expiry.stamp, None);
    assert!(proposals.try_recv().is_err(), "once");
}

#[tokio::test(start_paused = true)]
async fn an_expiry_that_fails_is_proposed_again() {
    let (gateway, memory) = Gateway::in_memory_with(no_grace());
    let job = pair(&gateway).await;
    let mut failures = 3;
    memory.set_mishaps(move |_| match failures {
        0 => Mishap::Success,
        _ => {
            failures -= 1;
            Mishap::NoLeader
        }
    });

    sleep(TIMEOUT + 6 * TICKS).await;

    assert!(!is_connected(&job, 0).await);
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_gives_everybody_the_full_time_and_grace() {
    let grace = DurationMs(2_000);
    let (gateway, memory) = Gateway::in_memory_with(Options { grace, ..Options::default() });
    let job = pair(&gateway).await;
    sleep(TIMEOUT - TICKS).await;

    memory.depose();
    sleep(10 * TIMEOUT).await;
    assert!(is_connected(&job, 0).await, "nobody leads, so nobody expires");
    memory.elect();
    sleep(TIMEOUT + Duration::from_millis(grace.0) - TICKS).await;
    assert!(is_connected(&job, 0).await);

    sleep(3 * TICKS).await;
    assert!(!is_connected(&job, 0).await);
}

#[tokio::test(start_paused = true)]
async fn another_term_restarts_the_timers_too() {
    let (gateway, memory) = Gateway::in_memory_with(no_grace());
    let job = pair(&gateway).await;
    sleep(TIMEOUT - TICKS).await;

    memory.elect();
    sleep(TIMEOUT - TICKS).await;

    assert!(is_connected(&job, 0).await);
}

#[tokio::test(start_paused = true)]
async fn our_own_pause_kills_nobody() {
    let (gateway, _memory) = Gateway::in_memory_with(no_grace());
    let job = pair(&gateway).await;
    sleep(TIMEOUT / 2).await;

    // The process stands still: no timer runs and no beat arrives.
    advance(20 * TIMEOUT).await;
    sleep(TIMEOUT / 2 - 2 * TICKS).await;
    assert!(is_connected(&job, 0).await && is_connected(&job, 1).await);

    sleep(4 * TICKS).await;
    assert!(!is_connected(&job, 0).await, "after the pause its time goes on");
}

/// Calls wait for a leader that stands still, and for nobody else.
#[tokio::test(start_paused = true)]
async fn a_pause_is_told_of_who_led_then() {
    let (gateway, memory) = Gateway::in_memory();
    let pause = async || {
        let told = gateway.sights(JobId(1), &[NodeId(1)], TIMEOUT).await;
        let (_, told) = told.into_iter().next().expect("it was asked");
        told.expect("it answers").pause.map(|(length, _)| length)
    };
    memory.depose();
    sleep(TICKS).await;
    advance(20 * TIMEOUT).await;
    sleep(TICKS).await;
    memory.elect();
    sleep(TICKS).await;
    assert_eq!(pause().await, None, "it did not lead");
    advance(20 * TIMEOUT).await;
    sleep(TICKS).await;
    assert!(pause().await.is_some_and(|length| length >= 20 * TIMEOUT));
}

#[tokio::test(start_paused = true)]
async fn without_a_leader_a_beat_is_answered_before_the_client_gives_up() {
    let (gateway, memory) = Gateway::in_memory();
    let job = pair(&gateway).await;
    memory.depose();

    let start = Instant::now();
    let reply = timeout(TIMEOUT / 2, job.beat(0)).await.expect("the client has given up");

    assert_eq!(reply.unwrap(), alive());
    assert!(start.elapsed() >= TIMEOUT * 2 / 5, "held as long as a leader may come");
}

#[tokio::test(start_paused = true)]
async fn a_held_beat_is_answered_when_a_leader_comes() {
    let (gateway, memory) = Gateway::in_memory();
    let job = pair(&gateway).await;
    memory.depose();
    let mut held = std::pin::pin!(job.beat(0));
    assert!(timeout(Duration::from_secs(1), &mut held).await.is_err());

    memory.elect();

    assert_eq!(timeout(TICKS, held).await.expect("told at once").unwrap(), alive());
}

#[tokio::test(start_paused = true)]
async fn without_a_leader_nobody_is_refused() {
    let (gateway, memory) =
        Gateway::in_memory_with(Options { hold: Duration::from_secs(1), ..Options::default() });
    let job = pair(&gateway).await;
    memory.depose();

    // This node holds the beat for one of another life; only a leader may say so.
    let beat = gateway.heartbeat(job.scope, TaskId(0), Incarnation(1), None);
    assert!(timeout(10 * TIMEOUT, beat).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_still_answers_for_the_living() {
    let (gateway, memory) = Gateway::in_memory();
    let job = pair(&gateway).await;
    memory.stop();

    assert_eq!(job.beat(0).await.unwrap(), alive());
    assert_eq!(job.beat(1).await.unwrap(), alive(), "also when the question cannot be put any more");
}

#[tokio::test(start_paused = true)]
async fn a_beat_of_another_life_is_refused_and_fails_the_task() {
    let (gateway, _memory) = Gateway::in_memory();
    let job = pair(&gateway).await;

    let reply = gateway.heartbeat(job.scope, TaskId(0), Incarnation(1), None).await.unwrap();

    let fault = Fault::BeatOfOtherLife { task: TaskId(0), expected: life(0), got: Incarnation(1) };
    assert_eq!(reply, Err(fault));
    assert!(!is_connected(&job, 0).await);
    assert!(matches!(job.beat(0).await.unwrap(), Err(Fault::BeatInError { .. })));
}

/// A process that was taken for dead may go on beating beside the next life of its task. It is answered, and that is all.
#[tokio::test(start_paused = true)]
async fn beats_of_an_earlier_life_do_not_hide_that_the_next_one_died() {
    let (gateway, _memory) = Gateway::in_memory_with(no_grace());
    let job = job_of(&gateway, "test", job::Spec { recoverable: true, ..spec(2) }).await;
    job.register_all(2).await;
    let next = Incarnation(life(1).0 + 1);
    let again = task::Command::Register {
        scope: job.scope,
        task: TaskId(1),
        incarnation: next,
        recoverable: false,
        protocol: task::Protocol::Xla,
    };
    assert_eq!(gateway.submit(Command::Task(again)).await.unwrap(), alive());
    assert_eq!(gateway.heartbeat(job.scope, TaskId(1), next, None).await.unwrap(), alive());
    let start = Instant::now();

    while is_connected(&job, 1).await {
        assert_eq!(job.beat(1).await.unwrap(), alive());
        sleep(TICKS).await;
        assert!(start.elapsed() < 2 * TIMEOUT, "silence was not noticed");
    }

    assert!(start.elapsed() >= TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn beats_through_a_follower_keep_a_task_alive() {
    let (leader, memory) = Gateway::in_memory();
    let job = pair(&leader).await;
    let (gateway, follower) = Follower::start(&memory, Options::default());
    follower.catch_up();

    beat_both(&job.on(&gateway), 5 * TIMEOUT).await;

    assert!(is_connected(&job, 0).await && is_connected(&job, 1).await);
}

#[tokio::test(start_paused = true)]
async fn a_follower_refuses_only_after_it_has_seen_why() {
    let (leader, memory) = Gateway::in_memory();
    let job = pair(&leader).await;
    let (gateway, follower) = Follower::start(&memory, Options::default());
    follower.catch_up();
    sleep(2 * TIMEOUT).await;
    assert!(!is_connected(&job, 0).await);
    let on_follower = job.on(&gateway);

    let mut beat = std::pin::pin!(on_follower.beat(0));
    assert!(timeout(TICKS, &mut beat).await.is_err(), "its own state still holds it for connected");
    follower.catch_up();

    assert!(matches!(beat.await.unwrap(), Err(Fault::BeatInError { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_beats_at_once_are_all_answered() {
    let (gateway, _memory) = Gateway::in_memory();
    let job = job(&gateway, 2).await;
    job.register_all(2).await;

    let beats = (0..5_000).map(|number| job.beat(number % 2));
    let replies = tripod_wait::within("an answer to each", futures::future::join_all(beats)).await;

    assert!(replies.into_iter().all(|reply| reply == Ok(alive())));
}

#[tokio::test(start_paused = true)]
async fn a_barrier_fails_at_its_deadline() {
    let (gateway, _memory) = Gateway::in_memory();
    let job = pair(&gateway).await;
    let start = Instant::now();

    let reply = job.arrive("b", 0, 3_000).await.unwrap();

    assert!(timed_out(&reply), "{reply:?}");
    let waited = start.elapsed();
    assert!(waited >= Duration::from_secs(3) && waited <= Duration::from_secs(3) + TICKS, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_gives_open_barriers_their_full_time() {
    let (gateway, memory) = Gateway::in_memory();
    let job = pair(&gateway).await;
    let start = Instant::now();
    let mut arrival = std::pin::pin!(job.arrive("b", 0, 3_000));
    assert!(timeout(Duration::from_secs(2), &mut arrival).await.is_err());

    memory.elect();
    let reply = arrival.await.unwrap();

    assert!(timed_out(&reply), "{reply:?}");
    assert!(start.elapsed() >= Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_barrier_that_passed_is_not_proposed_for_expiry() {
    let (gateway, memory) = Gateway::in_memory();
    let job = pair(&gateway).await;
    let both = futures::future::join(job.arrive("b", 0, 3_000), job.arrive("b", 1, 3_000)).await;
    assert_eq!((both.0.unwrap(), both.1.unwrap()), (passed(), passed()));
    let mut proposals = proposals(&memory);

    sleep(Duration::from_secs(4)).await;

    assert_eq!(proposals.try_recv().ok(), None);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_left_in_peace_is_not_proposed_for_expiry() {
    let (gateway, memory) = Gateway::in_memory();
    let job = pair(&gateway).await;
    let reset = |task| task::Command::Reset { scope: job.scope, task: TaskId(task) };
    for task in 0..2 {
        gateway.submit(Command::Task(reset(task))).await.unwrap().unwrap();
    }
    let mut proposals = proposals(&memory);

    sleep(3 * TIMEOUT).await;

    assert_eq!(proposals.try_recv().ok(), None);
}

#[tokio::test(start_paused = true)]
async fn idle_sessions_are_proposed_for_expiry_after_a_day() {
    const DAY_MS: u64 = 24 * 3600 * 1000;
    let (_gateway, memory) = Gateway::in_memory();
    let mut proposals = proposals(&memory);

    sleep(Duration::from_secs(60) + TICKS).await;

    let Command::Session(session::Command::ExpireIdle { before_ms }) =
        proposals.try_recv().expect("a minute has passed").command
    else {
        panic!("another command");
    };
    let idle_ms = memory.state().now_ms().0 - before_ms.0;
    assert!((DAY_MS..DAY_MS + 100).contains(&idle_ms), "{idle_ms}");
}

#[tokio::test(start_paused = true)]
async fn f8_idle_sessions_of_clients_are_proposed_for_expiry_after_a_quarter_of_an_hour() {
    let (_gateway, memory) = Gateway::in_memory();
    let raise = level::Command::Raise { to: level::NEWEST, heard: Vec::new() };
    memory.propose(Envelope { stamp: None, command: Command::Level(raise) }).await.unwrap().reply.unwrap();
    let mut proposals = proposals(&memory);

    sleep(Duration::from_secs(60) + TICKS).await;

    let Command::Session(session::Command::ExpireOwned { clients_before_ms, nodes_before_ms }) =
        proposals.try_recv().expect("a minute has passed").command
    else {
        panic!("another command");
    };
    let now = memory.state().now_ms().0;
    assert!((900_000..900_100).contains(&(now - clients_before_ms.0)), "{clients_before_ms}");
    assert!((86_400_000..86_400_100).contains(&(now - nodes_before_ms.0)), "{nodes_before_ms}");
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_is_gone_leaves_no_timers() {
    let (gateway, memory) = Gateway::in_memory();
    let job = pair(&gateway).await;
    let id = job.id;
    drop((gateway, job));
    let weak = std::sync::Arc::downgrade(&memory);
    drop(memory);

    sleep(TICKS).await;

    assert!(weak.upgrade().is_none(), "a task of the gateway holds job {id}");
}

#[test]
fn an_outage_reads_well() {
    let outage = Outage::NoLeader { waited_ms: 5, last: "node 2 does not answer".into() };
    assert_eq!(outage.to_string(), "no leader for 5 ms: node 2 does not answer");
}

fn timed_out(reply: &tripod_state::Reply) -> bool {
    matches!(reply, Err(Fault::Barrier { fault: BarrierFault::TimedOut { .. }, .. }))
}
