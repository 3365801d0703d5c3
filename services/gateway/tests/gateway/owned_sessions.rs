//! Whose sessions are, from feature level 5 on.

use std::sync::{Arc, Mutex};

use tripod_gateway::{Backend as _, CallerAddress, Gateway, IdWidth, MemoryBackend, Mishap};
use tripod_state::ids::{FeatureLevel, Sequence, SessionId};
use tripod_state::{Answer, Command, Envelope, Fault, Stamp, level};

use crate::common::job;

async fn raise(memory: &MemoryBackend) {
    let raise = level::Command::Raise { to: FeatureLevel(5), heard: Vec::new() };
    let applied = memory.propose(Envelope { stamp: None, command: Command::Level(raise) }).await;
    assert_eq!(applied.unwrap().reply, Ok(Answer::Done));
}

/// The sessions of the commands that are proposed from now on.
fn watched(memory: &MemoryBackend) -> Arc<Mutex<Vec<SessionId>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    memory.set_mishaps(move |envelope| {
        noted.lock().unwrap().extend(envelope.stamp.map(|stamp| stamp.session));
        Mishap::Success
    });
    seen
}

async fn open(gateway: &Gateway, width: IdWidth) -> SessionId {
    match gateway.open_session(CallerAddress::at([10, 0, 0, 1].into()), width).await.unwrap() {
        Ok(Answer::Session(id)) => id,
        other => panic!("no session: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn f2_a_node_s_session_can_be_named_by_nobody_as_soon_as_the_level_allows_it() {
    let (gateway, memory) = Gateway::in_memory();
    let job = job(&gateway, 1).await;
    let sessions = watched(&memory);
    gateway.submit(job.increment_command("n")).await.unwrap().unwrap();
    raise(&memory).await;
    for _ in 0..2 {
        gateway.submit(job.increment_command("n")).await.unwrap().unwrap();
    }
    let sessions = sessions.lock().unwrap().clone();
    let [before, after, again] = sessions[..] else { panic!("{sessions:?}") };
    assert!(!before.is_node() && after.is_node() && after == again, "{sessions:?}");
    // What a client says of it names another session.
    assert_ne!(SessionId::of_client(after.0), after);
    assert_eq!(job.value_here("n").await.as_deref(), Some("3"));
}

#[tokio::test(start_paused = true)]
async fn f2_ids_of_clients_sessions_are_random_and_as_wide_as_the_client_can_take() {
    let (gateway, memory) = Gateway::in_memory();
    let first = open(&gateway, IdWidth::Wide).await;
    assert!(first.0 < 1_000, "a log index: {first}");
    raise(&memory).await;
    let wide = [open(&gateway, IdWidth::Wide).await, open(&gateway, IdWidth::Wide).await];
    assert!(wide.iter().all(|id| id.0 >> 64 != 0 && !id.is_node()), "{wide:?}");
    let narrow = [open(&gateway, IdWidth::Narrow).await, open(&gateway, IdWidth::Narrow).await];
    assert!(narrow.iter().all(|id| id.0 >> 64 == 0 && id.0 >> 32 != 0), "{narrow:?}");
    assert!(wide[0] != wide[1] && narrow[0] != narrow[1]);
}

/// The id of the lost answer is taken, so another one is drawn.
#[tokio::test(start_paused = true)]
async fn a_session_whose_opening_was_not_answered_is_opened_anew() {
    let (gateway, memory) = Gateway::in_memory();
    let job = job(&gateway, 1).await;
    raise(&memory).await;
    let mut attempt = 0;
    memory.set_mishaps(move |_| {
        attempt += 1;
        if attempt == 1 { Mishap::UnknownButApplied } else { Mishap::Success }
    });
    let session = open(&gateway, IdWidth::Wide).await;
    let stamp = Some(Stamp { session, sequence: Sequence(1), acknowledged_below: Sequence(1) });
    let count = |key: &str| gateway.submit_stamped(Envelope { stamp, command: job.increment_command(key) });
    let once = count("n").await.unwrap();
    assert_eq!(once, count("n").await.unwrap());
    assert_eq!(count("m").await.unwrap(), Err(Fault::StampReused));
}
