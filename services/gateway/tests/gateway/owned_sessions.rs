//! Whose sessions are, from feature level 5 on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tripod_gateway::{Gateway, IdWidth, MemoryBackend, Mishap, Replica as _};
use tripod_port::CallerAddress;
use tripod_state::ids::{FeatureLevel, LogIndex, Sequence, SessionId, Term, TimeMs};
use tripod_state::{Answer, ApplyContext, Command, Envelope, Fault, Stamp, level, session};
use tripod_wait::until;

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

/// A client that guesses its number does not find it for another quarter of an hour.
#[tokio::test(start_paused = true)]
async fn f2_the_session_of_before_the_raise_ends_when_its_commands_are_answered() {
    let (gateway, memory) = Gateway::in_memory();
    let job = job(&gateway, 1).await;
    let before = Arc::new(Mutex::new(None));
    let noted = Arc::clone(&before);
    memory.set_mishaps(move |envelope| match envelope.stamp {
        Some(stamp) => {
            *noted.lock().unwrap() = Some(stamp.session);
            Mishap::Slow(Duration::from_secs(5))
        }
        None => Mishap::Success,
    });
    let slow = tokio::spawn({
        let (gateway, increment) = (gateway.clone(), job.increment_command("n"));
        async move { gateway.submit(increment).await }
    });
    let guessed = until("a command under way", || *before.lock().unwrap()).await;
    raise(&memory).await;
    let open = || memory.state().sessions_open();
    until("another session, which nobody had to ask for", || (open() == 2).then_some(())).await;
    assert!(!slow.is_finished(), "it is under way in the session of before");
    assert_eq!(slow.await.unwrap().unwrap().map(|_| ()), Ok(()));
    until("the end of the session of before", || (open() == 1).then_some(())).await;
    let stamp = Some(Stamp { session: guessed, sequence: Sequence(9), acknowledged_below: Sequence(1) });
    let guess = gateway.submit_stamped(Envelope { stamp, command: job.increment_command("n") }).await;
    assert_eq!(guess.unwrap(), Err(Fault::SessionExpired));
    assert_eq!(job.value_here("n").await.as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn a_client_s_session_is_opened_although_the_level_rises_meanwhile() {
    let (gateway, memory) = Gateway::in_memory();
    job(&gateway, 1).await;
    let (node, mut rises) = (Arc::clone(&memory), true);
    memory.set_mishaps(move |envelope| {
        if matches!(envelope.command, Command::Session(session::Command::Open)) && std::mem::take(&mut rises)
        {
            let mut state = node.state();
            let raise = level::Command::Raise { to: FeatureLevel(5), heard: Vec::new() };
            let context = ApplyContext { index: LogIndex(1_000), term: Term(1), now_ms: TimeMs(0) };
            state.apply(&context, Envelope { stamp: None, command: Command::Level(raise) }).reply.unwrap();
            node.replace(state);
        }
        Mishap::Success
    });
    let id = open(&gateway, IdWidth::Wide).await;
    assert!(id.0 >> 64 != 0, "{id}");
}

#[tokio::test(start_paused = true)]
async fn sessions_are_opened_although_the_level_is_lowered_meanwhile() {
    let (gateway, memory) = Gateway::in_memory();
    let job = job(&gateway, 1).await;
    raise(&memory).await;
    let sessions = Arc::new(Mutex::new(Vec::new()));
    let (noted, node) = (Arc::clone(&sessions), Arc::clone(&memory));
    memory.set_mishaps(move |envelope| {
        noted.lock().unwrap().extend(envelope.stamp.map(|stamp| stamp.session));
        if !matches!(envelope.command, Command::Session(session::Command::OpenFor { .. })) {
            return Mishap::Success;
        }
        let mut state = node.state();
        let pin = level::Command::Pin { level: FeatureLevel(4), by: String::new() };
        let context = ApplyContext { index: LogIndex(1_000), term: Term(1), now_ms: TimeMs(0) };
        state.apply(&context, Envelope { stamp: None, command: Command::Level(pin) }).reply.unwrap();
        node.replace(state);
        Mishap::Level
    });
    let id = open(&gateway, IdWidth::Wide).await;
    assert!(id.0 < 1_000, "a log index: {id}");
    gateway.submit(job.increment_command("n")).await.unwrap().unwrap();
    assert!(sessions.lock().unwrap().iter().all(|id| !id.is_node()), "the node's own, too");
}
