//! Connections that never begin, and those for which there is no place.

mod support;

use std::time::Duration;

use support::frames::{Frames, Seen, message};
use support::{Served, dialects};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};
use tripod_gateway::Gateway;
use tripod_local::{ConnectionLimits, Connections};
use tripod_port::{Contact, PortResources, serve_through};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A SETTINGS frame that sets nothing.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
/// A HEADERS frame whose block goes on in another one.
const OPEN_HEADERS: [u8; 10] = [0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82];
/// A GOAWAY without an error that covers no stream.
const LAST_GOAWAY: Seen = Seen::GoAway { last_stream: 0, error: 0 };
const PREFACE_TIME: Duration = Duration::from_secs(5);
const HEADERS_TIME: Duration = Duration::from_secs(10);

/// What comes until the connection ends, and how long that takes.
async fn ended(mut line: DuplexStream) -> (Vec<u8>, Duration) {
    let began = Instant::now();
    let mut heard = Vec::new();
    // A reset is an end, too.
    let read = timeout(Duration::from_secs(120), line.read_to_end(&mut heard)).await.expect("an end");
    drop(read);
    (heard, began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn f15_who_does_not_begin_to_speak_is_left_after_5_seconds() {
    let served = Served::with_tasks(1).await;
    for said in [b"".as_slice(), &PREFACE[..11]] {
        let mut line = served.dial();
        line.write_all(said).await.expect("a connection");
        let (heard, took) = ended(line).await;
        assert_eq!(took.as_secs(), PREFACE_TIME.as_secs(), "after {said:?}");
        // Our settings, and no word more.
        assert!(heard.len() < 64 && heard.get(3).is_none_or(|kind| *kind == 4), "{heard:?}");
    }
}

/// gRPC makes a call that meets such an end once more, by itself.
#[tokio::test(start_paused = true)]
async fn f15_who_makes_no_call_is_told_to_go_after_10_seconds_and_left() {
    let served = Served::with_tasks(1).await;
    for more in [b"".as_slice(), &OPEN_HEADERS] {
        let mut line = served.dial();
        line.write_all(&[PREFACE, &SETTINGS, more].concat()).await.expect("a connection");
        let (heard, took) = ended(line).await;
        assert!((HEADERS_TIME.as_secs()..=HEADERS_TIME.as_secs() + 1).contains(&took.as_secs()), "{took:?}");
        let goaway = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!(heard.ends_with(&goaway), "{heard:?}");
    }
    let mut polite = Frames::open(served.dial(), "node:7700").await;
    let mut last = Seen::Part;
    while let Some(seen) = polite.next().await {
        last = seen;
    }
    assert_eq!(last, LAST_GOAWAY);
}

#[tokio::test(start_paused = true)]
async fn a_connection_with_a_call_stays_however_long_it_rests() {
    let served = Served::with_tasks(1).await;
    for authority in ["node:7700", "10.0.0.1:7700,10.0.0.2:7700"] {
        let mut frames = Frames::open(served.dial(), authority).await;
        let path = "/xla.coordination.CoordinationService/Heartbeat";
        let first = frames.call(path, &message(0, b"")).await;
        sleep(Duration::from_secs(3_600)).await;
        assert_eq!(frames.call(path, &message(0, b"")).await, first);
    }
}

#[tokio::test]
async fn f6_a_connection_without_a_place_is_told_why_and_its_place_comes_back() {
    let (gateway, _memory) = Gateway::in_memory();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let connections = Connections::new(ConnectionLimits { all: 2, at_one_address: 1 });
    let resources = PortResources::new(Contact::never_lost(), connections.clone());
    let serving =
        tokio::spawn(serve_through(listener, dialects(&gateway), resources, std::future::pending()));
    let dial = || async { TcpStream::connect(address).await.expect("a listener") };

    let first = dial().await;
    tripod_wait::until("the first connection", || (connections.count() == 1).then_some(())).await;
    let mut heard = Vec::new();
    let mut second = dial().await;
    let end = tripod_wait::within("the end of the second connection", second.read_to_end(&mut heard)).await;
    drop(end);
    let heard = String::from_utf8_lossy(&heard).into_owned();
    assert!(
        heard.contains("T2206 connections-full: ")
            && heard.contains("takes 1 connections at a time of one address"),
        "{heard:?}"
    );
    assert_eq!((connections.count(), connections.refused()), (1, 1));
    drop(first);
    tripod_wait::until("a place", || (connections.count() == 0).then_some(())).await;
    let _again = dial().await;
    tripod_wait::until("the third connection", || (connections.count() == 1).then_some(())).await;
    serving.abort();
}
