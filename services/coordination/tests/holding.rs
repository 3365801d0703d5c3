//! What clients have the node hold is bounded, and comes back.

mod support;

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame};
use support::Served;
use support::frames::{Frames, Seen, message};
use tokio::io::DuplexStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tonic::Status;
use tonic::transport::Channel;
use tower::{Service as _, ServiceExt as _};
use tripod_gateway::Options;
use tripod_port::{CALL_BYTES, CONNECTION_BYTES_FREE, CONNECTION_WINDOW_BYTES, MemoryLimits};
use tripod_proto::xla::coordination::{
    GetKeyValueRequest, HeartbeatRequest, Incarnations, InsertKeyValueRequest, KeyValueEntry,
    PollForErrorRequest,
};
use tripod_state::ids::JobId;
use tripod_state::{Command, Scope, job, kv};

const SERVICE: &str = "/xla.coordination.CoordinationService";
const MIB: u64 = 1 << 20;

/// A port with these limits, and a job on it.
async fn served(all: u64, one_connection: u64) -> (Served, JobId) {
    let memory = MemoryLimits { all, one_connection };
    let served = Served::start(Options { memory, ..Options::default() }).await;
    let job = served.create(job::Spec { poll: job::Poll::Hold, ..job::Spec::of_tasks(1) }).await;
    (served, job)
}

fn held(served: &Served) -> u64 {
    served.gateway.memory().held()
}

fn service() -> Option<Incarnations> {
    Some(Incarnations { service_incarnation: support::SERVICE, ..Default::default() })
}

fn framed(request: &impl prost::Message) -> Vec<u8> {
    let body = request.encode_to_vec();
    message(u32::try_from(body.len()).expect("a short message"), &body)
}

fn get(key: &str) -> (String, Vec<u8>) {
    (
        format!("{SERVICE}/GetKeyValue"),
        framed(&GetKeyValueRequest { key: key.to_owned(), incarnations: service() }),
    )
}

fn insert(key: &str) -> (String, Vec<u8>) {
    let entry = KeyValueEntry { key: key.to_owned(), value: Bytes::from_static(b"v") };
    let request = InsertKeyValueRequest { kv: Some(entry), incarnations: service(), ..Default::default() };
    (format!("{SERVICE}/InsertKeyValue"), framed(&request))
}

async fn open(served: &Served) -> Frames<DuplexStream> {
    Frames::open(served.dial(), "node:7700").await
}

/// A small call of somebody else passes, whatever this one does.
async fn assert_others_are_served(served: &Served, key: &str) {
    let mut other = open(served).await;
    let (path, data) = insert(key);
    let answer = tripod_wait::within("the answer of a small call", other.call(&path, &data)).await;
    assert_eq!(answer.0, "0", "{}", answer.1);
}

async fn assert_all_comes_back(served: &Served) {
    tripod_wait::until("all that was held", || (held(served) == 0).then_some(())).await;
}

/// Announces a message, sends a part of it, and never the rest.
struct Half {
    bytes: usize,
}

const PART_BYTES: usize = 64 << 10;

impl Body for Half {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.bytes == 0 {
            return Poll::Pending;
        }
        self.bytes = self.bytes.saturating_sub(PART_BYTES);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[0; PART_BYTES])))))
    }
}

/// Twelve messages of which so many bytes come, on one connection.
async fn halves(served: &Served, bytes: usize) -> (Channel, JoinSet<Status>) {
    let channel = served.connect().await;
    let mut calls = JoinSet::new();
    for _ in 0..12 {
        let mut channel = channel.clone();
        let request = Request::post(format!("http://node{SERVICE}/InsertKeyValue"))
            .header("content-type", "application/grpc")
            .body(tonic::body::Body::new(Announced {
                head: Some(message(60 << 20, b"")),
                half: Half { bytes },
            }))
            .expect("a request");
        calls.spawn(async move {
            channel.ready().await.expect("a connection");
            let answer = channel.call(request).await.expect("an answer");
            Status::from_header_map(answer.headers()).expect("a refusal")
        });
    }
    (channel, calls)
}

#[tokio::test(start_paused = true)]
async fn f11_messages_that_cannot_come_beside_each_other_give_way_to_the_first() {
    const HALF_BYTES: usize = 20 << 20;
    let (served, _) = served(128 * MIB, 8 * MIB).await;
    let (_channel, mut calls) = halves(&served, HALF_BYTES).await;
    for _ in 0..11 {
        let refused = calls.join_next().await.expect("a call").expect("no panic");
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        assert!(refused.message().contains("T2209 connection-memory-full"), "{refused:?}");
    }
    let whole = HALF_BYTES as u64;
    tripod_wait::until("the first one", || {
        (held(&served) > whole && held(&served) < whole + MIB).then_some(())
    })
    .await;
    calls.shutdown().await;
}

#[tokio::test]
async fn f11_half_messages_are_bounded_and_come_back_when_their_connection_ends() {
    const HALF_BYTES: usize = 20 << 20;
    let (served, _) = served(128 * MIB, 8 * MIB).await;
    let (channel, mut calls) = halves(&served, HALF_BYTES).await;
    // One message has the right of way, and may come whole.
    let favoured = HALF_BYTES as u64;
    tripod_wait::until("more than one message", || (held(&served) > favoured).then_some(())).await;
    assert_others_are_served(&served, "k").await;
    let most = 8 * MIB + favoured + u64::from(CONNECTION_WINDOW_BYTES) + MIB;
    assert!(held(&served) <= most, "{} is held", held(&served));
    calls.shutdown().await;
    drop(channel);
    assert_all_comes_back(&served).await;
}

/// A body behind a head.
struct Announced {
    head: Option<Vec<u8>>,
    half: Half,
}

impl Body for Announced {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match self.head.take() {
            Some(head) => Poll::Ready(Some(Ok(Frame::data(head.into())))),
            None => Pin::new(&mut self.half).poll_frame(context),
        }
    }
}

/// A connection that lets everything be sent, has asked for `count` values of a MiB, and reads nothing.
async fn deaf(served: &Served, job: JobId, count: usize) -> Frames<DuplexStream> {
    let scope = Scope { job, service: None };
    let value = vec![b'v'; MIB as usize].into();
    let insert = kv::Command::Insert { scope, key: "large".to_owned(), value, overwrite: true };
    served.gateway.submit(Command::Kv(insert)).await.expect("in memory").expect("inserted");
    let mut frames = open(served).await;
    frames.grant(0, 1 << 30).await;
    for _ in 0..count {
        let (path, data) = get("large");
        let stream = frames.begin(&path, &data).await;
        frames.grant(stream, 1 << 30).await;
    }
    frames
}

#[tokio::test]
async fn f14_unread_answers_are_bounded_and_come_back_when_their_connection_ends() {
    let (served, job) = served(64 * MIB, 8 * MIB).await;
    let deaf = deaf(&served, job, 100).await;
    tripod_wait::until("answers up to the limit", || (held(&served) >= 8 * MIB).then_some(())).await;
    assert_others_are_served(&served, "k").await;
    assert!(held(&served) <= 8 * MIB + 2 * MIB + 100 * 2 * CALL_BYTES, "{} is held", held(&served));
    drop(deaf);
    assert_all_comes_back(&served).await;
}

#[tokio::test]
async fn f14_who_reads_gets_all_answers_however_many_wait() {
    let (served, job) = served(64 * MIB, 2 * MIB).await;
    let mut frames = deaf(&served, job, 20).await;
    tripod_wait::until("answers up to the limit", || (held(&served) >= 2 * MIB).then_some(())).await;
    let mut answered = 0;
    while answered < 20 {
        match tripod_wait::within("a frame", frames.next()).await {
            Some(Seen::Status { code, text, .. }) => {
                assert_eq!(code, "0", "{text}");
                answered += 1;
            }
            Some(Seen::Part | Seen::Ping(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    tripod_wait::until("what was held for answers", || {
        (held(&served) <= CONNECTION_BYTES_FREE * 3).then_some(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn f14_unread_answers_end_their_connection_when_memory_is_short_and_not_before() {
    let (served, job) = served(4 * MIB, 3 * MIB).await;
    let _deaf = deaf(&served, job, 10).await;
    tripod_wait::until("answers up to the limit", || (held(&served) >= 3 * MIB).then_some(())).await;
    let began = Instant::now();
    while held(&served) > 0 {
        sleep(Duration::from_secs(1)).await;
        assert!(began.elapsed() < Duration::from_secs(600), "{} is held", held(&served));
    }
    assert!((30..=62).contains(&began.elapsed().as_secs()), "after {:?}", began.elapsed());

    let (roomy, job) = self::served(64 * MIB, 3 * MIB).await;
    let _deaf = deaf(&roomy, job, 10).await;
    sleep(Duration::from_secs(3_600)).await;
    assert!(held(&roomy) >= 3 * MIB);
}

#[tokio::test]
async fn f11_waiting_calls_weigh_and_their_bytes_come_back() {
    const CALLS: u64 = 20_000;
    let (served, _) = served(u64::MAX, u64::MAX).await;
    let mut frames = open(&served).await;
    let (path, data) = get("missing");
    for _ in 0..CALLS {
        frames.begin(&path, &data).await;
    }
    tripod_wait::until("all calls", || (served.gateway.waiting_calls() == CALLS).then_some(())).await;
    assert!(held(&served) >= CALLS * CALL_BYTES, "{} is held", held(&served));
    drop(frames);
    assert_all_comes_back(&served).await;
}

/// How the call on `stream`, or with `None` the first of all, ends.
async fn end_of(frames: &mut Frames<DuplexStream>, stream: Option<u32>) -> (String, String) {
    let end = async {
        loop {
            match frames.next().await {
                Some(Seen::Status { on, code, text }) if stream.is_none_or(|stream| stream == on) => {
                    return (code, text.replace("%20", " "));
                }
                Some(Seen::Part | Seen::Status { .. }) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    tripod_wait::within("the end of a call", end).await
}

/// Begins calls that wait, more than there is room for, and gives what the first is told that is refused.
async fn fill(frames: &mut Frames<DuplexStream>) -> String {
    let (path, data) = get("missing");
    for _ in 0..2 * MIB / CALL_BYTES {
        frames.begin(&path, &data).await;
    }
    let (code, text) = end_of(frames, None).await;
    assert_eq!(code, "8", "{text}");
    text
}

#[tokio::test]
async fn f11_calls_without_room_are_told_which_limit_it_is_and_what_must_pass_passes() {
    let (served, _) = served(2 * MIB, MIB).await;
    let mut all = Vec::new();
    for _ in 0..2 {
        let mut greedy = open(&served).await;
        let told = fill(&mut greedy).await;
        assert!(told.contains("T2209 connection-memory-full") && told.contains("holds 1 MiB"), "{told}");
        all.push(greedy);
    }
    // The third has a few calls in any case, and no more.
    let mut modest = open(&served).await;
    let others = served.gateway.waiting_calls();
    let told = fill(&mut modest).await;
    assert!(told.contains("T2208 client-memory-full") && told.contains("--client-memory-mib"), "{told}");
    let least = others + CONNECTION_BYTES_FREE / CALL_BYTES - 1;
    let waiting = || (served.gateway.waiting_calls() >= least).then_some(());
    tripod_wait::until("its calls", waiting).await;

    // A poll hears nothing that would end its client, and a heartbeat is taken.
    let request = framed(&PollForErrorRequest { incarnations: service(), source_task_id: 0 });
    let poll = modest.begin(&format!("{SERVICE}/PollForError"), &request).await;
    let poll = end_of(&mut modest, Some(poll)).await;
    assert!(poll.0 == "1" && poll.1.contains("T2208"), "{poll:?}");
    let request = framed(&HeartbeatRequest { incarnations: service(), ..Default::default() });
    let beat = modest.begin(&format!("{SERVICE}/Heartbeat"), &request).await;
    let beat = end_of(&mut modest, Some(beat)).await;
    assert!(!beat.1.contains("T22"), "{beat:?}");
    assert!(served.gateway.memory().refused() > 0);
    assert_others_are_served(&served, "k").await;
    drop((all, modest));
    assert_all_comes_back(&served).await;
}
