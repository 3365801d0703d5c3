//! With the client's side of ours.

use super::*;
use crate::stop::Phase;
use tripod_calls::{CallOptions, CallStream, Hello, Lost, Reason};

#[derive(Clone)]
struct Over(Followed, ConnectionCalls);

impl tonic::codegen::Service<Request<Body>> for Over {
    type Response = Response<AnswerFrames>;
    type Error = std::convert::Infallible;
    type Future = crate::followed::Following;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        request.extensions_mut().insert(self.1.clone());
        *request.uri_mut() = format!("http://a.b:1{}", request.uri().path()).parse().unwrap();
        self.0.call(request)
    }
}

fn said(text: &str) -> Bytes {
    text.to_owned().encode_to_vec().into()
}

fn heard(answer: &tripod_calls::Answer) -> String {
    String::decode(answer.message.clone()).unwrap()
}

#[tokio::test]
async fn what_clients_of_ours_send_is_answered_given_up_and_ended_as_they_expect() {
    let port = Port::new();
    let hello = Hello { session: Some(7), ..Hello::default() };
    let stream = CallStream::open(Over(port.services.clone(), port.calls.clone()), &hello).unwrap();
    let plain = CallOptions::default();
    let stamped = CallOptions { sequence: 3, acknowledged_below: 2, ..plain.clone() };
    let calls = (
        stream.call("/a.B/Say", said("a"), &plain),
        stream.call("/a.B/Say", said("no"), &plain),
        stream.call("/a.B/Say", said("c"), &stamped),
        stream.call("/a.C/Say", said("d"), &plain),
        stream.call("/a.B/Stream", said("d"), &plain),
        stream.call("/a.B/Large", said("d"), &plain),
    );
    assert_eq!(heard(&calls.0.await.unwrap()), "a");
    let no = calls.1.await.unwrap();
    assert_eq!((no.code, no.text.as_str(), &no.details[..]), (Code::Aborted, "refused ü", &b"why"[..]));
    assert_eq!(heard(&calls.2.await.unwrap()), "c 7.3.2");
    assert_eq!(calls.3.await.unwrap().code, Code::Unimplemented);
    assert_eq!(calls.4.await.unwrap().code, Code::Unimplemented);
    assert_eq!(calls.5.await.unwrap().message.len(), LARGE_BYTES + 5);
    // Many, and more waiting ones than are granted.
    let waits: Vec<_> =
        (0..3000).map(|n: u32| stream.call("/a.B/Wait", said(&n.to_string()), &plain)).collect();
    let answers: Vec<_> =
        (0..3000).map(|n: u32| stream.call("/a.B/Say", said(&n.to_string()), &plain)).collect();
    for (n, answer) in answers.into_iter().enumerate() {
        assert_eq!(heard(&answer.await.unwrap()), n.to_string());
    }
    let frames = port.gathered.lock().len();
    assert!(frames < 60, "{frames}");
    // Given up.
    let dropped = port.fake.dropped.load(Ordering::SeqCst);
    drop(waits);
    while port.fake.dropped.load(Ordering::SeqCst) < dropped + 3000 {
        tokio::task::yield_now().await;
    }
    // A stop: what waits is answered, the rest is not sent.
    let held = stream.call("/a.B/Write", said("held"), &plain);
    assert_eq!(heard(&stream.call("/a.B/Say", said("x"), &plain).await.unwrap()), "x");
    port.stop.enter(Phase::Leaving);
    stream.left().await;
    let late = stream.call("/a.B/Say", said("x"), &plain).await;
    assert_eq!(late, Err(Lost::NotSent(Reason::Leaving)));
    port.fake.go.notify_waiters();
    assert_eq!(heard(&held.await.unwrap()), "held");
    port.stop.enter(Phase::Parting);
    while stream.end().is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(stream.end(), Some(Reason::Over));
}
