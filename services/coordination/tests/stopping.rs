//! A planned stop, and the loss of contact with the cluster, as the frames of a connection show them: what is
//! answered, and what is given back.

mod support;

use std::time::Duration;

use prost::Message;
use support::frames::{Frames, Seen, message};
use support::{SERVICE, Served, until};
use tokio::io::DuplexStream;
use tokio::time::{Instant, sleep};
use tonic::{Code, Request};
use tripod_proto::metadata;
use tripod_proto::tripod::v1::WatchMembersRequest;
use tripod_proto::tripod::v1::agents_client::AgentsClient;
use tripod_proto::xla::coordination as pb;
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient as Client;

const SERVICE_NAME: &str = "/xla.coordination.CoordinationService";
/// The incarnation of every task in the tests.
const INCARNATION: u64 = 17;
/// The highest id that a stream can have: a GOAWAY with it only asks to begin no more calls.
const EVERY_STREAM: u32 = (1 << 31) - 1;
/// A GOAWAY without an error that covers no stream.
const LAST_GOAWAY: Seen = Seen::GoAway { last_stream: 0, error: 0 };

/// A client of frames that has a task registered.
struct Peer {
    served: Served,
    frames: Frames<DuplexStream>,
}

/// What a client saw from the begin of the stop on, parts of answers left out.
type End = Vec<Seen>;

impl Peer {
    async fn connected() -> Self {
        let served = Served::with_tasks(2).await;
        let socket = served.dial();
        let mut peer = Self { served, frames: Frames::open(socket, "node:7700").await };
        let mut waiting = Vec::new();
        for task in 0..2 {
            waiting.push(peer.begin("RegisterTask", &register(task)).await);
        }
        while !waiting.is_empty() {
            if let Some(Seen::Status { on, code, .. }) = peer.frames.next().await {
                assert_eq!(code_of(&code), Code::Ok);
                waiting.retain(|stream| *stream != on);
            }
        }
        peer
    }

    async fn begin(&mut self, method: &str, request: &impl Message) -> u32 {
        begin(&mut self.frames, method, request).await
    }

    async fn status(&mut self, stream: u32) -> Code {
        loop {
            match self.frames.next().await {
                Some(Seen::Status { on, code, .. }) if on == stream => return code_of(&code),
                Some(Seen::Part) => {}
                other => panic!("{other:?} instead of an answer"),
            }
        }
    }

    /// Begins a call that waits, and returns when it does.
    async fn begin_waiting(&mut self, method: &str, request: &impl Message) -> u32 {
        let before = self.served.gateway.waiting_calls();
        let stream = self.begin(method, request).await;
        until("the call waits", || self.served.gateway.waiting_calls() == before + 1).await;
        stream
    }

    async fn see_the_end(&mut self) -> End {
        see_the_end(&mut self.frames).await
    }

    /// Goes away and waits until the server has stopped.
    async fn leave(self) {
        drop(self.frames);
        self.served.end().await;
    }
}

async fn begin(frames: &mut Frames<DuplexStream>, method: &str, request: &impl Message) -> u32 {
    let body = request.encode_to_vec();
    let claimed = u32::try_from(body.len()).expect("a short message");
    frames.begin(&format!("{SERVICE_NAME}/{method}"), &message(claimed, &body)).await
}

/// What comes until the last GOAWAY or the end of the connection. PINGs are answered as every client does.
async fn see_the_end(frames: &mut Frames<DuplexStream>) -> End {
    let mut seen = Vec::new();
    while seen.last() != Some(&LAST_GOAWAY)
        && let Some(now) = frames.next().await
    {
        match now {
            Seen::Ping(payload) => frames.pong(&payload).await,
            Seen::Part => {}
            other => seen.push(other),
        }
    }
    seen
}

/// What comes until a call is answered, parts of answers left out.
async fn see_until(frames: &mut Frames<DuplexStream>, stream: u32) -> Vec<Seen> {
    let mut seen = Vec::new();
    while !matches!(seen.last(), Some(Seen::Status { on, .. }) if *on == stream) {
        match frames.next().await.expect("an answer") {
            Seen::Part => {}
            other => seen.push(other),
        }
    }
    seen
}

fn code_of(number: &str) -> Code {
    Code::from_i32(number.parse().expect("a number"))
}

fn incarnations() -> Option<pb::Incarnations> {
    Some(pb::Incarnations { service_incarnation: SERVICE, ..Default::default() })
}

fn register(task: i32) -> pb::RegisterTaskRequest {
    pb::RegisterTaskRequest { incarnation: INCARNATION, source_task_id: task }
}

fn get(key: &str) -> pb::GetKeyValueRequest {
    pb::GetKeyValueRequest { incarnations: incarnations(), key: key.to_owned() }
}

fn insert(key: &str) -> pb::InsertKeyValueRequest {
    let kv = Some(pb::KeyValueEntry { key: key.to_owned(), value: "v".into() });
    pb::InsertKeyValueRequest { incarnations: incarnations(), kv, allow_overwrite: false }
}

fn poll() -> pb::PollForErrorRequest {
    pb::PollForErrorRequest { incarnations: incarnations(), source_task_id: 0 }
}

fn broken() -> pb::ReportErrorToServiceRequest {
    pb::ReportErrorToServiceRequest {
        incarnations: incarnations(),
        source_task_id: 1,
        error_code: Code::Internal.into(),
        error_message: "broken".to_owned(),
    }
}

/// The calls that were answered, in order.
fn answered(end: &[Seen]) -> Vec<(u32, Code)> {
    let status = |seen: &Seen| match seen {
        Seen::Status { on, code, .. } => Some((*on, code_of(code))),
        _ => None,
    };
    end.iter().filter_map(status).collect()
}

fn goaway(last_stream: u32) -> Seen {
    Seen::GoAway { last_stream, error: 0 }
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_are_given_back() {
    let mut peer = Peer::connected().await;
    let waiting = peer.begin_waiting("GetKeyValue", &get("missing")).await;
    let answered = peer.begin("InsertKeyValue", &insert("k")).await;
    assert_eq!(peer.status(answered).await, Code::Ok);
    peer.served.begin_to_stop();
    // First the client is asked to begin no more calls; when it has heard so, no more are taken; and then
    // those that wait are above the last GOAWAY's stream. None of them was reset: that would be a panic.
    let end = peer.see_the_end().await;
    assert!(waiting < answered, "the last GOAWAY cannot tell them apart");
    assert_eq!(end, [goaway(EVERY_STREAM), goaway(answered), LAST_GOAWAY]);
    peer.leave().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_is_answered_while_the_client_leaves() {
    let mut peer = Peer::connected().await;
    let waiting = peer.begin_waiting("GetKeyValue", &get("late")).await;
    peer.served.begin_to_stop();
    assert_eq!(peer.frames.next().await, Some(goaway(EVERY_STREAM)));
    let late = peer.begin("InsertKeyValue", &insert("late")).await;
    let end = peer.see_the_end().await;
    let mut codes = answered(&end);
    codes.sort_by_key(|(stream, _)| *stream);
    assert_eq!(codes, [(waiting, Code::Ok), (late, Code::Ok)]);
    peer.leave().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_under_way_is_waited_for() {
    let mut peer = Peer::connected().await;
    let socket = peer.served.dial();
    let mut other = Frames::open(socket, "node:7700").await;
    begin(&mut other, "GetKeyValue", &get("missing")).await;
    until("the other client's call waits", || peer.served.gateway.waiting_calls() == 1).await;
    peer.begin_waiting("GetKeyValue", &get("missing")).await;
    peer.served.backend.depose();
    let write = peer.begin_waiting("InsertKeyValue", &insert("k")).await;
    peer.served.begin_to_stop();
    // The other client's connection has no write, so it shows when connections begin to end.
    assert_eq!(see_the_end(&mut other).await.last(), Some(&LAST_GOAWAY));
    peer.served.backend.elect();
    let end = peer.see_the_end().await;
    assert_eq!(answered(&end), [(write, Code::Ok)]);
    assert_eq!(end.last(), Some(&LAST_GOAWAY), "after the answer, or the client would write twice");
    peer.leave().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_cannot_be_finished_is_told_so_and_a_read_is_given_back() {
    let mut peer = Peer::connected().await;
    peer.served.backend.depose();
    let write = peer.begin_waiting("InsertKeyValue", &insert("k")).await;
    peer.begin_waiting("TryGetKeyValue", &get("k")).await;
    peer.served.begin_to_stop();
    let end = peer.see_the_end().await;
    assert_eq!(answered(&end), [(write, Code::Unavailable)], "gRPC must not make it again");
    assert_eq!(end.last(), Some(&LAST_GOAWAY));
    peer.leave().await;
}

#[tokio::test(start_paused = true)]
async fn a_held_poll_is_released_and_its_task_hears_of_errors_by_heartbeat() {
    let mut peer = Peer::connected().await;
    let held = peer.begin_waiting("PollForError", &poll()).await;
    peer.served.begin_to_stop();
    let end = peer.see_the_end().await;
    assert_eq!(answered(&end), [(held, Code::Cancelled)], "every other code ends the client's process");

    drop(peer.frames);
    let again = peer.served.again().await;
    let mut client = Client::new(again.connect().await);
    let beat =
        pb::HeartbeatRequest { incarnations: incarnations(), incarnation: INCARNATION, source_task_id: 0 };
    client.heartbeat(beat).await.expect("all is well");
    client.report_error_to_service(broken()).await.expect("reported");
    client.heartbeat(beat).await.expect_err("told by the heartbeat");
}

#[tokio::test(start_paused = true)]
async fn a_held_poll_ends_without_a_leader_too() {
    let mut peer = Peer::connected().await;
    let held = peer.begin_waiting("PollForError", &poll()).await;
    peer.served.backend.depose();
    peer.served.begin_to_stop();
    let end = peer.see_the_end().await;
    assert_eq!(answered(&end), [(held, Code::Cancelled)]);
    peer.leave().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_answers_nothing_is_left() {
    let mut peer = Peer::connected().await;
    peer.begin_waiting("GetKeyValue", &get("missing")).await;
    peer.served.begin_to_stop();
    let mut seen = Vec::new();
    while let Some(now) = peer.frames.next().await {
        seen.extend(matches!(now, Seen::GoAway { .. } | Seen::Status { .. }).then_some(now));
    }
    assert_eq!(seen, [goaway(EVERY_STREAM), LAST_GOAWAY]);
    peer.served.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_an_agent_makes_again_is_told_so() {
    let mut served = Served::with_tasks(1).await;
    let mut client = Client::new(served.connect().await);
    let mut request = Request::new(get("missing"));
    request.metadata_mut().insert(metadata::LASTING, "1".parse().expect("printable"));
    let held = tokio::spawn(async move { client.get_key_value(request).await });
    until("the get waits", || served.gateway.waiting_calls() == 1).await;
    served.begin_to_stop();
    let refused = held.await.expect("no panic").expect_err("there is no such key");
    assert_eq!(refused.code(), Code::Unavailable);
    assert_eq!(refused.metadata().get(metadata::OUTAGE).expect("an outage"), metadata::OUTAGE_STOPPING);
    served.end().await;
}

#[tokio::test(start_paused = true)]
async fn watchers_of_members_are_told_before_the_end() {
    let mut served = Served::with_tasks(1).await;
    let mut agent = AgentsClient::new(served.connect().await);
    let watch = agent.watch_members(WatchMembersRequest {}).await.expect("watching");
    let mut watch = watch.into_inner();
    let first = watch.message().await.expect("watching").expect("the members");
    assert!(!first.stopping);
    served.begin_to_stop();
    let last = watch.message().await.expect("watching").expect("the members");
    assert!(last.stopping);
    assert_eq!(watch.message().await.expect("a good end"), None);
    drop(agent);
    served.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_cut_off_gives_everything_back_that_waits_and_polls_too() {
    let mut peer = Peer::connected().await;
    let waiting = peer.begin_waiting("GetKeyValue", &get("missing")).await;
    let held = peer.begin_waiting("PollForError", &poll()).await;
    peer.served.contact.lose();
    let end = peer.see_the_end().await;
    assert_eq!(answered(&end), [], "neither {waiting} nor {held} fails");
    assert_eq!(end.last(), Some(&LAST_GOAWAY));
    drop(peer.frames);

    // A client that finds no other node comes back, and is not sent away again.
    let socket = peer.served.dial();
    let mut frames = Frames::open(socket, "node:7700").await;
    let again = begin(&mut frames, "PollForError", &poll()).await;
    until("the poll waits", || peer.served.gateway.waiting_calls() == 1).await;
    let found = begin(&mut frames, "TryGetKeyValue", &get("missing")).await;
    let seen = see_until(&mut frames, found).await;
    assert_eq!(answered(&seen), [(found, Code::NotFound)], "poll {again} is still held");
    peer.served.contact.find();
    peer.served.contact.lose();
    assert_eq!(see_the_end(&mut frames).await.last(), Some(&LAST_GOAWAY), "contact was lost once more");
    drop(frames);
    peer.served.stop().await;
}

#[tokio::test(start_paused = true)]
async fn new_connections_wait_while_their_node_is_cut_off() {
    let served = Served::with_tasks(1).await;
    served.contact.lose();
    let begun = Instant::now();
    let mut frames = Frames::open(served.dial(), "node:7700").await;
    frames.next().await.expect("a frame");
    assert_eq!(begun.elapsed(), Duration::from_secs(1), "long enough to find another node");

    let begun = Instant::now();
    let mut frames = Frames::open(served.dial(), "node:7700").await;
    let first = async { (frames.next().await.expect("a frame"), begun.elapsed()) };
    let later = Duration::from_millis(300);
    let found = async {
        sleep(later).await;
        served.contact.find();
    };
    let ((_, waited), ()) = tokio::join!(first, found);
    assert_eq!(waited, later, "it waits no longer than that");

    let begun = Instant::now();
    let mut client = Client::new(served.connect().await);
    client.insert_key_value(insert("k")).await.expect("inserted");
    assert_eq!(begun.elapsed(), Duration::ZERO, "nobody waits any more");
    drop((frames, client));
    served.stop().await;
}
