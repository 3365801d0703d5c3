//! What the port does beside answering calls: authorities, sizes, streams, outages, stopping.

mod support;

use std::time::Duration;

use bytes::Bytes;
use support::frames::{Frames, message};
use support::schema::Schema;
use support::{SERVICE, Served, dialects, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::time::Instant;
use tonic::codec::CompressionEncoding;
use tonic::{Code, Request, Status};
use tripod_coordination::COORDINATION_KEY;
use tripod_gateway::Options;
use tripod_port::overlong::MESSAGE_BYTES_MAX;
use tripod_port::{Listener, serve};
use tripod_proto::xla::coordination as pb;
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient as Client;
use tripod_state::ids::DurationMs;
use tripod_state::job;

const TRY_GET: &str = "/xla.coordination.CoordinationService/TryGetKeyValue";
const LISTS: [&str; 3] = ["10.0.0.1:7700,10.0.0.2:7700", "%2Ftmp%2Ftripod.sock", "localhost:7700"];

fn incarnations() -> Option<pb::Incarnations> {
    Some(pb::Incarnations { service_incarnation: SERVICE, ..Default::default() })
}

fn get(key: &str) -> pb::GetKeyValueRequest {
    pb::GetKeyValueRequest { incarnations: incarnations(), key: key.to_owned() }
}

fn try_get(key: &str) -> pb::TryGetKeyValueRequest {
    pb::TryGetKeyValueRequest { incarnations: incarnations(), key: key.to_owned() }
}

fn beat() -> pb::HeartbeatRequest {
    pb::HeartbeatRequest { incarnations: incarnations(), incarnation: 17, source_task_id: 0 }
}

fn register() -> pb::RegisterTaskRequest {
    pb::RegisterTaskRequest { incarnation: 17, source_task_id: 0 }
}

fn has_mark(status: &Status) -> bool {
    status.details().windows(COORDINATION_KEY.len()).any(|part| part == COORDINATION_KEY.as_bytes())
}

/// Two calls on one connection: the second one's header block leans on the first one's.
async fn ask_twice<S>(socket: S, authority: &'static str)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let mut client = Frames::open(socket, authority).await;
    for _ in 0..2 {
        let answer = client.call(TRY_GET, &message(0, b"")).await;
        assert_eq!(answer.0, "13", "{authority}: {}", answer.1);
        assert!(answer.1.starts_with("wrong%20service%20incarnation"), "{}", answer.1);
    }
}

/// Serves the job at a socket too, until the test ends.
fn serve_at(served: &Served, listener: impl Into<Listener>) {
    let (listener, dialects) = (listener.into(), dialects(&served.gateway));
    tokio::spawn(serve(listener, dialects, std::future::pending()));
}

#[tokio::test]
async fn every_target_form_reaches_the_service() {
    let served = Served::with_tasks(1).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound port");
    serve_at(&served, listener);
    for authority in LISTS {
        ask_twice(TcpStream::connect(address).await.expect("a connection"), authority).await;
    }
}

#[tokio::test]
async fn a_unix_socket_reaches_the_service() {
    let served = Served::with_tasks(1).await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    serve_at(&served, UnixListener::bind(&path).expect("a socket"));
    for authority in LISTS {
        ask_twice(UnixStream::connect(&path).await.expect("a connection"), authority).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_beyond_the_limit_is_too_large() {
    let served = Served::with_tasks(1).await;
    let claimed = u32::try_from(MESSAGE_BYTES_MAX + 1).expect("32 bits");
    let answer = Frames::open(served.dial(), LISTS[2]).await.call(TRY_GET, &message(claimed, b"x")).await;
    assert_eq!(answer.0, (Code::ResourceExhausted as i32).to_string(), "{}", answer.1);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_message_is_refused_and_the_connection_lives() {
    let served = Served::with_tasks(1).await;
    let mut client = Frames::open(served.dial(), LISTS[0]).await;
    // Field 2 claims nine bytes and has one.
    let damaged = client.call(TRY_GET, &message(3, b"\x12\x09a")).await;
    assert_eq!(damaged.0, (Code::Internal as i32).to_string(), "{}", damaged.1);
    let whole = client.call(TRY_GET, &message(0, b"")).await;
    assert!(whole.1.starts_with("wrong%20service%20incarnation"), "{}", whole.1);
}

#[tokio::test(start_paused = true)]
async fn garbage_ends_its_own_connection_only() {
    let served = Served::with_tasks(1).await;
    let mut socket = served.dial();
    socket.write_all(&[0xfe; 4096]).await.expect("a connection");
    let mut rest = Vec::new();
    let end = tripod_wait::within("the end of the connection", socket.read_to_end(&mut rest));
    drop(end.await);
    let mut client = Client::new(served.connect().await);
    client.register_task(register()).await.expect("another connection is served");
}

#[tokio::test(start_paused = true)]
async fn blocked_calls_do_not_stop_heartbeats() {
    const BLOCKED: u64 = 300;
    let served = Served::with_tasks(1).await;
    let mut client = Client::new(served.connect().await);
    client.register_task(register()).await.expect("registered");
    for place in 0..BLOCKED {
        let mut client = client.clone();
        tokio::spawn(async move { client.get_key_value(get(&format!("missing/{place}"))).await });
    }
    until("all gets wait", || served.gateway.waiting_calls() >= BLOCKED).await;
    let begun = Instant::now();
    for _ in 0..10 {
        let reply = client.heartbeat(beat()).await.expect("alive").into_inner();
        assert_eq!(reply.service_incarnation, SERVICE);
    }
    assert_eq!(begun.elapsed(), Duration::ZERO, "nothing was waited for");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_leaves_no_waiting_call() {
    let served = Served::with_tasks(1).await;
    let mut client = Client::new(served.connect().await);
    let call = tokio::spawn(async move { client.get_key_value(get("missing")).await });
    until("the get waits", || served.gateway.waiting_calls() == 1).await;
    call.abort();
    until("it is gone", || served.gateway.waiting_calls() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn compressed_calls_are_understood() {
    let served = Served::with_tasks(1).await;
    let mut client = Client::new(served.connect().await).send_compressed(CompressionEncoding::Gzip);
    let kv = Some(pb::KeyValueEntry { key: "k".repeat(2000), value: Bytes::from(vec![b'v'; 100_000]) });
    let request = pb::InsertKeyValueRequest { incarnations: incarnations(), kv, allow_overwrite: false };
    client.insert_key_value(request).await.expect("stored");
    let found = client.try_get_key_value(try_get(&"k".repeat(2000))).await.expect("found");
    assert_eq!(found.into_inner().kv.expect("a value").value.len(), 100_000);
}

#[tokio::test(start_paused = true)]
async fn a_large_value_passes() {
    let served = Served::with_tasks(1).await;
    let mut client = Client::new(served.connect().await).max_decoding_message_size(usize::MAX);
    let value = Bytes::from(vec![7; 8 << 20]);
    let kv = Some(pb::KeyValueEntry { key: "big".to_owned(), value: value.clone() });
    let request = pb::InsertKeyValueRequest { incarnations: incarnations(), kv, allow_overwrite: false };
    client.insert_key_value(request).await.expect("stored");
    let found = client.get_key_value(get("big")).await.expect("found").into_inner();
    assert_eq!(found.kv.expect("a value").value, value);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_job_names_the_command_that_creates_it() {
    let served = Served::start(Options::default()).await;
    let mut client = Client::new(served.connect().await);
    let refused = client.register_task(register()).await.expect_err("there is no job");
    assert_eq!(refused.code(), Code::NotFound);
    assert!(refused.message().contains("tripod job create job --tasks"), "{}", refused.message());
    served.create(job::Spec::of_tasks(1)).await;
    client.register_task(register()).await.expect("now there is");
}

#[tokio::test(start_paused = true)]
async fn a_client_faster_than_the_first_leader_finds_its_job() {
    let served = Served::start(Options::default()).await;
    let mut client = Client::new(served.connect().await);
    let early = client.register_task(register());
    tokio::pin!(early);
    let refused = tokio::time::timeout(Duration::from_millis(50), &mut early).await;
    assert!(refused.is_err(), "answered without a job: {refused:?}");
    served.create(job::Spec::of_tasks(1)).await;
    early.await.expect("the job came in time");
}

#[tokio::test(start_paused = true)]
async fn without_a_leader_only_polls_are_released() {
    let options = Options { hold: Duration::from_millis(50), ..Options::default() };
    let served = Served::start(options).await;
    // A heartbeat is held for a part of the timeout while there is no leader.
    let heartbeat_timeout_ms = DurationMs(2000);
    let spec = job::Spec { poll: job::Poll::Hold, heartbeat_timeout_ms, ..job::Spec::of_tasks(1) };
    served.create(spec).await;
    let mut client = Client::new(served.connect().await);
    client.register_task(register()).await.expect("registered");
    served.backend.depose();

    let poll = pb::PollForErrorRequest { incarnations: incarnations(), source_task_id: 0 };
    let released = client.poll_for_error(poll).await.expect_err("never OK");
    assert_eq!(released.code(), Code::Cancelled, "every other code ends the client's process");

    let refused = client.try_get_key_value(try_get("k")).await.expect_err("no leader");
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(!has_mark(&refused), "a client must take it for a failed transport");
    let pushback = refused.metadata().get("grpc-retry-pushback-ms").expect("when to come again");
    assert_eq!(pushback, "1000");

    let alive = client.heartbeat(beat()).await.expect("never an error for want of a leader");
    assert_eq!(alive.into_inner().service_incarnation, SERVICE);
}

#[tokio::test(start_paused = true)]
async fn a_last_poll_is_not_held_for_want_of_a_leader() {
    let served = Served::with_tasks(1).await;
    let mut client = Client::new(served.connect().await);
    client.register_task(register()).await.expect("registered");
    served.backend.depose();
    let poll = || pb::PollForErrorRequest { incarnations: incarnations(), source_task_id: 0 };
    let mut last = Request::new(poll());
    last.metadata_mut().insert("grpc-previous-rpc-attempts", "4".parse().expect("printable"));
    let mut other = client.clone();
    let earlier = other.poll_for_error(poll());
    tokio::select! {
        released = client.poll_for_error(last) => {
            assert_eq!(released.expect_err("never OK").code(), Code::Cancelled);
        }
        held = earlier => panic!("an earlier attempt is held: {held:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_last_poll_that_was_answered_before_it_was_recorded_is_recorded_when_somebody_leads() {
    let served = Served::start(Options::default()).await;
    let heartbeat_timeout_ms = DurationMs(60_000);
    served.create(job::Spec { poll: job::Poll::Hold, heartbeat_timeout_ms, ..job::Spec::of_tasks(2) }).await;
    let mut client = Client::new(served.connect().await);
    let mut other = client.clone();
    let second = pb::RegisterTaskRequest { incarnation: 34, source_task_id: 1 };
    let (first, second) = tokio::join!(client.register_task(register()), other.register_task(second));
    first.and(second).expect("registered");
    served.backend.depose();
    let mut last = Request::new(pb::PollForErrorRequest { incarnations: incarnations(), source_task_id: 0 });
    last.metadata_mut().insert("grpc-previous-rpc-attempts", "4".parse().expect("printable"));
    let released = client.poll_for_error(last).await.expect_err("never OK");
    assert_eq!(released.code(), Code::Cancelled);
    served.backend.elect();
    let report = pb::ReportErrorToServiceRequest {
        incarnations: incarnations(),
        source_task_id: 1,
        error_code: 13,
        error_message: "boom".to_owned(),
    };
    client.report_error_to_service(report).await.expect("reported");
    // It hears of errors in no other way.
    let told = tripod_wait::until_async("the error to be told", || {
        let mut client = client.clone();
        async move { client.heartbeat(beat()).await.err() }
    });
    let told = told.await;
    assert!(told.message().contains("boom"), "{}", told.message());
}

#[tokio::test(start_paused = true)]
async fn stopping_does_not_wait_for_held_calls() {
    let served = Served::with_tasks(1).await;
    let mut client = Client::new(served.connect().await);
    let held = tokio::spawn(async move { client.get_key_value(get("missing")).await });
    until("the get waits", || served.gateway.waiting_calls() == 1).await;
    served.stop().await;
    held.abort();
}

#[test]
fn the_readme_has_every_call() {
    let readme =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).expect("a README");
    let ours = [
        ("xla.coordination.CoordinationService/", "N", 15),
        ("tensorflow.CoordinationService/", "T", 15),
        ("xla.DistributedRuntimeService/", "L", 7),
    ];
    for (service, letter, fewest) in ours {
        let schema = Schema::load();
        let methods: Vec<&str> =
            schema.methods.keys().filter_map(|path| path.strip_prefix(service)).collect();
        assert!(methods.len() >= fewest, "the descriptors have the service");
        for method in methods {
            let begin = format!("| `{method}` |");
            let mut rows = readme.lines().filter(|line| line.starts_with(&begin));
            let has_letter =
                |row: &str| row.split('|').nth(2).is_some_and(|dialects| dialects.contains(letter));
            assert!(rows.any(has_letter), "README.md has no row for {method} of dialect {letter}");
        }
    }
}

/// A job that gives up after 10 s, of one task that has registered over a connection of its own.
async fn registered_over_a_connection() -> (Served, Client<tonic::transport::Channel>) {
    let served = Served::start(Options { grace: DurationMs(0), ..Options::default() }).await;
    served.raise().await;
    let spec = job::Spec { heartbeat_timeout_ms: DurationMs(10_000), ..job::Spec::of_tasks(1) };
    served.create(spec).await;
    let mut client = Client::new(served.connect().await);
    client.register_task(register()).await.expect("registered");
    (served, client)
}

fn is_connected(served: &Served) -> bool {
    served.backend.state().jobs()[0].tasks_connected == 1
}

#[tokio::test(start_paused = true)]
async fn n1_a_connection_stands_for_its_task_until_the_first_heartbeat_says_when_the_next_one_comes() {
    let (served, mut client) = registered_over_a_connection().await;
    tokio::time::sleep(Duration::from_secs(500)).await;
    assert!(is_connected(&served), "its program gives up after 1,000 s");
    let mut first = Request::new(beat());
    first.set_timeout(Duration::from_secs(500));
    client.heartbeat(first).await.expect("alive");
    tokio::time::sleep(Duration::from_secs(990)).await;
    assert!(is_connected(&served));
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(!is_connected(&served), "the connection does not stand for it any more");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_closes_its_connection_before_its_first_heartbeat_is_lost_after_its_jobs_timeout() {
    let (served, client) = registered_over_a_connection().await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    drop(client);
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert!(is_connected(&served));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!is_connected(&served));
}
