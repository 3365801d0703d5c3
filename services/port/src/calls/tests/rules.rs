//! What a client may not say, and what it may not have.

use std::time::Duration;

use super::*;
use crate::calls::bounds::{HELLO_TIME, PATHS_MAX, STREAMS_MAX};

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
        client.send(&frame);
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

#[tokio::test]
async fn a_megabyte_of_empty_ops_ends_its_stream_and_none_of_them_begins() {
    let port = Port::new();
    let client = port.open().await;
    client.send_bytes(&[0x1a, 0].repeat(1 << 19));
    let (code, said) = client.end().await;
    assert!(code == Code::InvalidArgument && said.contains("256 ops"), "{said}");
    let mut largest = port.open().await;
    largest.ops(vec![wire::Op::default(); 256]);
    largest.ops(vec![op(1, SAY, "a")]);
    assert_eq!(
        text(&largest.answer().await),
        "a",
        "to give up what there is not is allowed, and does nothing"
    );
    assert_eq!(*port.fake.begun.lock(), ["a"]);
    assert_eq!(largest.granted, OPS_GRANTED + 1);
}

#[tokio::test]
async fn sequences_that_jump_or_run_backwards_are_passed_on_as_they_are_and_harm_nobody_else() {
    let port = Port::new();
    let mut client = port.open().await;
    let stamped =
        |tag, sequence, acknowledged_below| wire::Op { sequence, acknowledged_below, ..op(tag, SAY, "s") };
    client.ops(vec![
        stamped(1, 9, 9),
        stamped(2, u64::MAX, u64::MAX),
        stamped(3, 1, 1),
        stamped(4, 1, u64::MAX),
        stamped(5, 9, 0),
        op(6, SAY, "plain"),
    ]);
    let largest = u64::MAX;
    for said in [
        "s 7.9.9".to_owned(),
        format!("s 7.{largest}.{largest}"),
        "s 7.1.1".to_owned(),
        format!("s 7.1.{largest}"),
        "s 7.9.0".to_owned(),
        "plain".to_owned(),
    ] {
        // What a session makes of them is the state's to say, as it is for calls of their own.
        assert_eq!(text(&client.answer().await), said);
    }
}

#[tokio::test]
async fn paths_of_which_nobody_knows_are_refused_as_their_calls_are_and_are_bounded() {
    let port = Port::new();
    let mut client = port.open().await;
    let first = u32::try_from(PATHS.len()).unwrap() + 1;
    let last = u32::try_from(PATHS_MAX).unwrap();
    let unknown = |paths: std::ops::RangeInclusive<u32>| wire::Frame {
        paths: paths.map(|number| format!("/no.Such/Method{number}")).collect(),
        ..Default::default()
    };
    client.send(&unknown(first..=last));
    client.ops(vec![op(1, first, "a"), op(2, last, "b"), op(3, SAY, "c")]);
    for tag in [1, 2] {
        let answer = client.answer().await;
        assert_eq!((answer.tag, answer.code), (tag, Code::Unimplemented as i32));
    }
    assert_eq!(text(&client.answer().await), "c");
    client.send(&unknown(1..=1));
    let (code, said) = client.end().await;
    assert!(code == Code::InvalidArgument && said.contains("256 paths"), "{said}");
}

#[tokio::test]
async fn a_hundred_streams_of_one_caller_are_refused_but_eight_which_go_on() {
    let port = Port::new();
    let mut open = Vec::new();
    for number in 0..100 {
        let mut client = port.silent().await;
        let Some(refused) = client.end.take() else {
            open.push(client);
            continue;
        };
        assert!(number >= STREAMS_MAX && refused.code() == Code::ResourceExhausted, "{refused:?}");
        assert!(refused.message().starts_with("T2213 calls-misused: "), "{}", refused.message());
    }
    assert_eq!(open.len(), STREAMS_MAX);
    for client in &mut open {
        client.send(&wire::Frame {
            hello: Some(wire::Hello::default()),
            paths: PATHS.iter().map(|path| (*path).to_owned()).collect(),
            ops: Vec::new(),
            ..Default::default()
        });
        client.hear().await;
        client.ops(vec![op(1, SAY, "a")]);
        assert_eq!(text(&client.answer().await), "a");
    }
}

/// What it held is given back, and nothing of it runs on.
#[tokio::test]
async fn streams_that_are_opened_and_left_leave_nothing() {
    let port = Port::new();
    for _ in 0..100 {
        let client = port.open().await;
        client.ops(vec![op(1, HOLD, "a"), op(2, WAIT, "b")]);
        settle().await;
        drop(client);
        settle().await;
    }
    assert_eq!(port.fake.begun.lock().len(), 200);
    assert_eq!(port.fake.dropped.load(Ordering::SeqCst), 200);
    let tally = port.services.tally();
    assert_eq!((tally.open(), tally.waiting()), (0, 0));
    assert!(port.calls.account().written(true), "as a connection says that has written all");
    assert_eq!(port.calls.account().held(), 0);
}

/// Refuses ops of one path.
struct NoSay;

impl crate::Guard for NoSay {
    fn admit(&self, head: &mut http::request::Parts, _: &ConnectionCalls) -> Result<(), Status> {
        let is_allowed = head.uri.path() != "/a.B/Say" || head.headers.contains_key(metadata::JOB);
        if is_allowed { Ok(()) } else { Err(Status::permission_denied("not you")) }
    }
}

#[tokio::test]
async fn each_op_is_judged_by_its_own_path_and_metadata_and_the_others_go_on() {
    let mut port = Port::new();
    port.services = port.services.clone().guarding(crate::Guarding::by(NoSay));
    let mut client = port.open().await;
    let job = wire::Metadata { key: metadata::JOB.to_owned(), value: "train".to_owned() };
    let named = wire::Op { metadata: vec![job], ..op(3, SAY, "c") };
    client.ops(vec![op(1, SAY, "a"), op(2, LARGE, "b"), named]);
    let answer = client.answer().await;
    assert_eq!(
        (answer.tag, answer.code, answer.text.as_str()),
        (1, Code::PermissionDenied as i32, "not you")
    );
    assert_eq!(client.answer().await.tag, 2);
    assert_eq!(text(&client.answer().await), "c");
    assert_eq!(*port.fake.begun.lock(), ["b", "c"], "no service heard of the other");
    assert_eq!(client.granted, OPS_GRANTED + 3);
}
