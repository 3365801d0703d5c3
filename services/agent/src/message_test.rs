use tripod_port::{Budget, CALL_BYTES, MemoryLimits};

use super::*;

/// What counts the bytes of a call without a limit.
fn held() -> CallBytes {
    let account = Budget::new(MemoryLimits::none()).account();
    CallBytes::of(account.call(CALL_BYTES).expect("there is no limit"))
}

fn fields(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect()
}

#[tokio::test]
async fn only_what_a_node_must_know_is_passed_on() {
    let request = Request::builder()
        .uri("http://127.0.0.1/xla.coordination.CoordinationService/Barrier")
        .header("te", "trailers")
        .header("grpc-encoding", "gzip")
        .header("x-tripod-job", "another")
        .header("cookie", "none")
        .body(Body::new(Full::new(Bytes::from_static(b"\0\0\0\0\0"))))
        .unwrap();
    let message = Message::read(request, None, &held()).await.expect("complete");
    let ours = fields(&[(metadata::JOB, "train")]);
    let attempt = message.attempt(&ours, Some(HeaderValue::from_static("9.1.1")));
    assert_eq!(attempt.uri().path(), "/xla.coordination.CoordinationService/Barrier");
    let expected = fields(&[
        ("te", "trailers"),
        ("grpc-encoding", "gzip"),
        (metadata::JOB, "train"),
        (metadata::STAMP, "9.1.1"),
    ]);
    assert_eq!(attempt.headers(), &expected);
    assert!(message.is_gzip());
}

async fn message(headers: &[(&'static str, &'static str)], body: Bytes) -> Message {
    let mut request = Request::new(Body::new(Full::new(body)));
    *request.uri_mut() = Uri::from_static("http://agent/xla.coordination.CoordinationService/Barrier");
    request.headers_mut().extend(fields(headers));
    Message::read(request, None, &held()).await.expect("complete")
}

const GRPC: (&str, &str) = ("content-type", "application/grpc");

#[tokio::test(start_paused = true)]
async fn an_op_says_of_a_call_what_its_headers_say() {
    let headers = [GRPC, ("te", "trailers"), ("user-agent", "jax"), ("grpc-accept-encoding", "gzip")];
    let mut called = message(&headers, Bytes::from_static(b"\0\0\0\0\x03abc")).await;
    called.tell_registration(b"r");
    let timed = fields(&[("grpc-timeout", "1500m")]);
    called.deadline = Deadline::of(&timed);
    assert_eq!(called.op().as_deref(), Some(&b"abc"[..]));
    let options = called.for_the_last_time().options(Some(HeaderValue::from_static("9.2.1")));
    let expected = fields(&[
        ("user-agent", "jax"),
        (metadata::REGISTRATION, "cg"),
        (PREVIOUS_ATTEMPTS, PREVIOUS_ATTEMPTS_MAX),
        (metadata::STAMP, "9.2.1"),
    ]);
    assert_eq!(options.metadata, expected);
    assert_eq!(options.patience, Some(std::time::Duration::from_millis(1500)));
    assert_eq!((options.sequence, options.acknowledged_below), (0, 0));
}

#[tokio::test]
async fn what_is_not_one_short_plain_message_is_no_op() {
    let plain = Bytes::from_static(b"\0\0\0\0\x03abc");
    for body in [&b""[..], b"\0\0\0\0", b"\0\0\0\0\x03ab", b"\0\0\0\0\x03abcd", b"\x01\0\0\0\x03abc"] {
        assert_eq!(message(&[GRPC], Bytes::from_static(body)).await.op(), None, "{body:?}");
    }
    for headers in [&[][..], &[("content-type", "text/plain")], &[GRPC, ("grpc-encoding", "gzip")]] {
        assert_eq!(message(headers, plain.clone()).await.op(), None, "{headers:?}");
    }
    let mut unknown = message(&[GRPC], plain.clone()).await;
    unknown.path = "/xla.coordination.CoordinationService/Unknown".to_owned();
    assert_eq!(unknown.op(), None);
    let of_length = |length: usize| {
        let mut body = vec![0];
        body.extend_from_slice(&u32::try_from(length).unwrap().to_be_bytes());
        body.resize(FRAME_BYTES + length, b'v');
        Bytes::from(body)
    };
    assert!(message(&[GRPC], of_length(OP_MESSAGE_BYTES_MAX)).await.op().is_some());
    assert!(message(&[GRPC], of_length(OP_MESSAGE_BYTES_MAX + 1)).await.op().is_none());
}

/// What a client gets of a reply.
async fn passed_on(reply: Reply) -> (HeaderMap, Bytes, Option<HeaderMap>) {
    let (head, body) = reply.into_response().into_parts();
    let body = body.collect().await.expect("in memory");
    let trailers = body.trailers().cloned();
    (head.headers, body.to_bytes(), trailers)
}

/// A reply of a call of its own.
async fn by_itself(headers: &HeaderMap, body: &'static [u8], trailers: Option<HeaderMap>) -> Reply {
    let body = Full::new(Bytes::from_static(body));
    let body = match trailers {
        Some(trailers) => Body::new(body.with_trailers(std::future::ready(Some(Ok(trailers))))),
        None => Body::new(body),
    };
    let mut response = Response::new(body);
    *response.headers_mut() = headers.clone();
    Reply::read(response, &AnswerBytes::of(held())).await.expect("complete")
}

#[tokio::test]
async fn an_answer_of_a_stream_is_the_same_reply_as_a_call_has() {
    let answer = |code, metadata: &HeaderMap| Answer {
        code,
        text: "Config key ü%2F not found.".to_owned(),
        details: Bytes::from_static(b"\x0a\xff\0"),
        message: Bytes::from_static(b"abc"),
        metadata: metadata.clone(),
    };
    let kept = fields(&[("x-upstream", "kept"), ("x-tripod-note", "ours")]);
    let of_answer = |code| Reply::of_answer(answer(code, &kept), &AnswerBytes::of(held())).expect("room");
    let content = fields(&[GRPC]);

    let ok = of_answer(Code::Ok);
    assert!(ok.is_ok() && ok.outage().is_none());
    let trailers = fields(&[("x-upstream", "kept"), ("grpc-status", "0")]);
    let call = by_itself(&content, b"\0\0\0\0\x03abc", Some(trailers)).await;
    assert_eq!(passed_on(ok).await, passed_on(call).await);

    let refused = of_answer(Code::NotFound);
    assert!(!refused.is_ok() && !refused.is_unauthenticated());
    assert!(of_answer(Code::Unauthenticated).is_unauthenticated());
    let mut headers = fields(&[GRPC, ("grpc-status", "5"), ("x-upstream", "kept")]);
    headers.extend(fields(&[
        ("grpc-message", "Config%20key%20%C3%BC%252F%20not%20found."),
        ("grpc-status-details-bin", "Cv8A"),
    ]));
    let call = by_itself(&headers, b"", None).await;
    assert_eq!(passed_on(refused).await, passed_on(call).await);

    let trouble = fields(&[(metadata::OUTAGE, metadata::OUTAGE_STOPPING)]);
    let trouble = Reply::of_answer(answer(Code::Unavailable, &trouble), &AnswerBytes::of(held()));
    assert_eq!(trouble.expect("room").outage(), Some(metadata::OUTAGE_STOPPING));
}

#[tokio::test]
async fn a_message_beyond_the_limit_is_refused() {
    let body = Full::new(Bytes::from(vec![0; MESSAGE_BYTES_MAX + FRAME_BYTES + 1]));
    let refused = Message::read(Request::new(Body::new(body)), None, &held()).await.expect_err("too long");
    assert_eq!(refused.code(), Code::ResourceExhausted);
}

#[tokio::test]
async fn a_reply_is_passed_on_without_what_is_ours() {
    let trailers = fields(&[
        ("grpc-status", "6"),
        ("grpc-message", "key a already exists."),
        ("grpc-status-details-bin", "CjsKNwo"),
        ("x-tripod-note", "ours"),
        (PUSHBACK, "-1"),
    ]);
    let body = Full::new(Bytes::from_static(b"x")).with_trailers(std::future::ready(Some(Ok(trailers))));
    let reply =
        Reply::read(Response::new(Body::new(body)), &AnswerBytes::of(held())).await.expect("complete");
    assert!(!reply.is_ok());
    assert_eq!((reply.outage(), reply.text()), (None, "key a already exists."));

    let body = reply.into_response().into_body().collect().await.expect("in memory");
    let expected = fields(&[
        ("grpc-status", "6"),
        ("grpc-message", "key a already exists."),
        ("grpc-status-details-bin", "CjsKNwo"),
    ]);
    assert_eq!(body.trailers(), Some(&expected));
    assert_eq!(body.to_bytes(), "x");
}

#[tokio::test]
async fn a_response_without_a_status_is_broken() {
    let answer_bytes = AnswerBytes::of(held());
    let broken = Reply::read(Response::new(Body::empty()), &answer_bytes).await.expect_err("no status");
    assert_eq!(broken.to_string(), "the answer has no gRPC status (HTTP 200)");
}
