//! What a client may not say, and what it may not have.

use std::time::Duration;

use super::*;
use crate::calls::bounds::{HELLO_TIME, STREAMS_MAX};

#[tokio::test]
async fn what_breaks_the_rules_ends_the_stream_by_name() {
    let hello = || Some(wire::Hello::default());
    let of_ops = |ops| wire::Frame { ops, ..Default::default() };
    let metadata = vec![wire::Metadata { key: "te".to_owned(), value: "a".to_owned() }];
    let of_path = |path: &str| wire::Frame { paths: vec![path.to_owned()], ..Default::default() };
    for (frame, named) in [
        (of_ops(vec![op(1, HOLD, "a"), op(1, SAY, "b")]), "tag 1 is that of an op without an answer"),
        (of_ops(vec![op(0, SAY, "a")]), "tag 0"),
        (of_ops(vec![op(1, 99, "a")]), "path 99, and 8 are named"),
        (of_ops(vec![wire::Op { metadata, ..op(1, SAY, "a") }]), "reserved"),
        (wire::Frame { hello: hello(), ..Default::default() }, "second hello"),
        (wire::Frame { grant: 1, ..Default::default() }, "only a node"),
        (of_path("a.B/Say"), "is no path"),
        (of_path("/a b"), "is no path"),
    ] {
        let port = Port::new();
        let client = port.open().await;
        client.send(frame);
        let (code, said) = client.end().await;
        assert!(code == Code::InvalidArgument && said.contains(named), "{said}");
        assert!(said.starts_with("T2213 calls-misused: "), "{said}");
        settle().await;
        let dropped = port.fake.dropped.load(Ordering::SeqCst);
        assert_eq!(dropped, port.fake.begun.lock().len(), "nothing is left");
    }
}

#[tokio::test]
async fn the_first_frame_has_the_hello() {
    let port = Port::new();
    let client = port.silent().await;
    client.ops(vec![op(1, SAY, "a")]);
    let (code, said) = client.end().await;
    assert!(code == Code::InvalidArgument && said.contains("no hello"), "{said}");
    assert!(port.fake.begun.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_a_first_frame_ends_and_one_that_only_rests_does_not() {
    let port = Port::new();
    let (silent, mut resting) = (port.silent().await, port.open().await);
    let begun = tokio::time::Instant::now();
    assert_eq!(silent.end().await.0, Code::DeadlineExceeded);
    assert!(begun.elapsed() >= HELLO_TIME);
    tokio::time::sleep(Duration::from_secs(100_000)).await;
    resting.ops(vec![op(1, SAY, "a")]);
    assert_eq!(text(&resting.answer().await), "a");
}

#[tokio::test]
async fn more_ops_than_were_granted_end_the_stream() {
    let port = Port::new();
    let client = port.open().await;
    for first in 0..5 {
        client.ops((1..=256).map(|tag| op(first * 256 + tag, HOLD, "a")).collect());
    }
    let (code, said) = client.end().await;
    assert!(code == Code::ResourceExhausted && said.contains("256 ops more"), "{said}");
    assert_eq!(port.fake.begun.lock().len(), 1_024);
}

#[tokio::test]
async fn a_method_with_streams_and_another_stream_are_no_ops() {
    let port = Port::new();
    let mut client = port.open().await;
    client.ops(vec![op(1, STREAM, "a"), op(2, NESTED, "b"), op(3, SAY, "c")]);
    for tag in [1, 2] {
        let answer = client.answer().await;
        assert_eq!((answer.tag, answer.code), (tag, Code::Unimplemented as i32));
        assert!(answer.text.starts_with("T2213 calls-misused: /"), "{}", answer.text);
    }
    assert_eq!(text(&client.answer().await), "c");
}

#[tokio::test]
async fn a_connection_has_so_many_streams_and_no_more() {
    let port = Port::new();
    let mut open = Vec::new();
    for _ in 0..STREAMS_MAX {
        open.push(port.open().await);
    }
    let refused = port.silent().await.end.expect("it is refused");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    open.pop();
    settle().await;
    open.push(port.open().await);
}

#[tokio::test]
async fn an_op_for_which_there_is_no_room_is_refused_alone() {
    // What every connection has in any case is enough for the stream and some ops.
    let port = Port::within(MemoryLimits { all: 0, one_connection: 1 << 20 });
    let mut client = port.open().await;
    client.ops((1..=200).map(|tag| op(tag, HOLD, "a")).collect());
    let refused = client.answer().await;
    assert_eq!(refused.code, Code::ResourceExhausted as i32);
    let outage = refused.metadata.iter().find(|entry| entry.key == metadata::OUTAGE).expect("an outage");
    assert_eq!(outage.value, metadata::OUTAGE_OVERLOADED);
    assert!(!port.fake.begun.lock().is_empty());
    client.ops(vec![wire::Op { tag: 1, ..Default::default() }, op(999, SAY, "b")]);
    while client.answer().await.tag != 999 {}
}

#[tokio::test]
async fn compressed_frames_are_refused() {
    let port = Port::new();
    let request = Request::post(PATH).header("grpc-encoding", "gzip").body(Body::empty()).unwrap();
    let response = port.services.clone().call(request).await.expect("there is no error");
    let status = Status::from_header_map(response.headers()).expect("a refusal");
    assert_eq!(status.code(), Code::Unimplemented);
}
