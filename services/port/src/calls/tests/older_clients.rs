//! Clients and agents of before there were streams: each of their calls is a request.

use super::*;

/// What such a client sends, and is told.
async fn call(port: &Port, path: &str, said: &str, stamp: Option<&str>) -> Result<String, Status> {
    let message = said.to_owned().encode_to_vec();
    let mut bytes = BytesMut::new();
    bytes.put_u8(0);
    bytes.put_u32(message.len().try_into().unwrap());
    bytes.put_slice(&message);
    let (send, sent) = mpsc::unbounded_channel();
    send.send(bytes.freeze()).expect("it is heard");
    drop(send);
    let mut request = Request::post(format!("http://a.b:1{path}")).body(Body::new(Sent(sent))).unwrap();
    if let Some(stamp) = stamp {
        request.headers_mut().insert(metadata::STAMP, stamp.parse().unwrap());
    }
    request.extensions_mut().insert(port.calls.clone());
    let response = port.services.clone().call(request).await.expect("there is no error");
    if let Some(refused) = Status::from_header_map(response.headers()) {
        return Err(refused);
    }
    let mut body = response.into_body();
    let mut came = BytesMut::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        match frame.expect("no error").into_data() {
            Ok(data) => came.extend_from_slice(&data),
            Err(trailers) => {
                let trailers = trailers.into_trailers().expect("they are trailers");
                let status = Status::from_header_map(&trailers).expect("a status");
                if status.code() != Code::Ok {
                    return Err(status);
                }
            }
        }
    }
    Ok(String::decode(&came[5..]).expect("a text"))
}

#[tokio::test]
async fn calls_of_older_clients_are_answered_as_ops_are_and_beside_them() {
    let port = Port::new();
    let mut client = port.open().await;
    // Of the same connection, as when an agent has clients of both kinds.
    client.ops(vec![op(1, WRITE, "held"), op(2, SAY, "no")]);
    let by_stream = client.answer().await;
    let alone = call(&port, "/a.B/Say", "no", None).await.expect_err("it is refused");
    assert_eq!((by_stream.code, by_stream.text.as_str()), (alone.code() as i32, alone.message()));
    assert_eq!(&by_stream.details[..], alone.details());
    assert_eq!(call(&port, "/a.B/Say", "a", None).await.expect("answered"), "a");
    client.ops(vec![wire::Op { sequence: 3, acknowledged_below: 2, ..op(3, SAY, "b") }]);
    let by_stream = text(&client.answer().await);
    assert_eq!(by_stream, call(&port, "/a.B/Say", "b", Some("7.3.2")).await.expect("answered"));
    let unknown = call(&port, "/a.C/Say", "c", None).await.expect_err("nobody knows it");
    assert_eq!(unknown.code(), Code::Unimplemented);
    port.fake.go.notify_waiters();
    assert_eq!(text(&client.answer().await), "held");
}
