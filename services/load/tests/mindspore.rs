//! Played nodes of MindSpore's clusters against a scheduler of a few lines.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic, its helpers too")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tripod_load::mindspore::{Dialect, Failure, Node, Registered, Role, Told, Worker};
use tripod_proto::mindspore::{ps_core, topology};
use tripod_wait::Nobody;

const LIMIT: Duration = Duration::from_secs(5);

/// The next frame of the dynamic cluster: its name and its body.
async fn rpc0(stream: &mut TcpStream) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut header = [0; 20];
    stream.read_exact(&mut header).await.ok()?;
    let mut lengths = &header[4..];
    let [name, to, from, body] = [(); 4].map(|()| lengths.get_u32() as usize);
    let mut rest = vec![0; name + to + from + body];
    stream.read_exact(&mut rest).await.ok()?;
    Some((rest[..name].to_vec(), rest[name + to + from..].to_vec()))
}

async fn say_rpc0(stream: &mut TcpStream, name: &[u8], body: &[u8]) {
    let mut frame = b"RPC0".to_vec();
    for length in [name.len(), 0, 1, body.len()] {
        frame.extend(u32::try_from(length).unwrap().to_be_bytes());
    }
    frame.extend([name, b"@", body].concat());
    stream.write_all(&frame).await.unwrap();
}

#[tokio::test]
async fn a_worker_goes_on_to_the_next_address_and_says_what_it_does_not_know() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let nobody = Nobody::at_a_port();
    let addresses: Arc<[String]> = [nobody.address(), listener.local_addr().unwrap().to_string()].into();
    let mut worker = Worker::new("3".into(), Dialect::V2_10, (addresses, 0), LIMIT);
    let refused = worker.register().await.unwrap_err();
    assert!(matches!(refused, Failure::Unsent(_)), "{refused}");

    let scheduler = tokio::spawn(async move {
        let (mut control, _) = listener.accept().await.unwrap();
        let (name, body) = rpc0(&mut control).await.unwrap();
        let message = topology::RegistrationMessage::decode(&body[..]).unwrap();
        assert_eq!((&name[..], &message.node_id[..], message.device_id), (&b"0"[..], "3", Some(u32::MAX)));
        let told = topology::RegistrationRespMessage {
            success: true,
            rank_id: 1,
            node_num: 4,
            ..Default::default()
        };
        say_rpc0(&mut control, b"3", &told.encode_to_vec()).await;
        // The entry is read over the second connection, and kept in the first answer's number of 2.10.
        let (mut metadata, _) = listener.accept().await.unwrap();
        let (name, body) = rpc0(&mut metadata).await.unwrap();
        assert_eq!(name, b"6");
        let written = topology::MetadataMessage::decode(&body[..]).unwrap();
        assert_eq!(rpc0(&mut metadata).await.unwrap().0, b"7");
        say_rpc0(&mut metadata, b"11", &written.encode_to_vec()).await;
        assert_eq!(rpc0(&mut metadata).await.unwrap().0, b"7");
        say_rpc0(&mut metadata, b"12", &[]).await;
        rpc0(&mut control).await.unwrap();
    });
    assert_eq!(worker.register().await, Ok(Registered { rank: 1, nodes: 4 }));
    let value = Bytes::from_static(b"17");
    assert_eq!(worker.write("entry", value.clone()).await, Ok(Some(value)));
    assert_eq!(worker.read("nothing").await, Ok(None));
    // Its connection ends while it waits.
    let lost = worker.beat().await.unwrap_err();
    assert!(matches!(lost, Failure::Unanswered(_)), "{lost}");
    scheduler.await.unwrap();
}

/// The next frame of the parameter server: its meta and its payload.
async fn ps(stream: &mut TcpStream) -> (ps_core::MessageMeta, Vec<u8>) {
    let mut header = [0; 16];
    stream.read_exact(&mut header).await.unwrap();
    let mut header = &header[4..];
    let (meta, message) = (header.get_u32_le() as usize, header.get_u64_le() as usize);
    let mut rest = vec![0; message];
    stream.read_exact(&mut rest).await.unwrap();
    (ps_core::MessageMeta::decode(&rest[..meta]).unwrap(), rest[meta..].to_vec())
}

async fn say_ps(stream: &mut TcpStream, meta: &ps_core::MessageMeta, payload: &[u8]) {
    let meta = meta.encode_to_vec();
    let mut frame = 1_u32.to_le_bytes().to_vec();
    frame.extend(u32::try_from(meta.len()).unwrap().to_le_bytes());
    frame.extend(((meta.len() + payload.len()) as u64).to_le_bytes());
    frame.extend([&meta, payload].concat());
    stream.write_all(&frame).await.unwrap();
}

#[tokio::test]
async fn a_node_registers_where_it_is_called_and_echoes_what_it_is_told() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let addresses: Arc<[String]> = [listener.local_addr().unwrap().to_string()].into();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hear = Arc::clone(&heard);
    let hear = Arc::new(move |told: &Told| hear.lock().unwrap().push(told.clone()));
    let mut node = Node::begin("srv-a".into(), Role::Server, (addresses, 0), LIMIT, hear).await.unwrap();

    let scheduler = tokio::spawn(async move {
        let (mut asked, _) = listener.accept().await.unwrap();
        let (meta, payload) = ps(&mut asked).await;
        let message = ps_core::RegisterMessage::decode(&payload[..]).unwrap();
        assert_eq!((meta.cmd(), meta.rank_id), (ps_core::NodeCommand::Register, u32::MAX));
        let answer = ps_core::RegisterRespMessage { node_id: message.node_id, rank_id: 2 };
        say_ps(&mut asked, &meta, &answer.encode_to_vec()).await;

        let place = ("127.0.0.1", u16::try_from(message.port).unwrap());
        let mut called = TcpStream::connect(place).await.unwrap();
        let event = ps_core::EventRespMessage { event: 7 }.encode_to_vec();
        let calls = [(ps_core::NodeCommand::SendEvent, event), (ps_core::NodeCommand::Finish, Vec::new())];
        for (request_id, (command, payload)) in (1..).zip(calls) {
            let meta = ps_core::MessageMeta { cmd: command.into(), request_id, ..Default::default() };
            say_ps(&mut called, &meta, &payload).await;
            assert_eq!(ps(&mut called).await, (meta, payload), "an echo");
        }
        let (meta, payload) = ps(&mut asked).await;
        assert_eq!((meta.cmd(), &payload[..]), (ps_core::NodeCommand::Finish, &b"srv-a"[..]));
        say_ps(&mut asked, &meta, &payload).await;
    });
    assert_eq!(node.register().await, Ok(2));
    assert_eq!(node.finish().await, Ok(()));
    scheduler.await.unwrap();
    assert_eq!(*heard.lock().unwrap(), [Told::Event(7), Told::Finish]);
}
