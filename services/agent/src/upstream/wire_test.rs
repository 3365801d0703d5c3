use bytes::BytesMut;
use http::HeaderMap;
use http_body_util::{BodyExt as _, Collected, StreamBody};
use parking_lot::Mutex;
use tokio::io::duplex;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

use super::*;

const LIMIT: Duration = Duration::from_secs(5);
/// Fewer than the windows allow to be under way.
const PIPE_BYTES: usize = 64 << 10;

type Connection = h2::server::Connection<DuplexStream, Bytes>;

/// A connection, and what its other end does.
async fn wire_to<F, Fut>(node: F) -> (Wire, JoinHandle<()>)
where
    F: FnOnce(Connection) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    let (near, far) = duplex(PIPE_BYTES);
    let serving = tokio::spawn(async move { node(h2::server::handshake(far).await.expect("HTTP/2")).await });
    let near = Mutex::new(Some(near));
    let dial = move |_: &str| Ok(near.lock().take().expect("it is dialled once"));
    (Wire::connect("node:7700", LIMIT, &Reach(Some(Arc::new(dial)))).await.expect("a connection"), serving)
}

fn request(message: &Bytes) -> Request<Bytes> {
    Request::post("/service/Method").body(message.clone()).expect("a request")
}

async fn call(wire: &Wire, message: &Bytes) -> Collected<Bytes> {
    let response = wire.send(request(message)).await.expect("a response");
    response.into_body().collect().await.expect("a whole one")
}

/// Sends back what comes, and trailers.
async fn echo(request: Request<RecvStream>, mut respond: h2::server::SendResponse<Bytes>) {
    assert_eq!(request.uri().path(), "/service/Method");
    let mut body = request.into_body();
    let mut message = BytesMut::new();
    while let Some(data) = body.data().await {
        let data = data.expect("all of it");
        body.flow_control().release_capacity(data.len()).expect("what came");
        message.extend_from_slice(&data);
    }
    let mut stream = respond.send_response(Response::new(()), false).expect("a caller");
    stream.send_data(message.freeze(), false).expect("a caller");
    let trailers =
        HeaderMap::from_iter([(http::HeaderName::from_static("end"), "here".parse().expect("text"))]);
    stream.send_trailers(trailers).expect("a caller");
}

#[tokio::test(start_paused = true)]
async fn messages_larger_than_all_windows_pass_both_ways() {
    let (wire, node) = wire_to(|mut connection| async move {
        while let Some(accepted) = connection.accept().await {
            let (request, respond) = accepted.expect("a call");
            tokio::spawn(echo(request, respond));
        }
    })
    .await;
    let large = Bytes::from(vec![7; 40 << 20]);
    for message in [Bytes::from_static(b"small"), large, Bytes::from_static(b"small again")] {
        let answer = call(&wire, &message).await;
        assert_eq!(answer.trailers().expect("at the end")["end"], "here");
        assert!(answer.to_bytes() == message, "another message of {} bytes", message.len());
    }
    drop(wire);
    tripod_wait::within("the end of the connection", node).await.expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_takes_no_more_calls_is_told_from_one_that_waits() {
    let (leave, left) = oneshot::channel::<()>();
    let (end, ended) = oneshot::channel::<()>();
    let (wire, _node) = wire_to(|mut connection| async move {
        let (request, respond) = connection.accept().await.expect("open").expect("a call");
        tokio::select! {
            _ = left => connection.graceful_shutdown(),
            more = connection.accept() => panic!("{more:?}"),
        }
        tokio::spawn(async move {
            ended.await.expect("told");
            echo(request, respond).await;
        });
        // It goes on until all calls have ended.
        assert!(connection.accept().await.is_none());
    })
    .await;
    let message = Bytes::from_static(b"held");
    let held = tokio::spawn({
        let (wire, message) = (wire.clone(), message.clone());
        async move { call(&wire, &message).await.to_bytes() }
    });
    assert!(wire.takes_calls().await);
    leave.send(()).expect("waiting");
    let heard = || async { (!wire.takes_calls().await).then_some(()) };
    tripod_wait::until_async("the client to hear", heard).await;
    wire.send(request(&message)).await.expect_err("no call");
    assert!(!held.is_finished());
    end.send(()).expect("waiting");
    assert_eq!(held.await.expect("no panic"), message);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_is_taken_back() {
    let (wire, node) = wire_to(|mut connection| async move {
        let (_request, mut respond) = connection.accept().await.expect("open").expect("a call");
        let reset = tokio::select! {
            reset = std::future::poll_fn(|context| respond.poll_reset(context)) => reset.expect("a reset"),
            more = connection.accept() => panic!("{more:?}"),
        };
        assert_eq!(reset, Reason::CANCEL);
    })
    .await;
    let message = Bytes::from_static(b"unwanted");
    let given_up = timeout(Duration::from_millis(100), wire.send(request(&message))).await;
    assert!(given_up.is_err(), "it is not answered");
    tripod_wait::within("the node to hear", node).await.expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn a_connection_whose_node_is_frozen_ends() {
    let (thaw, frozen) = oneshot::channel::<()>();
    let (wire, _node) = wire_to(|mut connection| async move {
        let (_request, _respond) = connection.accept().await.expect("open").expect("a call");
        // From here on nothing is read, written or closed.
        frozen.await.expect("told");
    })
    .await;
    let message = Bytes::from_static(b"held");
    let begun = Instant::now();
    wire.send(request(&message)).await.expect_err("no answer");
    assert_eq!(begun.elapsed(), PING_INTERVAL + PING_TIMEOUT);
    thaw.send(()).expect("frozen");
}

/// A request whose body is what the sender is given.
fn going_on() -> (mpsc::Sender<Result<Frame<Bytes>, tonic::Status>>, Request<Body>) {
    let (sender, frames) = mpsc::channel(1);
    let body = Body::new(StreamBody::new(ReceiverStream::new(frames)));
    (sender, Request::post("/service/Method").body(body).expect("a request"))
}

#[tokio::test(start_paused = true)]
async fn a_body_that_goes_on_is_sent_as_the_node_takes_it() {
    let (wire, _node) = wire_to(|mut connection| async move {
        while let Some(accepted) = connection.accept().await {
            let (request, respond) = accepted.expect("a call");
            tokio::spawn(echo(request, respond));
        }
    })
    .await;
    let (sender, request) = going_on();
    let answer = tokio::spawn({
        let mut wire = wire.clone();
        async move { wire.call(request).await.expect("a response").into_body().collect().await }
    });
    // The node's window has 64 KiB.
    let parts = [Bytes::from_static(b"small"), Bytes::from(vec![7; 1 << 20]), Bytes::from_static(b"last")];
    for part in &parts {
        sender.send(Ok(Frame::data(part.clone()))).await.expect("taken");
        // Others have their turn, so that the body is seen without anything in it.
        tokio::task::yield_now().await;
    }
    assert!(!answer.is_finished());
    drop(sender);
    let answer = tripod_wait::within("an answer", answer).await.expect("no panic").expect("a whole one");
    assert!(answer.to_bytes() == parts.concat(), "another message");
}

#[tokio::test(start_paused = true)]
async fn a_body_whose_call_the_node_ends_is_let_go() {
    let (wire, _node) = wire_to(|mut connection| async move {
        let (_request, mut respond) = connection.accept().await.expect("open").expect("a call");
        respond.send_reset(Reason::REFUSED_STREAM);
        assert!(connection.accept().await.is_none());
    })
    .await;
    let (sender, request) = going_on();
    let mut caller = wire.clone();
    caller.call(request).await.expect_err("refused");
    tripod_wait::within("the body to be let go", sender.closed()).await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_fails_takes_its_call_back() {
    let (wire, node) = wire_to(|mut connection| async move {
        let (_request, mut respond) = connection.accept().await.expect("open").expect("a call");
        let reset = tokio::select! {
            reset = std::future::poll_fn(|context| respond.poll_reset(context)) => reset.expect("a reset"),
            more = connection.accept() => panic!("{more:?}"),
        };
        assert_eq!(reset, Reason::CANCEL);
    })
    .await;
    let (sender, request) = going_on();
    let mut caller = wire.clone();
    let call = tokio::spawn(async move { caller.call(request).await.map(drop) });
    sender.send(Ok(Frame::data(Bytes::from_static(b"begun")))).await.expect("taken");
    tokio::task::yield_now().await;
    sender.send(Err(tonic::Status::cancelled("no more"))).await.expect("taken");
    call.await.expect("no panic").expect_err("taken back");
    tripod_wait::within("the node to hear", node).await.expect("no panic");
}
