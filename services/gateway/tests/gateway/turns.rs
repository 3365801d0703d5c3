//! The calls of clients take turns.

use std::sync::Arc;

use futures::poll;
use parking_lot::Mutex;
use tripod_gateway::{Gateway, MemoryBackend, Mishap};
use tripod_port::{CallerAddress, CallerConnection, StreamOrder};
use tripod_state::{Command, Envelope, kv};

use crate::common::job;

/// Writes of clients that are under way on a node at a time.
const UNDER_WAY_MAX: usize = 512;

fn is_of(key: &str, envelope: &Envelope) -> bool {
    matches!(&envelope.command, Command::Kv(kv::Command::Insert { key: of, .. }) if of == key)
}

async fn until_wait(gateway: &Gateway, calls: u64) {
    let waiting = || (gateway.turns().waiting == calls).then_some(());
    tripod_wait::until(format!("{calls} calls wait for their turn"), waiting).await;
}

#[tokio::test(start_paused = true)]
async fn what_the_node_does_by_itself_waits_for_no_turn_and_clients_wait_until_others_have_gone() {
    let (gateway, backend) = Gateway::in_memory();
    let job = job(&gateway, 1).await;
    backend.set_mishaps(|envelope| if is_of("stuck", envelope) { Mishap::Silence } else { Mishap::Success });
    let write = |at: u8, key: &str| {
        let caller = CallerConnection::from(CallerAddress::at([10, 0, 0, at].into()));
        let (gateway, command) = (gateway.clone(), job.insert_command(key, "value"));
        tokio::spawn(caller.scope(async move { gateway.submit(command).await }))
    };
    let stuck: Vec<_> = (0..=UNDER_WAY_MAX).map(|_| write(1, "stuck")).collect();
    until_wait(&gateway, 1).await;
    assert_eq!(gateway.waiting_calls(), 1, "only who waits is counted as waiting");

    gateway.submit(job.insert_command("own", "value")).await.unwrap().unwrap();

    let other = write(2, "other");
    let stamped = {
        let caller = CallerConnection::from(CallerAddress::at([10, 0, 0, 3].into()));
        let envelope = Envelope { stamp: None, command: job.insert_command("stamped", "value") };
        let gateway = gateway.clone();
        tokio::spawn(caller.scope(async move { gateway.submit_stamped(envelope).await }))
    };
    until_wait(&gateway, 3).await;
    stuck[0].abort();
    until_wait(&gateway, 2).await;
    assert!(!other.is_finished() && !stamped.is_finished(), "the room was for who came first");
    stuck[1].abort();
    other.await.unwrap().unwrap().unwrap();
    stamped.await.unwrap().unwrap().unwrap();
    assert_eq!(gateway.turns().waited_total, 3);
}

/// The commands of clients of this backend from now on, in their order. Those of the key `stuck` get no answer.
fn noted(backend: &MemoryBackend) -> Arc<Mutex<Vec<String>>> {
    let keys = Arc::<Mutex<Vec<String>>>::default();
    let noted = Arc::clone(&keys);
    backend.set_mishaps(move |envelope| {
        let Command::Kv(kv::Command::Insert { key, .. }) = &envelope.command else { return Mishap::Success };
        noted.lock().push(key.clone());
        if key == "stuck" { Mishap::Silence } else { Mishap::Success }
    });
    keys
}

#[tokio::test(start_paused = true)]
async fn a_command_whose_turn_has_come_is_overtaken_by_none_that_comes_later_in_its_stream() {
    let (gateway, backend) = Gateway::in_memory();
    let job = job(&gateway, 1).await;
    let keys = noted(&backend);
    let caller = CallerConnection::from(CallerAddress::default());
    let call = |key: &str| {
        let (gateway, command) = (gateway.clone(), job.insert_command(key, "value"));
        caller.scope(async move { gateway.submit(command).await.unwrap().unwrap() })
    };
    let stuck: Vec<_> = (0..UNDER_WAY_MAX).map(|_| tokio::spawn(call("stuck"))).collect();
    tripod_wait::until("all turns are taken", || (keys.lock().len() == UNDER_WAY_MAX).then_some(())).await;
    keys.lock().clear();

    let (stream, other) = (StreamOrder::default(), StreamOrder::default());
    let mut first = Box::pin(stream.scope(call("first")));
    assert!(poll!(&mut first).is_pending(), "there is no room");
    for stuck in &stuck[..4] {
        stuck.abort();
    }
    until_wait(&gateway, 0).await;

    let mut second = Box::pin(stream.scope(call("second")));
    assert!(poll!(&mut second).is_pending(), "the first has its turn, and does not know it yet");
    other.scope(call("other")).await;
    let mut third = Box::pin(stream.scope(call("third")));
    assert!(poll!(&mut third).is_pending());
    drop(second);
    first.await;
    third.await;
    assert_eq!(*keys.lock(), ["other", "first", "third"]);
}
