//! How many system calls an answer takes: a node that is killed has answered a call whole or not at all.

mod support;

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Buf;
use prost::Message;
use support::frames::{Frames, Seen, message};
use support::{SERVICE, Served};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio_stream::StreamExt as _;
use tonic::service::Routes;
use tonic::transport::server::Connected;
use tripod_coordination::{Coordination, MANNERS};
use tripod_gateway::{FrontEnd as _, JobBinding, Options};
use tripod_port::{CallerAddress, Followed, Manners, Mended, Stopping, server};
use tripod_proto::xla::coordination as pb;
use tripod_state::ids::JobId;
use tripod_state::{Command, Scope, job, kv};

const SERVICE_NAME: &str = "/xla.coordination.CoordinationService";
const INCARNATION: u64 = 17;
/// More than any test writes at a time.
const PIPE_BYTES: usize = 1 << 20;
/// Calls of each kind: what writes an answer and what makes it are two tasks, which run at the same time.
const CALLS: usize = 300;
/// More than any answer has.
const WINDOW_BYTES: u32 = 1 << 30;
const LARGE_BYTES: usize = 2 << 20;
/// For so long a port waits for the rest of an answer.
const REST_TAKES: Duration = Duration::from_millis(100);

/// When each write was made, and what it was given.
type Writes = Vec<(Instant, Vec<u8>)>;

/// The server's end of a connection, with a note of its writes.
struct Noted {
    inner: DuplexStream,
    writes: Arc<Mutex<Writes>>,
}

impl AsyncRead for Noted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl AsyncWrite for Noted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self { inner, writes } = &mut *self;
        // Who reads looks at the notes next.
        let mut writes = writes.lock().expect("no panic");
        let written = Pin::new(inner).poll_write(context, bytes);
        if let Poll::Ready(Ok(count)) = written {
            writes.push((Instant::now(), bytes[..count].to_vec()));
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

impl Connected for Noted {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

/// A client of a job on a connection in memory.
struct Peer {
    served: Served,
    job: JobId,
    frames: Frames<DuplexStream>,
    writes: Arc<Mutex<Writes>>,
}

impl Peer {
    async fn connected() -> Self {
        let served = Served::start(Options::default()).await;
        let job = served.create(job::Spec::of_tasks(1)).await;
        let (inner, client) = tokio::io::duplex(PIPE_BYTES);
        let writes = Arc::default();
        let ours = Mended::new(
            Noted { inner, writes: Arc::clone(&writes) },
            CallerAddress::default(),
            Stopping::never(),
        );
        let coordination = Coordination::new(served.gateway.clone());
        let routes = coordination.add_to(Routes::default(), &JobBinding::Named("job".to_owned()));
        let services = Followed::new(routes, Vec::new(), Manners::of(&[MANNERS]), &Stopping::never());
        // The listener has one connection, and waits for others in vain.
        let incoming = tokio_stream::once(Ok::<_, io::Error>(ours)).chain(tokio_stream::pending());
        tokio::spawn(server().serve_with_incoming(services, incoming));
        let mut frames = Frames::open(client, "node:7700").await;
        frames.grant(0, WINDOW_BYTES).await;
        Self { served, job, frames, writes }
    }

    async fn insert(&self, key: &str, bytes: usize) {
        let insert = kv::Command::Insert {
            scope: Scope { job: self.job, service: None },
            key: key.to_owned(),
            value: vec![b'v'; bytes].into(),
            overwrite: false,
        };
        self.served.gateway.submit(Command::Kv(insert)).await.expect("in memory").expect("inserted");
    }

    /// What the server wrote since the last look.
    fn writes(&self) -> Writes {
        std::mem::take(&mut *self.writes.lock().expect("no panic"))
    }

    /// Makes a call, which must end with `code`, and gives its stream.
    async fn call(&mut self, method: &str, request: &impl Message, code: &str) -> u32 {
        let body = request.encode_to_vec();
        let claimed = u32::try_from(body.len()).expect("a short message");
        let stream = self.frames.begin(&format!("{SERVICE_NAME}/{method}"), &message(claimed, &body)).await;
        self.frames.grant(stream, WINDOW_BYTES).await;
        loop {
            match self.frames.next().await {
                Some(Seen::Status { on, code: ended, .. }) if on == stream => {
                    assert_eq!(ended, code);
                    return stream;
                }
                Some(Seen::Part) => {}
                other => panic!("{other:?} instead of an answer"),
            }
        }
    }

    /// The calls of many that took more than one write.
    async fn torn(&mut self, method: &str, request: &impl Message, code: &str) -> usize {
        let mut torn = 0;
        for _ in 0..CALLS {
            let begun = Instant::now();
            let stream = self.call(method, request, code).await;
            let writes = self.writes();
            let mut own = writes.iter().filter(|(_, write)| has_frame_on(write, stream));
            let first = own.next().map(|(at, _)| at.duration_since(begun));
            // Where the task that answers has its processor taken away for longer than its rest is waited for, that tears
            // the answer, and not the port.
            let was_kept = first.is_some_and(|waited| waited >= REST_TAKES);
            torn += usize::from(first.is_none() || (own.next().is_some() && !was_kept));
        }
        torn
    }
}

/// Whether a write, which begins and ends with a frame, has one on a stream.
fn has_frame_on(mut write: &[u8], stream: u32) -> bool {
    while !write.is_empty() {
        let payload_bytes = usize::try_from(write.get_uint(3)).expect("24 bits");
        write.advance(2);
        if write.get_u32() == stream {
            return true;
        }
        write.advance(payload_bytes);
    }
    false
}

fn incarnations() -> Option<pb::Incarnations> {
    Some(pb::Incarnations { service_incarnation: SERVICE, ..Default::default() })
}

fn get(key: &str) -> pb::GetKeyValueRequest {
    pb::GetKeyValueRequest { incarnations: incarnations(), key: key.to_owned() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_answer_is_one_write() {
    let mut peer = Peer::connected().await;
    let task = pb::RegisterTaskRequest { incarnation: INCARNATION, source_task_id: 0 };
    assert_eq!(peer.torn("RegisterTask", &task, "0").await, 0);
    let beat =
        pb::HeartbeatRequest { incarnations: incarnations(), incarnation: INCARNATION, source_task_id: 0 };
    assert_eq!(peer.torn("Heartbeat", &beat, "0").await, 0);
    for bytes in [16, 2 << 10, 60_000] {
        let key = format!("of-{bytes}");
        peer.insert(&key, bytes).await;
        assert_eq!(peer.torn("GetKeyValue", &get(&key), "0").await, 0, "a value of {bytes} bytes");
    }
    let missing = pb::TryGetKeyValueRequest { incarnations: incarnations(), key: "missing".to_owned() };
    assert_eq!(peer.torn("TryGetKeyValue", &missing, "5").await, 0);
    drop(peer.frames);
    peer.served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_answer_that_is_larger_than_what_is_gathered_arrives() {
    let mut peer = Peer::connected().await;
    peer.insert("large", LARGE_BYTES).await;
    peer.call("GetKeyValue", &get("large"), "0").await;
    let writes: Vec<Vec<u8>> = peer.writes().into_iter().map(|(_, write)| write).collect();
    assert!(writes.len() > 1, "it is not gathered whole");
    assert!(writes.concat().len() > LARGE_BYTES);
    drop(peer.frames);
    peer.served.stop().await;
}
