//! A command takes effect once, whatever its proposals meet, and the caller is told the truth.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::job;
use futures::FutureExt as _;
use tokio::time::timeout;
use tripod_gateway::{Gateway, Mishap, Options, Outage, Replica as _};
use tripod_state::ids::{Sequence, SessionId, TaskId, TimeMs};
use tripod_state::{Answer, Command, Envelope, Fault, Stamp, session, task};

/// A fixed pattern of what goes wrong, so that a failure can be repeated.
fn troubled() -> impl FnMut(&Envelope) -> Mishap + Send + 'static {
    let mut number = 0_u64;
    move |_| {
        number += 1;
        match number % 7 {
            1 => Mishap::UnknownButApplied,
            3 => Mishap::UnknownAndLost,
            5 => Mishap::NoLeader,
            6 => Mishap::Overloaded,
            _ => Mishap::Success,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_increments_under_unknown_outcomes_make_a_thousand() {
    let (gateway, memory) = Gateway::in_memory();
    let job = job(&gateway, 1).await;
    memory.set_mishaps(troubled());

    let calls = (0..1000).map(|_| gateway.submit(job.increment_command("n")));
    for reply in futures::future::join_all(calls).await {
        assert!(matches!(reply.unwrap(), Ok(Answer::Value { .. })));
    }

    assert_eq!(job.value_here("n").await.as_deref(), Some("1000"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_callers_on_several_threads_count_right() {
    let (gateway, memory) = Gateway::in_memory();
    let job = job(&gateway, 1).await;
    memory.set_mishaps(troubled());

    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let (gateway, increment) = (gateway.clone(), job.increment_command("n"));
        callers.spawn(async move {
            for _ in 0..4 {
                gateway.submit(increment.clone()).await.unwrap().unwrap();
            }
        });
    }
    let all = callers.join_all();
    tripod_wait::within("all callers", all).await;

    assert_eq!(job.value_here("n").await.as_deref(), Some("256"));
}

#[tokio::test(start_paused = true)]
async fn a_command_is_held_until_there_is_a_leader() {
    let (gateway, memory) = Gateway::in_memory();
    let job = job(&gateway, 1).await;
    memory.depose();

    let mut held = std::pin::pin!(gateway.submit(job.increment_command("n")));
    assert!(timeout(Duration::from_secs(60), &mut held).await.is_err(), "nobody leads");
    assert_eq!(gateway.waiting_calls(), 1);

    memory.elect();
    assert!(held.await.unwrap().is_ok());
    assert_eq!(gateway.waiting_calls(), 0);
    assert_eq!(job.value_here("n").await.as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_ends_the_pause_that_a_dead_one_caused() {
    let (gateway, memory) = Gateway::in_memory();
    let job = job(&gateway, 1).await;
    memory.set_mishaps(|_| Mishap::NoLeader);
    let call = gateway.submit(job.increment_command("n"));
    tokio::pin!(call);
    // Long enough for the pauses to have grown to half a second; the last one has just begun.
    assert!(timeout(Duration::from_millis(1200), &mut call).await.is_err());

    memory.set_mishaps(|_| Mishap::Success);
    memory.elect();
    timeout(Duration::from_millis(20), call).await.expect("the pause goes on").unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn patience_ends_with_what_is_known() {
    let hold = Duration::from_secs(3);
    let (gateway, memory) = Gateway::in_memory_with(Options { hold, ..Options::default() });
    let job = job(&gateway, 1).await;

    memory.depose();
    let outcome = gateway.submit(job.increment_command("n")).await;
    assert!(matches!(outcome, Err(Outage::NoLeader { waited_ms: 3000.., .. })), "{outcome:?}");

    memory.elect();
    memory.set_mishaps(|_| Mishap::UnknownAndLost);
    let outcome = gateway.submit(job.increment_command("n")).await;
    assert!(matches!(outcome, Err(Outage::Unknown(_))), "{outcome:?}");

    // An answer that never comes leaves the outcome open, too.
    memory.set_mishaps(|_| Mishap::Silence);
    let outcome = gateway.submit(job.increment_command("n")).await;
    assert!(matches!(outcome, Err(Outage::Unknown(_))), "{outcome:?}");
    assert_eq!(gateway.waiting_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn callers_that_go_away_do_not_stall_the_floor() {
    let (gateway, memory) = Gateway::in_memory();
    let job = job(&gateway, 1).await;
    let floor = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&floor);
    memory.set_mishaps(move |envelope| {
        if let Some(stamp) = envelope.stamp {
            seen.store(stamp.acknowledged_below.0, Ordering::SeqCst);
        }
        Mishap::Silence
    });
    // More than the session's window, all abandoned while under way.
    for _ in 0..20_000 {
        assert!(gateway.submit(job.increment_command("n")).now_or_never().is_none());
    }
    assert!(floor.load(Ordering::SeqCst) > 19_000);

    memory.set_mishaps(|_| Mishap::Success);
    assert!(gateway.submit(job.increment_command("n")).await.unwrap().is_ok());
    assert_eq!(job.value_here("n").await.as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn an_expired_session_is_opened_again() {
    let (gateway, memory) = Gateway::in_memory();
    let job = job(&gateway, 1).await;
    let expire = session::Command::ExpireIdle { before_ms: TimeMs(u64::MAX) };
    memory.propose(Envelope { stamp: None, command: Command::Session(expire) }).await.unwrap();

    assert!(gateway.submit(job.increment_command("n")).await.unwrap().is_ok());
    assert_eq!(job.value_here("n").await.as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn an_expired_session_does_not_repeat_what_may_have_happened() {
    let (gateway, memory) = Gateway::in_memory();
    let job = job(&gateway, 1).await;
    let expiring = Arc::downgrade(&memory);
    let mut attempts = 0;
    memory.set_mishaps(move |envelope| {
        if envelope.stamp.is_none() {
            return Mishap::Success;
        }
        attempts += 1;
        match attempts {
            1 => Mishap::UnknownButApplied,
            2 => {
                let memory = expiring.upgrade().expect("alive while it is asked");
                let mut state = memory.state();
                let expire = session::Command::ExpireIdle { before_ms: TimeMs(u64::MAX) };
                let context = tripod_state::ApplyContext {
                    index: memory.applied_index(),
                    term: tripod_state::ids::Term(1),
                    now_ms: state.now_ms(),
                };
                state.apply(&context, Envelope { stamp: None, command: Command::Session(expire) });
                memory.replace(state);
                Mishap::Success
            }
            _ => panic!("sent again: {envelope:?}"),
        }
    });

    let outcome = gateway.submit(job.increment_command("n")).await;

    assert!(matches!(outcome, Err(Outage::Unknown(_))), "{outcome:?}");
    assert_eq!(job.value_here("n").await.as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn a_clients_own_stamp_passes_unchanged() {
    let (gateway, memory) = Gateway::in_memory();
    let job = job(&gateway, 1).await;
    let open = gateway.submit(Command::Session(session::Command::Open)).await.unwrap();
    let Ok(Answer::Session(session)) = open else { panic!("no session: {open:?}") };
    let stamp = Stamp { session, sequence: Sequence(1), acknowledged_below: Sequence(1) };
    let envelope = Envelope { stamp: Some(stamp), command: job.increment_command("n") };
    let mut first = true;
    memory.set_mishaps(move |_| match std::mem::take(&mut first) {
        true => Mishap::UnknownButApplied,
        false => Mishap::Success,
    });

    let once = gateway.submit_stamped(envelope.clone()).await.unwrap();
    let again = gateway.submit_stamped(envelope).await.unwrap();

    assert_eq!(once, again, "the remembered reply");
    assert_eq!(job.value_here("n").await.as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn without_a_stamp_an_unknown_outcome_is_told() {
    let (gateway, memory) = Gateway::in_memory();
    let job = job(&gateway, 1).await;
    let attempts = Arc::new(Mutex::new(vec![Mishap::UnknownButApplied, Mishap::NoLeader]));
    memory.set_mishaps(move |_| attempts.lock().unwrap().pop().unwrap_or(Mishap::Success));

    let envelope = Envelope { stamp: None, command: job.increment_command("n") };
    let outcome = gateway.submit_stamped(envelope).await;

    assert!(matches!(outcome, Err(Outage::Unknown(_))), "{outcome:?}");
    assert_eq!(job.value_here("n").await.as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn closing_an_unknown_session_leaves_ours_alone() {
    let (gateway, memory) = Gateway::in_memory();
    let job = job(&gateway, 1).await;
    let opened = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&opened);
    memory.set_mishaps(move |envelope| {
        if matches!(envelope.command, Command::Session(session::Command::Open)) {
            count.fetch_add(1, Ordering::SeqCst);
        }
        Mishap::Success
    });

    let close = Command::Session(session::Command::Close { session: SessionId(u128::MAX) });
    let reply = gateway.submit(close).await.unwrap();
    assert!(matches!(reply, Ok(Answer::Done) | Err(Fault::SessionExpired)), "{reply:?}");
    gateway.submit(job.increment_command("n")).await.unwrap().unwrap();

    assert_eq!(opened.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_says_so() {
    let (gateway, memory) = Gateway::in_memory();
    let job = job(&gateway, 1).await;
    memory.depose();
    let mut held = std::pin::pin!(gateway.submit(job.increment_command("n")));
    assert!(timeout(Duration::from_secs(1), &mut held).await.is_err());

    memory.stop();

    assert_eq!(held.await, Err(Outage::Stopping));
    assert_eq!(gateway.submit(job.increment_command("n")).await, Err(Outage::Stopping));
}

#[tokio::test(start_paused = true)]
async fn f1_a_list_that_is_longer_than_its_job_is_refused_before_anybody_is_sent_it() {
    let (gateway, memory) = Gateway::in_memory();
    let job = job(&gateway, 1).await;
    let proposed = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&proposed);
    memory.set_mishaps(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Mishap::Success
    });
    let tasks = vec![TaskId(0); 1_025];
    let alive = Command::Task(task::Command::Alive { scope: job.scope, task: TaskId(0), tasks });
    let refused = |reply| matches!(reply, Ok(Err(Fault::LimitExceeded { limit: 1_024, actual: 1_025, .. })));
    assert!(refused(gateway.submit(alive.clone()).await));
    let stamp = Some(Stamp { session: SessionId(1), sequence: Sequence(1), acknowledged_below: Sequence(1) });
    assert!(refused(gateway.submit_stamped(Envelope { stamp, command: alive }).await));
    assert_eq!(proposed.load(Ordering::Relaxed), 0);
}
