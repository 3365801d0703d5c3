//! What no worker sends, and what none may. It has an answer, none as upstream, or ends its connection; the log says why, and
//! nothing is changed.

use std::fmt::Debug;
use std::time::Duration;

use prost::Message as _;
use tokio::time::timeout;
use tripod_lines::Log;
use tripod_mindspore::wire::rpc0::{BODY_BYTES_MAX, FIELD_BYTES_MAX};
use tripod_proto::mindspore::topology::RegistrationMessage;

use crate::support::{Client, Cluster, of_2_0, of_2_10};

const BROKEN: &str = "T6401 frame-broken: ";
const UNKNOWN: &str = "T6402 message-unknown: ";
const REFUSED: &str = "T6403 message-refused: ";

/// For longer than a frame may take.
const LONG: Duration = Duration::from_secs(60);

fn header(name: u32, to: u32, from: u32, body: u32) -> Vec<u8> {
    [&b"RPC0"[..], &name.to_be_bytes(), &to.to_be_bytes(), &from.to_be_bytes(), &body.to_be_bytes()].concat()
}

/// A frame of a worker.
fn frame(name: &str, body: &[u8]) -> Vec<u8> {
    let length = |part: &[u8]| u32::try_from(part.len()).unwrap();
    let head = header(length(name.as_bytes()), 1, 1, length(body));
    [&head[..], name.as_bytes(), b"@@", body].concat()
}

/// The log has one line since it was looked at last, which says that.
async fn told(log: &Log, words: &str, of: impl Debug) {
    let lines = tripod_wait::until(format!("the log says {words} of {of:02x?}"), || {
        Some(log.lines()).filter(|lines| !lines.is_empty())
    });
    let lines = lines.await;
    assert!(lines.len() == 1 && lines[0].contains(words), "{of:02x?}: {lines:?}");
}

/// All that workers see of the job's cluster.
fn seen(cluster: &Cluster) -> String {
    let (state, scope) = (cluster.backend.state(), cluster.scope);
    let nodes = (state.topology(scope), state.topology_nodes(scope), state.topology_ports(scope));
    format!("{nodes:?} {:?} {:?}", state.topology_metadata(scope, "a"), state.cluster(scope))
}

#[tokio::test(start_paused = true)]
async fn whatever_is_no_frame_ends_its_connection_and_no_other() {
    let log = Log::listen();
    let cluster = Cluster::of(1).await;
    let mut good = cluster.connect();
    assert!(good.register(&of_2_0("0")).await.success);
    let before = cluster.backend.state().digest();
    drop(log.lines());
    for bad in [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"RPC1\0\0\0\0".to_vec(),
        header(FIELD_BYTES_MAX + 1, 1, 1, 1),
        header(1, u32::MAX, 1, 1),
        header(1, 1, FIELD_BYTES_MAX + 1, 1),
        header(1, 1, 1, BODY_BYTES_MAX + 1),
        // 4 GiB, but for a byte: a header has no room for more.
        header(u32::MAX, u32::MAX, u32::MAX, u32::MAX),
        header(1, 1, 1, u32::MAX),
        // Behind a frame in order, which nobody answers.
        [frame("a_user's", b""), b"RPC1".to_vec()].concat(),
        // What no protobuf is.
        frame("0", b"\xff\xff"),
        frame("1", b"\xff\xff"),
        frame("2", b"\xff\xff"),
        frame("6", b"\xff\xff"),
        frame("7", b"\xff\xff"),
        frame("8", b"\xff\xff"),
    ] {
        let mut client = cluster.connect();
        client.send(&bad).await;
        assert_eq!(client.hear().await, None, "{bad:02x?}");
        let lines = log.lines();
        assert!(lines.last().is_some_and(|line| line.contains(BROKEN)), "{bad:02x?}: {lines:?}");
    }
    assert_eq!(cluster.backend.state().digest(), before, "of none of them anything is in the state");
    assert!(good.beat("0").await.success);
    assert_eq!(cluster.view().registered, 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_within_a_frame_is_left_and_one_that_rests_between_two_is_not() {
    let log = Log::listen();
    let cluster = Cluster::of(1).await;
    let (mut stuck, mut resting) = (cluster.connect(), cluster.connect());
    assert!(resting.register(&of_2_0("0")).await.success);
    stuck.send(&header(1, 1, 1, 1000)).await;
    assert!(timeout(Duration::from_secs(20), stuck.hear()).await.is_err(), "the rest may be on its way");
    assert_eq!(timeout(LONG, stuck.hear()).await, Ok(None));
    let lines = log.lines();
    assert!(lines.iter().any(|line| line.contains("T2210 left-unfinished: ")), "{lines:?}");
    tokio::time::sleep(LONG * 60).await;
    assert!(resting.beat("0").await.success);
}

#[tokio::test(start_paused = true)]
async fn a_registration_is_understood_in_any_pieces() {
    let cluster = Cluster::of(1).await;
    let bytes = frame("0", &of_2_10("0").encode_to_vec());
    for split in 0..=bytes.len() {
        let mut client = cluster.connect();
        client.send(&bytes[..split]).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        client.send(&bytes[split..]).await;
        let answer = client.hear().await.unwrap_or_else(|| panic!("none after a piece of {split} bytes"));
        assert_eq!((&answer.name[..], &answer.body[..]), (&b"3"[..], &[8, 1, 24, 1][..]), "{split}");
    }
    assert_eq!(cluster.view().registered, 1, "one node, however often it says so");
}

/// A message without an answer: the next one has one.
async fn say_in_vain(client: &mut Client, name: &str, body: &[u8]) {
    client.say(name, body.to_vec()).await;
    assert_eq!(client.read("nothing").await.0, "11");
}

#[tokio::test(start_paused = true)]
async fn messages_without_a_handler_and_beats_of_strangers_are_not_answered_and_end_nothing() {
    let log = Log::listen();
    let cluster = Cluster::of(1).await;
    let before = seen(&cluster);
    drop(log.lines());
    for name in ["my_message", "3", "4", "10", "12", "99", "", "-1", "\u{1b}[2J\n"] {
        let mut client = cluster.connect();
        say_in_vain(&mut client, name, b"anything").await;
        told(&log, UNKNOWN, name).await;
        say_in_vain(&mut client, name, b"anything").await;
        assert_eq!(log.lines(), [""; 0], "once for a connection");
    }
    let mut client = cluster.connect();
    // A heartbeat of node `9`, which never registered.
    say_in_vain(&mut client, "2", b"\x0a\x019").await;
    told(&log, REFUSED, "a heartbeat").await;
    client.write(&"n".repeat(4096), "x").await;
    assert_eq!(client.read("n").await.0, "11");
    told(&log, REFUSED, "a name that is too long").await;
    assert_eq!(client.unregister("9").await, "5", "nobody has come");
    told(&log, REFUSED, "a farewell").await;
    assert_eq!(client.ask("9", "MS_SCHED").await.0, "11", "nobody of such a role has a host");
    assert_eq!(seen(&cluster), before);
    assert!(client.register(&of_2_0("0")).await.success, "nothing was said to any of them");
}

#[tokio::test(start_paused = true)]
async fn a_registration_that_cannot_be_taken_is_answered_so_and_logged_and_changes_nothing() {
    let log = Log::listen();
    let cluster = Cluster::of(1).await;
    let mut good = cluster.connect();
    assert!(good.register(&of_2_0("0")).await.success);
    let before = seen(&cluster);
    drop(log.lines());
    for message in [
        of_2_0("1"),
        // Of another dialect, which is not to be spoken with the others after that.
        of_2_10("1"),
        of_2_0(""),
        of_2_0(&"x".repeat(101)),
        of_2_0("\u{1b}[2J\n"),
        RegistrationMessage { role: "MS_SCHED".into(), ..of_2_0("1") },
        RegistrationMessage { role: String::new(), ..of_2_0("0") },
        RegistrationMessage { role: "MS_PSERVER".into(), ..of_2_0("0") },
        RegistrationMessage { host_name: "h".repeat(256), ..of_2_0("0") },
        RegistrationMessage { host_ip: "1".repeat(65), ..of_2_0("0") },
    ] {
        let mut client = cluster.connect();
        let answer = client.register(&message).await;
        assert!(!answer.success && !answer.error_reason.is_empty(), "{message:?}: {answer:?}");
        told(&log, REFUSED, &message).await;
        assert_eq!(seen(&cluster), before, "{message:?}");
    }
    assert!(good.beat("0").await.success);
}
