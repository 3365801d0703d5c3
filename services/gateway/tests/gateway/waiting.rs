//! Waits end when the state says so, and for no other reason.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{HEARTBEAT_MS, job, passed};
use crate::follower::Follower;
use tokio::time::timeout;
use tripod_gateway::{Consistency, Gateway, NodeSilence, Options, Outage};
use tripod_state::ids::{JobId, NodeId};
use tripod_state::{Answer, Command, Fault, Topic, job as jobs};

const PATIENT: i64 = 600_000;
const A_WHILE: Duration = Duration::from_millis(HEARTBEAT_MS / 4);

#[tokio::test(start_paused = true)]
async fn a_barrier_passes_for_all_who_wait() {
    let (gateway, _memory) = Gateway::in_memory();
    let job = job(&gateway, 3).await;
    job.register_all(3).await;

    let arrivals = (0..3).map(|task| job.arrive("b", task, PATIENT));
    for reply in futures::future::join_all(arrivals).await {
        assert_eq!(reply.unwrap(), passed());
    }
    assert_eq!(gateway.waiting_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_leaders_does_not_end_a_wait() {
    let (gateway, memory) = Gateway::in_memory();
    let job = job(&gateway, 2).await;
    job.register_all(2).await;
    let mut waiting = std::pin::pin!(job.arrive("b", 0, PATIENT));
    assert!(timeout(A_WHILE, &mut waiting).await.is_err());

    memory.depose();
    assert!(timeout(A_WHILE, &mut waiting).await.is_err());
    memory.elect();
    assert!(timeout(A_WHILE, &mut waiting).await.is_err());

    assert_eq!(job.arrive("b", 1, PATIENT).await.unwrap(), passed());
    assert_eq!(waiting.await.unwrap(), passed());
}

#[tokio::test(start_paused = true)]
async fn a_follower_resolves_only_what_it_has_applied() {
    let (leader, memory) = Gateway::in_memory();
    let on_leader = job(&leader, 2).await;
    on_leader.register_all(2).await;
    let (gateway, follower) = Follower::start(&memory, Options::default());
    let on_follower = on_leader.on(&gateway);

    let mut arrival = std::pin::pin!(on_follower.arrive("b", 0, PATIENT));
    assert!(timeout(A_WHILE, &mut arrival).await.is_err(), "its state does not even know the job");
    assert_eq!(on_leader.arrive("b", 1, PATIENT).await.unwrap(), passed());
    assert!(timeout(A_WHILE, &mut arrival).await.is_err(), "passed, but not yet applied here");

    follower.catch_up();
    assert_eq!(arrival.await.unwrap(), passed());
}

#[tokio::test(start_paused = true)]
async fn a_linearizable_read_on_a_follower_sees_an_acknowledged_write() {
    let (leader, memory) = Gateway::in_memory();
    let job = job(&leader, 1).await;
    let (gateway, follower) = Follower::start(&memory, Options::default());
    leader.submit(job.insert_command("k", "v")).await.unwrap().unwrap();
    let scope = job.scope;

    let local = gateway.read(Consistency::Local, |state| state.get(scope, "k")).await.unwrap();
    assert!(local.is_err(), "this node is behind");
    let mut read = std::pin::pin!(gateway.read(Consistency::Linearizable, |state| state.get(scope, "k")));
    assert!(timeout(A_WHILE, &mut read).await.is_err());

    follower.catch_up();
    assert_eq!(read.await.unwrap().unwrap().value, "v");
}

#[tokio::test(start_paused = true)]
async fn reads_are_held_while_nobody_leads() {
    let (gateway, memory) = Gateway::in_memory();
    let job = job(&gateway, 1).await;
    gateway.submit(job.insert_command("k", "v")).await.unwrap().unwrap();
    memory.depose();
    let scope = job.scope;

    assert_eq!(job.value_here("k").await.as_deref(), Some("v"), "a local read needs no leader");
    let mut read = std::pin::pin!(gateway.read(Consistency::Linearizable, |state| state.get(scope, "k")));
    let mut wait = std::pin::pin!(gateway.wait(job.key_ticket("k")));
    assert!(timeout(A_WHILE, &mut read).await.is_err());
    assert!(timeout(A_WHILE, &mut wait).await.is_err());

    memory.elect();
    assert!(read.await.unwrap().is_ok());
    assert!(matches!(wait.await.unwrap(), Ok(Answer::Value { .. })));
}

/// The change comes behind each of the looks that a wait takes: none may fall into a gap.
#[tokio::test(start_paused = true)]
async fn a_change_right_behind_a_look_is_seen() {
    let (leader, memory) = Gateway::in_memory();
    let job = job(&leader, 2).await;
    let (gateway, follower) = Follower::start(&memory, Options::default());
    follower.catch_up();
    for looks in 1..=2 {
        let key = format!("k/{looks}");
        follower.meddle_behind(looks, job.insert_command(&key, "v"));
        let reply = timeout(A_WHILE, gateway.wait(job.key_ticket(&key))).await;
        let reply = reply.unwrap_or_else(|_| panic!("lost behind look {looks}"));
        assert!(matches!(reply.unwrap(), Ok(Answer::Value { .. })));
    }
}

/// Each waiter starts while its key is being written. A wake-up that falls between the look and the
/// wait hangs the test until its deadline.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_wake_up_is_lost_among_many_waiters() {
    let (gateway, _memory) = Gateway::in_memory();
    let job = Arc::new(job(&gateway, 1).await);
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..2_000 {
        let key = format!("k/{number}");
        for _ in 0..2 {
            let (gateway, ticket) = (gateway.clone(), job.key_ticket(&key));
            calls.spawn(async move { gateway.wait(ticket).await });
        }
        let (gateway, insert) = (gateway.clone(), job.insert_command(&key, "v"));
        calls.spawn(async move { gateway.submit(insert).await });
    }
    let all = calls.join_all();
    let replies = tripod_wait::within("every waiter to be woken", all).await;

    assert!(replies.iter().all(|reply| matches!(reply, Ok(Ok(_)))));
    assert_eq!(gateway.waiting_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_job_ends_its_waits() {
    let (gateway, _memory) = Gateway::in_memory();
    let job = job(&gateway, 2).await;
    let mut registration = std::pin::pin!(job.register(0));
    let mut key = std::pin::pin!(gateway.wait(job.key_ticket("k")));
    assert!(timeout(A_WHILE, &mut registration).await.is_err());
    assert!(timeout(A_WHILE, &mut key).await.is_err());
    assert_eq!(gateway.waiting_calls(), 2);

    let delete = jobs::Command::Delete { name: "test".into() };
    gateway.submit(Command::Job(delete)).await.unwrap().unwrap();

    assert!(matches!(registration.await.unwrap(), Err(Fault::JobUnknown { .. })));
    assert!(matches!(key.await.unwrap(), Err(Fault::JobUnknown { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_replaced_state_is_looked_at_again() {
    let (gateway, memory) = Gateway::in_memory();
    let job = job(&gateway, 1).await;
    let before = memory.state();
    gateway.submit(job.insert_command("k", "v")).await.unwrap().unwrap();
    let after = memory.state();
    memory.replace(before);
    let mut wait = std::pin::pin!(gateway.wait(job.key_ticket("k")));
    assert!(timeout(A_WHILE, &mut wait).await.is_err());

    memory.replace(after);
    assert!(matches!(wait.await.unwrap(), Ok(Answer::Value { .. })));
}

#[tokio::test(start_paused = true)]
async fn waits_that_are_dropped_are_not_counted_and_too_many_are_refused() {
    let (gateway, _memory) = Gateway::in_memory_with(Options { waiting_max: 2, ..Options::default() });
    let job = job(&gateway, 1).await;
    for _ in 0..10 {
        assert!(timeout(A_WHILE, gateway.wait(job.key_ticket("k"))).await.is_err());
    }
    assert_eq!(gateway.waiting_calls(), 0);

    let mut first = std::pin::pin!(gateway.wait(job.key_ticket("k")));
    let mut second = std::pin::pin!(gateway.wait(job.key_ticket("k")));
    assert!(timeout(A_WHILE, &mut first).await.is_err());
    assert!(timeout(A_WHILE, &mut second).await.is_err());
    let third = gateway.wait(job.key_ticket("k")).await;
    assert!(matches!(third, Err(Outage::Overloaded(_))), "{third:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_of_jobs() {
    let (gateway, _memory) = Gateway::in_memory();
    let mut watch = gateway.watch(Topic::Jobs);
    assert!(timeout(A_WHILE, watch.changed()).await.is_err());

    job(&gateway, 1).await;

    timeout(A_WHILE, watch.changed()).await.expect("a job was created");
    assert!(timeout(A_WHILE, watch.changed()).await.is_err(), "one change is told once");
}

#[tokio::test]
async fn a_member_is_silent_after_it_has_not_answered_twice() {
    let (_leader, memory) = Gateway::in_memory();
    let (gateway, follower) = Follower::start(&memory, Options::default());
    let asked = async |silent| {
        follower.be_silent(silent);
        let mut told = gateway.sights(JobId(1), &[NodeId(3)], Duration::from_secs(1)).await;
        told.pop().expect("one member").1.expect_err("it tells nothing")
    };
    assert_eq!(asked(1).await, NodeSilence::Refuses("it was asked".into()));
    assert_eq!(asked(2).await, NodeSilence::Silent);
}
