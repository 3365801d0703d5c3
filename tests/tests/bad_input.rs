//! Input that no client of ours sends: every port answers or closes, the nodes live, and the state is
//! unchanged.

// The lint's own exception for tests ends at `#[test]`; all of this file is one.
#![allow(clippy::unwrap_used)]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use tonic::Code;
use tonic::transport::{Channel, Endpoint};
use tripod_client::{Client, Condition, Consistency, Error, wire};
use tripod_processes::cluster::connections::listening_ports;
use tripod_processes::cluster::{Cluster, ClusterOptions};
use tripod_proto::raw::RawCodec;
use tripod_proto::xla::coordination as n;
use tripod_tests::jobs::{self, Poll};
use tripod_wait::until;

/// The limits of keys and values, as documented.
const KEY_BYTES_MAX: usize = 64 << 10;
const VALUE_BYTES_MAX: usize = 62 << 20;
/// How long a port may take to answer or close.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A cluster with one key in its default job.
struct Fixture {
    cluster: Cluster,
    client: Client,
}

impl Fixture {
    async fn set_up() -> Self {
        let cluster = Cluster::start(ClusterOptions::tripod().unwrap()).await.unwrap();
        let client = jobs::client(&cluster.endpoints()).unwrap();
        client.kv("").put("kept", "yes".into(), Condition::CreateOnly).await.unwrap();
        Self { cluster, client }
    }

    /// Every node runs, serves, and has the one key and no other.
    async fn unharmed(&mut self) {
        assert_eq!(self.cluster.running(), [1, 2, 3]);
        for endpoint in self.cluster.endpoints() {
            let one = jobs::client(&[endpoint]).unwrap();
            let found = one.kv("").get("kept", Consistency::Linearizable).await.unwrap();
            let found = found.expect("an acknowledged key");
            assert_eq!((&found.value[..], found.version), (&b"yes"[..], 1));
            let listed = one.kv("").list("", "", 0, true).await.unwrap();
            assert_eq!(listed.entries.len(), 1, "{listed:?}");
        }
    }
}

/// On one cluster, of which each look says that it is unharmed.
#[tokio::test(flavor = "multi_thread")]
async fn what_no_client_of_ours_sends_is_refused_and_changes_nothing() {
    let mut fixture = Fixture::set_up().await;
    illegal_jobs_are_refused_with_the_reason(&mut fixture).await;
    truncated_messages_are_refused(&mut fixture).await;
    keys_and_values_beyond_the_limits_are_refused(&mut fixture).await;
    jax_clients_are_held_to_the_same_limits(&mut fixture).await;
    garbage_on_every_port_changes_nothing(&mut fixture).await;
}

/// Bytes of many kinds: nothing, text, random-looking, other protocols, and broken HTTP/2.
fn garbage() -> Vec<Vec<u8>> {
    let frame = |length: u32, kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let mut bytes = PREFACE.to_vec();
        bytes.extend_from_slice(&length.to_be_bytes()[1..]);
        bytes.extend([kind, flags]);
        bytes.extend(stream.to_be_bytes());
        bytes.extend_from_slice(payload);
        bytes
    };
    let noise = (0_u32..65_536).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8);
    vec![
        Vec::new(),
        b"\n".to_vec(),
        b"GET / HTTP/1.1\r\nHost: ".repeat(2_000),
        noise.collect(),
        vec![0; 100_000],
        vec![0xff; 100_000],
        vec![0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3],
        PREFACE[..10].to_vec(),
        PREFACE.to_vec(),
        frame(0xff_ffff, 0, 0, 1, b"a frame that never comes"),
        frame(8, 1, 4, 1, &[0xff; 8]),
        frame(4, 9, 0, 1, &[0x82; 4]),
        frame(6, 4, 0, 0, &[0, 4, 0xff, 0xff, 0xff, 0xff]),
        frame(8, 7, 0, 0, &[0xff; 8]),
    ]
}

/// Sends the bytes and reads until the port closes, or falls silent, which is its right.
fn send(port: u16, bytes: &[u8]) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(ANSWER_LIMIT)).unwrap();
    stream.set_write_timeout(Some(ANSWER_LIMIT)).unwrap();
    // A port that closes in the middle has understood enough.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
}

async fn garbage_on_every_port_changes_nothing(fixture: &mut Fixture) {
    let spec = jobs::spec(2, Duration::from_secs(10), Poll::Release).unwrap();
    jobs::create(&fixture.client, "noisy", &spec).await.unwrap();
    let addresses = jobs::addresses(&fixture.client, "noisy", 3).await.unwrap();
    let mut senders = Vec::new();
    for (node, address) in fixture.cluster.ids().zip(&addresses) {
        let (pid, port) = (fixture.cluster.process(node).unwrap().pid(), jobs::port_of(address).unwrap());
        // Each node opens it by itself.
        let open = || Some(listening_ports(pid).unwrap()).filter(|ports| ports.contains(&port));
        let ports = until(format!("node {node} to listen on {port}"), open).await;
        assert!(ports.len() >= 4, "client, peer, http and job ports: {ports:?}");
        for port in ports {
            for bytes in garbage() {
                senders.push(tokio::task::spawn_blocking(move || send(port, &bytes)));
            }
        }
    }
    for sender in senders {
        sender.await.unwrap();
    }
    fixture.unharmed().await;
}

async fn truncated_messages_are_refused(fixture: &mut Fixture) {
    // Field 1, length-delimited, 100 bytes; and then only three of them.
    let truncated: &[u8] = &[0x0a, 100, b'a', b'b', b'c'];
    for path in [
        "/xla.coordination.CoordinationService/RegisterTask",
        "/xla.coordination.CoordinationService/InsertKeyValue",
        "/xla.coordination.CoordinationService/Barrier",
        "/tensorflow.CoordinationService/RegisterTask",
        "/tensorflow.CoordinationService/InsertKeyValue",
        "/tripod.v1.Kv/Put",
        "/tripod.v1.Jobs/Create",
    ] {
        let mut grpc = tonic::client::Grpc::new(channel(&fixture.cluster.endpoints()[0]).await);
        grpc.ready().await.unwrap();
        let request = tonic::Request::new(truncated.into());
        let answer = grpc.unary(request, path.parse().unwrap(), RawCodec).await;
        let status = answer.expect_err(path);
        // Unknown paths would be UNIMPLEMENTED, dead nodes UNAVAILABLE: neither shows anything.
        assert!(matches!(status.code(), Code::Internal | Code::InvalidArgument), "{path}: {status}");
    }
    fixture.unharmed().await;
}

async fn keys_and_values_beyond_the_limits_are_refused(fixture: &mut Fixture) {
    let kv = fixture.client.kv("");
    let long = "k".repeat(KEY_BYTES_MAX + 1);
    for (key, value) in [(long.as_str(), 1), ("big", VALUE_BYTES_MAX + 1)] {
        let refused = kv.put(key, vec![7; value].into(), Condition::Always).await.unwrap_err();
        assert!(matches!(refused, Error::Refused { code: Code::ResourceExhausted, .. }), "{refused}");
    }
    fixture.unharmed().await;
}

async fn jax_clients_are_held_to_the_same_limits(fixture: &mut Fixture) {
    let endpoint = &fixture.cluster.endpoints()[1];
    let mut service = n::coordination_service_client::CoordinationServiceClient::new(channel(endpoint).await);
    let job = fixture.client.jobs().get("default").await.unwrap().expect("job default");
    let incarnations =
        Some(n::Incarnations { service_incarnation: job.service_incarnation, ..n::Incarnations::default() });
    for (key, value) in [("k".repeat(KEY_BYTES_MAX + 1), 1), ("big".to_owned(), VALUE_BYTES_MAX + 1)] {
        let pair = Some(n::KeyValueEntry { key, value: vec![7; value].into() });
        let request = n::InsertKeyValueRequest { incarnations, kv: pair, ..Default::default() };
        let refused = service.insert_key_value(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    }
    fixture.unharmed().await;
}

async fn illegal_jobs_are_refused_with_the_reason(fixture: &mut Fixture) {
    let good = wire::JobSpec { tasks: 2, ..wire::JobSpec::default() };
    let empty = wire::JobSpec { tasks: 0, ..wire::JobSpec::default() };
    let endless = wire::JobSpec { tasks: 2, heartbeat_timeout_ms: u64::MAX, ..wire::JobSpec::default() };
    let long = "a".repeat(64);
    for (name, spec) in [
        ("", &good),
        ("Upper", &good),
        ("with space", &good),
        ("-first", &good),
        ("sl/ash", &good),
        ("emoji-\u{1f600}", &good),
        (long.as_str(), &good),
        ("empty", &empty),
        ("endless", &endless),
    ] {
        let refused = fixture.client.jobs().create(name, spec).await.unwrap_err();
        let Error::Refused { code, message, .. } = refused else { panic!("{name}: {refused}") };
        assert!(matches!(code, Code::InvalidArgument | Code::ResourceExhausted), "{name}: {code}: {message}");
        assert!(!message.is_empty());
    }
    let names: Vec<String> =
        fixture.client.jobs().list().await.unwrap().into_iter().map(|job| job.name).collect();
    assert_eq!(names, ["default"]);
    fixture.unharmed().await;
}

async fn channel(endpoint: &str) -> Channel {
    Endpoint::from_shared(format!("http://{endpoint}")).unwrap().connect().await.unwrap()
}
