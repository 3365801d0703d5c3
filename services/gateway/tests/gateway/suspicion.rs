//! A task that dies is told to the others when its time is up, although they hear of it only in the
//! replies to their beats; and nobody is worse off for a suspicion that does not come true.

use std::time::Duration;

use crate::common::{HEARTBEAT_MS, Job, alive, job_of, life, spec};
use crate::follower::Follower;
use futures::future::{join, join_all};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tripod_gateway::{Gateway, Mishap, Options};
use tripod_state::ids::{DurationMs, TaskId};
use tripod_state::job::Poll;
use tripod_state::task::Phase;
use tripod_state::{Command, Fault, job, task};

const TIMEOUT: Duration = Duration::from_millis(HEARTBEAT_MS);
/// Two ticks of the timers.
const TICKS: Duration = Duration::from_millis(100);
/// The task that falls silent.
const SUSPECT: i32 = 1;

/// So many hundredths of the heartbeat timeout.
fn percent(hundredths: u32) -> Duration {
    TIMEOUT * hundredths / 100
}

/// A job whose tasks have asked for errors and are connected from now on. Task 1 is never heard again
/// unless a test says so.
async fn connected(gateway: &Gateway, name: &str, spec: job::Spec) -> (Job, Instant) {
    let tasks = i32::try_from(spec.tasks).unwrap();
    let poll = spec.poll;
    // The leader has begun its term, so that nobody is given its grace.
    sleep(TICKS).await;
    let job = job_of(gateway, name, spec).await;
    job.register_all_known(tasks).await;
    let asks = Command::Task(task::Command::Poll { scope: job.scope, task: TaskId(0), wish: None });
    let asked = gateway.submit(asks).await.unwrap();
    assert_eq!(asked == Err(Fault::PollReleased), poll == Poll::Release, "{asked:?}");
    (job, Instant::now())
}

async fn pair(gateway: &Gateway) -> (Job, Instant) {
    connected(gateway, "test", spec(2)).await
}

/// A client: it beats half a timeout after the last answer, and gives up on a beat after as long.
/// Gives when it was told of an error, and of which.
async fn client(job: &Job, task: i32, first: Duration) -> (Instant, Fault) {
    let mut pause = first;
    loop {
        sleep(pause).await;
        pause = TIMEOUT / 2;
        let reply = timeout(TIMEOUT / 2, job.beat(task)).await.expect("the client has given up");
        match reply.unwrap() {
            Err(fault) => return (Instant::now(), fault),
            answer => assert_eq!(answer, alive()),
        }
    }
}

/// Beats once after 20 % and once after 70 % of the timeout, the second time under suspicion. Gives
/// how long the second answer took.
async fn suspicious_beat(job: &Job, task: i32, start: Instant) -> Duration {
    sleep_until(start + percent(20)).await;
    assert_eq!(job.beat(task).await.unwrap(), alive());
    sleep_until(start + percent(70)).await;
    let reply = timeout(TIMEOUT / 2, job.beat(task)).await.expect("the client has given up");
    assert_eq!(reply.unwrap(), alive());
    start.elapsed().checked_sub(percent(70)).unwrap()
}

async fn is_connected(job: &Job, task: i32) -> bool {
    job.phase_here(task).await.0 == Phase::Connected
}

/// Tasks 0 and 1 are dead. The others beat in every phase: each hears in time, and at once if a beat of
/// its comes in the last 40 % of the dead tasks' time.
async fn survivors_hear_in_time(job: &Job, died: Instant, tasks: i32) {
    let phase = |task: i32| percent(50) * u32::try_from(task - 1).unwrap() / u32::try_from(tasks).unwrap();
    let survivors = (2..tasks).map(async |task| (phase(task), client(job, task, phase(task)).await));
    for (phase, (told, fault)) in join_all(survivors).await {
        assert_eq!(fault, Fault::TasksUnhealthy { tasks: vec![TaskId(0), TaskId(SUSPECT)] });
        let after = told - died;
        let latest = if phase >= percent(10) { TIMEOUT + TICKS } else { percent(108) + TICKS };
        assert!(after >= TIMEOUT && after <= latest, "phase {phase:?}: {after:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn survivors_on_the_leader_hear_of_a_death_when_it_is_found() {
    let (gateway, _memory) = Gateway::in_memory();
    let (job, start) = connected(&gateway, "test", spec(40)).await;

    survivors_hear_in_time(&job, start, 40).await;

    assert_eq!(gateway.waiting_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn survivors_on_a_follower_hear_of_a_death_when_it_is_found() {
    let (leader, memory) = Gateway::in_memory();
    let (on_leader, start) = connected(&leader, "test", spec(40)).await;
    let (gateway, follower) = Follower::start(&memory, Options::default());
    let job = on_leader.on(&gateway);
    let replication = async {
        loop {
            follower.catch_up();
            sleep(TICKS / 5).await;
        }
    };

    tokio::select! {
        () = survivors_hear_in_time(&job, start, 40) => {}
        () = replication => unreachable!("it has no end"),
    }

    assert_eq!(gateway.waiting_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_lags_asks_again_and_refuses_after_it_has_seen_why() {
    let (leader, memory) = Gateway::in_memory();
    let (on_leader, start) = pair(&leader).await;
    let (gateway, follower) = Follower::start(&memory, Options::default());
    follower.catch_up();
    let job = on_leader.on(&gateway);
    sleep_until(start + percent(20)).await;
    assert_eq!(job.beat(0).await.unwrap(), alive());
    sleep_until(start + percent(70)).await;

    let mut beat = std::pin::pin!(job.beat(0));
    assert!(timeout(percent(30) + 4 * TICKS, &mut beat).await.is_err(), "held, then behind");
    assert!(!is_connected(&on_leader, SUSPECT).await);
    follower.catch_up();

    assert!(matches!(beat.await.unwrap(), Err(Fault::TasksUnhealthy { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_suspect_that_beats_again_harms_nobody() {
    let (gateway, _memory) = Gateway::in_memory();
    let (job, start) = pair(&gateway).await;
    let late = async {
        sleep_until(start + percent(90)).await;
        assert_eq!(job.beat(SUSPECT).await.unwrap(), alive());
    };

    let (held, ()) = join(suspicious_beat(&job, 0, start), late).await;

    assert!(held >= percent(30), "held until the suspect's time is up: {held:?}");
    let clients = join(client(&job, 0, TIMEOUT / 2), client(&job, SUSPECT, percent(30)));
    assert!(timeout(5 * TIMEOUT, clients).await.is_err(), "both live on");
    assert!(is_connected(&job, 0).await && is_connected(&job, SUSPECT).await);
}

/// The end of the hold counts as a sign of life, so the pause that a client then makes is not added to
/// the hold.
#[tokio::test(start_paused = true)]
async fn who_was_held_has_its_whole_time_again() {
    let (gateway, _memory) = Gateway::in_memory();
    let (job, start) = pair(&gateway).await;
    let late = async {
        sleep_until(start + percent(90)).await;
        assert_eq!(job.beat(SUSPECT).await.unwrap(), alive());
    };
    join(suspicious_beat(&job, 0, start), late).await;

    sleep(percent(20)).await;
    assert_eq!(job.beat(SUSPECT).await.unwrap(), alive());
    sleep(percent(75)).await;

    assert!(is_connected(&job, 0).await);
    sleep(percent(10)).await;
    assert!(!is_connected(&job, 0).await, "but no more than that");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_while_held_is_not_heard_again() {
    let (gateway, _memory) = Gateway::in_memory();
    let (job, start) = pair(&gateway).await;
    let dropped = timeout(percent(90), suspicious_beat(&job, 0, start)).await;
    assert!(dropped.is_err(), "still held");
    assert_eq!(job.beat(SUSPECT).await.unwrap(), alive());

    sleep_until(start + percent(170) - TICKS).await;
    assert!(is_connected(&job, 0).await);
    sleep(3 * TICKS).await;

    assert!(!is_connected(&job, 0).await, "its time counts from its beat");
}

#[tokio::test(start_paused = true)]
async fn a_held_beat_is_answered_in_time_though_the_leader_goes() {
    let (gateway, memory) = Gateway::in_memory();
    let (job, start) = pair(&gateway).await;
    let depose = async {
        sleep_until(start + percent(80)).await;
        memory.depose();
    };

    let (held, ()) = join(suspicious_beat(&job, 0, start), depose).await;

    assert!(held >= percent(30) && held < percent(48), "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn a_held_beat_is_answered_in_time_though_the_expiry_fails() {
    let (gateway, memory) = Gateway::in_memory();
    let (job, start) = pair(&gateway).await;
    memory.set_mishaps(|_| Mishap::Silence);

    let held = suspicious_beat(&job, 0, start).await;

    assert!(held >= percent(30), "{held:?}");
}

/// A follower whose state is older than the leader's word does not refuse the task for that.
#[tokio::test(start_paused = true)]
async fn a_follower_that_does_not_know_the_task_yet_does_not_refuse_it() {
    let (leader, memory) = Gateway::in_memory();
    sleep(TICKS).await;
    let on_leader = job_of(&leader, "test", spec(2)).await;
    let (gateway, follower) = Follower::start(&memory, Options::default());
    follower.catch_up();
    let job = on_leader.on(&gateway);
    on_leader.register_all_known(2).await;
    let start = Instant::now();
    let late = async {
        sleep_until(start + percent(90)).await;
        assert_eq!(on_leader.beat(SUSPECT).await.unwrap(), alive());
    };

    let (held, ()) = join(suspicious_beat(&job, 0, start), late).await;

    assert!(held >= percent(30), "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn who_beats_while_the_expiry_is_still_being_proposed_hears_of_it() {
    let (gateway, memory) = Gateway::in_memory();
    let (job, start) = pair(&gateway).await;
    let mut failures = 4;
    memory.set_mishaps(move |envelope| match (&envelope.command, failures) {
        (Command::Task(task::Command::Expire { .. }), 1..) => {
            failures -= 1;
            Mishap::NoLeader
        }
        _ => Mishap::Success,
    });
    let first = TICKS;

    let (told, fault) = client(&job, 0, first).await;

    assert_eq!(fault, Fault::TasksUnhealthy { tasks: vec![TaskId(SUSPECT)] });
    let after = told - start;
    assert!(after > TIMEOUT + TICKS && after <= TIMEOUT + 3 * TICKS, "{after:?}");
}

/// The end of a recoverable task is its own affair, and once it is settled nobody waits for it.
#[tokio::test(start_paused = true)]
async fn a_suspect_whose_end_concerns_nobody_is_forgotten_after_it() {
    let (gateway, _memory) = Gateway::in_memory();
    sleep(TICKS).await;
    let job = job_of(&gateway, "test", spec(2)).await;
    let incarnation = life(SUSPECT);
    let (scope, task) = (job.scope, TaskId(SUSPECT));
    let register = task::Command::Register {
        scope,
        task,
        incarnation,
        recoverable: true,
        protocol: task::Protocol::Xla,
    };
    let (one, other) = join(job.register(0), gateway.call(Command::Task(register))).await;
    assert_eq!((one.unwrap(), other.unwrap()), (alive(), alive()));
    for task in [0, SUSPECT] {
        assert_eq!(job.beat(task).await.unwrap(), alive());
    }
    let start = Instant::now();
    suspicious_beat(&job, 0, start).await;
    assert!(!is_connected(&job, SUSPECT).await);

    for _ in 0..3 {
        sleep(percent(50)).await;
        let sent = Instant::now();
        assert_eq!(job.beat(0).await.unwrap(), alive());
        assert_eq!(sent.elapsed(), Duration::ZERO);
    }
}

/// Clients that never ask for errors: all tasks fail with the one that died.
#[tokio::test(start_paused = true)]
async fn survivors_that_never_asked_for_errors_hear_in_time_too() {
    let (gateway, _memory) = Gateway::in_memory();
    sleep(TICKS).await;
    let job = job_of(&gateway, "test", spec(2)).await;
    job.register_all_known(2).await;
    let start = Instant::now();

    let (told, fault) = client(&job, 0, percent(20)).await;

    assert!(matches!(fault, Fault::BeatInError { .. }), "{fault:?}");
    let after = told - start;
    assert!(after >= TIMEOUT && after <= TIMEOUT + TICKS, "{after:?}");
}

#[tokio::test(start_paused = true)]
async fn a_held_beat_ends_with_its_job() {
    let (gateway, _memory) = Gateway::in_memory();
    let (job, start) = pair(&gateway).await;
    sleep_until(start + percent(20)).await;
    assert_eq!(job.beat(0).await.unwrap(), alive());
    sleep_until(start + percent(70)).await;
    let mut beat = std::pin::pin!(job.beat(0));
    assert!(timeout(TICKS, &mut beat).await.is_err());

    let delete = job::Command::Delete { name: "test".into() };
    gateway.submit(Command::Job(delete)).await.unwrap().unwrap();

    assert!(matches!(beat.await.unwrap(), Err(Fault::JobUnknown { .. })));
    assert_eq!(start.elapsed(), percent(70) + TICKS);
}

#[tokio::test(start_paused = true)]
async fn jobs_that_do_not_tell_by_beats_are_not_held() {
    let (gateway, _memory) = Gateway::in_memory();
    let specs = [
        ("hold", job::Spec { poll: Poll::Hold, ..spec(2) }),
        ("recoverable", job::Spec { recoverable: true, ..spec(2) }),
        ("short", job::Spec { heartbeat_timeout_ms: DurationMs(1000), ..spec(2) }),
    ];
    for (name, spec) in specs {
        let timeout = Duration::from_millis(spec.heartbeat_timeout_ms.0);
        let (job, start) = connected(&gateway, name, spec).await;
        sleep_until(start + timeout / 5).await;
        assert_eq!(job.beat(0).await.unwrap(), alive());
        sleep_until(start + timeout * 4 / 5).await;
        assert_eq!(job.beat(0).await.unwrap(), alive());
        assert_eq!(start.elapsed(), timeout * 4 / 5, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspect_of_one_job_holds_no_beat_of_another() {
    let (gateway, _memory) = Gateway::in_memory();
    let (sound, start) = pair(&gateway).await;
    let (broken, _) = connected(&gateway, "broken", spec(2)).await;
    let calm = async {
        for hundredths in [20, 70, 100] {
            sleep_until(start + percent(hundredths)).await;
            for task in [SUSPECT, 0] {
                assert_eq!(sound.beat(task).await.unwrap(), alive());
            }
            assert_eq!(start.elapsed(), percent(hundredths), "answered at once");
        }
    };

    let (told, ()) = join(client(&broken, 0, percent(20)), calm).await;

    assert_eq!(told.1, Fault::TasksUnhealthy { tasks: vec![TaskId(SUSPECT)] });
    assert!(is_connected(&sound, 0).await && is_connected(&sound, SUSPECT).await);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_left_in_peace_is_no_suspect() {
    let (gateway, _memory) = Gateway::in_memory();
    let (job, start) = pair(&gateway).await;
    let leave = task::Command::Reset { scope: job.scope, task: TaskId(SUSPECT) };
    gateway.submit(Command::Task(leave)).await.unwrap().unwrap();

    assert_eq!(suspicious_beat(&job, 0, start).await, Duration::ZERO);
}

/// Two beats that are judged together: the first one is not told of the task of the second.
#[tokio::test(start_paused = true)]
async fn a_suspect_that_beats_in_the_same_moment_is_none() {
    let (gateway, _memory) = Gateway::in_memory();
    let (job, start) = pair(&gateway).await;
    sleep_until(start + percent(20)).await;
    assert_eq!(job.beat(0).await.unwrap(), alive());
    sleep_until(start + percent(70)).await;

    let (one, other) = join(job.beat(0), job.beat(SUSPECT)).await;

    assert_eq!((one.unwrap(), other.unwrap()), (alive(), alive()));
    assert_eq!(start.elapsed(), percent(70));
}

/// Its patience with one beat is as short as its pause between two.
#[tokio::test(start_paused = true)]
async fn a_client_that_beats_faster_than_its_job_asks_is_not_held() {
    let (gateway, _memory) = Gateway::in_memory();
    let (job, start) = pair(&gateway).await;
    for hundredths in [30, 60, 90] {
        sleep_until(start + percent(hundredths)).await;
        assert_eq!(job.beat(0).await.unwrap(), alive());
        assert_eq!(start.elapsed(), percent(hundredths));
    }
}

#[tokio::test(start_paused = true)]
async fn held_beats_count_as_waiting_calls_within_their_bound() {
    let (gateway, _memory) = Gateway::in_memory_with(Options { waiting_max: 2, ..Options::default() });
    let (job, start) = connected(&gateway, "test", spec(3)).await;
    let mut key = std::pin::pin!(gateway.wait(job.key_ticket("k")));
    assert!(timeout(TICKS, &mut key).await.is_err());
    let count = async {
        sleep_until(start + percent(80)).await;
        gateway.waiting_calls()
    };
    let late = async {
        sleep_until(start + percent(90)).await;
        assert_eq!(job.beat(SUSPECT).await.unwrap(), alive());
    };

    let beats = join_all([0, 2].map(|task| suspicious_beat(&job, task, start)));
    let (held, (count, ())) = join(beats, join(count, late)).await;

    assert_eq!(count, 2);
    assert_eq!(held.iter().filter(|held| held.is_zero()).count(), 1, "{held:?}");
    assert_eq!(gateway.waiting_calls(), 1, "the key");
}
