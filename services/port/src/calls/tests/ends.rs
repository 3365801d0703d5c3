//! Clients that hear nothing, and ports that stop.

use futures::FutureExt as _;
use tripod_proto::tripod::v1::calls_client::CallsClient;

use super::*;
use crate::serve::{Grpc, Served};
use crate::stop::Phase;

#[tokio::test]
async fn ops_go_on_while_nobody_reads_and_a_client_that_reads_nothing_has_no_more() {
    let port = Port::new();
    let client = port.open().await;
    for first in 0..4 {
        client.ops((1..=256).map(|tag| op(first * 256 + tag, SAY, "a")).collect());
    }
    settle().await;
    assert_eq!(port.fake.begun.lock().len(), 1_024);
    assert_eq!(port.fake.dropped.load(Ordering::SeqCst), 1_024, "all are done");
    assert!(port.calls.account().held() >= 1_024 * OP_BYTES, "they are held until they are read");
    client.ops(vec![op(9_999, SAY, "a")]);
    settle().await;
    let mut client = client;
    for _ in 0..1_024 {
        client.answer().await;
    }
    assert_eq!(client.end().await.0, Code::ResourceExhausted, "nothing was granted for what was not read");
    settle().await;
    assert!(port.calls.account().held() < 64 << 10, "{}", port.calls.account().held());
}

#[tokio::test]
async fn a_stop_says_bye_and_answers_what_it_has_taken_and_ends() {
    let port = Port::new();
    let mut client = port.open().await;
    client.ops(vec![op(1, WRITE, "a"), op(2, WAIT, "b")]);
    assert!(client.answer().await.arrived);
    port.stop.enter(Phase::Leaving);
    let told = client.answer().await;
    let outage = |answer: &wire::Answer| {
        let entry = answer.metadata.iter().find(|entry| entry.key == metadata::OUTAGE);
        (answer.tag, answer.code, entry.expect("an outage").value.clone())
    };
    let stopping = |tag| (tag, Code::Unavailable as i32, metadata::OUTAGE_STOPPING.to_owned());
    assert_eq!(outage(&told), stopping(2), "it may be made again");
    assert_eq!(client.byes, 1);
    client.ops(vec![op(3, SAY, "late")]);
    assert_eq!(outage(&client.answer().await), stopping(3));
    assert!(!port.fake.begun.lock().contains(&"late".to_owned()));
    port.stop.enter(Phase::Parting);
    settle().await;
    assert!(client.hear().now_or_never().is_none(), "a write is still under way");
    port.fake.go.notify_waiters();
    assert_eq!(text(&client.answer().await), "a");
    assert_eq!(client.end().await.0, Code::Ok);
}

#[tokio::test]
async fn a_stream_that_nobody_hears_any_more_drops_its_ops() {
    let port = Port::new();
    let client = port.open().await;
    client.ops(vec![op(1, HOLD, "a")]);
    settle().await;
    assert_eq!(port.fake.begun.lock().len(), 1);
    drop(client);
    settle().await;
    assert_eq!(port.fake.dropped.load(Ordering::SeqCst), 1);
    assert!(port.calls.account().written(true), "as a connection says that has written all");
    assert_eq!(port.calls.account().held(), 0);
}

/// By sockets, as clients do.
#[tokio::test]
async fn a_stream_goes_by_http2_and_ends_before_its_port_does() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let fake = Arc::<Fake>::default();
    let direct = vec![Direct::of(Service(Arc::clone(&fake)))];
    let served = Grpc { routes: Routes::default(), direct, manners: Manners::of(&[MANNERS]) };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let shutdown = async move { stopped.await.expect("it is told to") };
    let serving = tokio::spawn(crate::serve(listener, Served::Grpc(served), shutdown));
    let mut client = CallsClient::connect(format!("http://{address}")).await.expect("a connection");
    let (send, sent) = mpsc::channel(4);
    let stream = client.open(tokio_stream::wrappers::ReceiverStream::new(sent)).await.expect("a stream");
    let mut frames = stream.into_inner();
    let grant = frames.message().await.expect("no error").expect("a frame").grant;
    assert_eq!(grant, OPS_GRANTED, "before anything was sent");
    let first = wire::Frame {
        hello: Some(wire::Hello::default()),
        paths: PATHS.iter().map(|path| (*path).to_owned()).collect(),
        ops: vec![op(1, WRITE, "write"), op(2, LARGE, "large"), op(3, HOLD, "hold")],
        ..Default::default()
    };
    send.send(first).await.expect("it is heard");
    let large = frames.message().await.expect("no error").expect("a frame").answers.remove(0);
    assert_eq!((large.tag, text(&large).len()), (2, LARGE_BYTES));
    stop.send(()).expect("it serves");
    let bye = frames.message().await.expect("no error").expect("a frame");
    assert!(bye.bye.is_some());
    let told: Vec<_> = bye.answers.iter().map(|answer| (answer.tag, answer.code)).collect();
    assert_eq!(told, [(3, Code::Unavailable as i32)]);
    fake.go.notify_waiters();
    assert_eq!(text(&frames.message().await.expect("no error").expect("a frame").answers[0]), "write");
    drop(send);
    assert!(frames.message().await.expect("it ends well").is_none());
    drop(client);
    serving.await.expect("it has not failed").expect("nor its transport");
}
