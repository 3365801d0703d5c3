//! What is counted of streams.

use super::*;
use crate::stop::Phase;

/// What is counted of each end that came.
fn ended(port: &Port) -> Vec<(StreamEnd, u64)> {
    port.services.tally().ended().filter(|(_, count)| *count > 0).collect()
}

#[tokio::test]
async fn streams_their_ops_and_their_frames_are_counted() {
    let port = Port::new();
    let tally = port.services.tally().clone();
    let mut client = port.open().await;
    client.ops(vec![op(1, WAIT, "a"), op(2, WRITE, "b"), op(3, SAY, "c")]);
    assert!(client.answer().await.arrived);
    assert_eq!(text(&client.answer().await), "c");
    assert_eq!((tally.open(), tally.ops(), tally.waiting(), tally.frames_in()), (1, 3, 2, 2));
    assert!((2..=3).contains(&tally.frames_out()), "a grant, and the answers");
    client.ops(vec![wire::Op { tag: 1, ..Default::default() }]);
    settle().await;
    assert_eq!((tally.ops(), tally.waiting()), (3, 1), "to give one up is none");
    let _other = port.open().await;
    assert_eq!(tally.open(), 2);
    port.fake.go.notify_waiters();
    assert_eq!(text(&client.answer().await), "b");
    client.ops(vec![op(1, HOLD, "d")]);
    settle().await;
    assert_eq!(tally.waiting(), 1);
    drop(client);
    settle().await;
    assert_eq!((tally.open(), tally.waiting()), (1, 0), "what its end drops waits no more");
}

#[tokio::test]
async fn why_a_stream_ends_is_counted() {
    let port = Port::new();
    let mut client = port.open().await;
    client.send = None;
    assert_eq!(client.end().await.0, Code::Ok);
    drop(port.open().await);
    settle().await;
    assert_eq!(ended(&port), [(StreamEnd::Client, 2)], "whether it says so or not");

    let port = Port::new();
    let client = port.open().await;
    client.ops(vec![op(0, SAY, "a")]);
    client.end().await;
    assert_eq!(ended(&port), [(StreamEnd::Breach, 1)]);

    let port = Port::new();
    let client = port.open().await;
    for first in 0..5 {
        client.ops((1..=256).map(|tag| op(first * 256 + tag, HOLD, "a")).collect());
    }
    client.end().await;
    assert_eq!(ended(&port), [(StreamEnd::Limit, 1)]);

    let port = Port::new();
    let client = port.open().await;
    port.stop.enter(Phase::Leaving);
    port.stop.enter(Phase::Parting);
    assert_eq!(client.end().await.0, Code::Ok);
    assert_eq!(ended(&port), [(StreamEnd::Bye, 1)]);
}
