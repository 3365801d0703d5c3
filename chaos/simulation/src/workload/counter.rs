//! Increments that must count once: each has a stamp, and is sent with it until there is an answer.

use std::time::Duration;

use rand::RngExt as _;
use tonic::Code;
use tripod_proto::metadata;
use tripod_proto::tripod::v1::sessions_client::SessionsClient;
use tripod_proto::tripod::v1::{JobSpec, OpenSessionRequest};
use tripod_proto::xla::coordination as n;
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient;

use crate::client::{Answer, Client, to_job};
use tripod_checkers::history::{Call, Key, Outcome, Reply, Sequence, SessionId, Stamp};

const JOB: &str = "counters";
const COUNTERS: u32 = 2;
/// How long an increment is repeated.
const PATIENCE: Duration = Duration::from_secs(12);

/// One client and its session.
struct Counting {
    client: Client,
    service: u64,
    session: SessionId,
    sequence: Sequence,
}

pub(super) async fn run(mut client: Client) {
    let service = client.job(JOB, JobSpec { tasks: 1, ..JobSpec::default() }).await;
    let session = open(&mut client).await;
    let mut counting = Counting { client, service, session, sequence: Sequence(0) };
    while !counting.client.done() {
        let counter = key(counting.client.dice.random_range(0..COUNTERS));
        if counting.client.dice.random_ratio(2, 3) {
            counting.increment(counter).await;
        } else {
            counting.read(counter).await;
        }
        counting.client.pause(250).await;
    }
    for counter in 0..COUNTERS {
        counting.read(key(counter)).await;
    }
}

fn key(counter: u32) -> Key {
    Key::from(format!("c/{counter}"))
}

async fn open(client: &mut Client) -> SessionId {
    loop {
        let mut sessions = SessionsClient::new(client.channel());
        let opened = client.ask(async move { sessions.open(OpenSessionRequest { wide: false }).await }).await;
        match opened {
            Answer::Yes(opened) => return SessionId(opened.session),
            _ => client.pause(200).await,
        }
    }
}

impl Counting {
    async fn increment(&mut self, counter: Key) {
        self.sequence.0 += 1;
        let stamp = Stamp { session: self.session, sequence: self.sequence };
        let by = self.client.dice.random_range(1..=9);
        let call = Call::Increment { counter: counter.clone(), by, stamp: Some(stamp) };
        let service = self.service;
        let increment = async |client: &mut Client| {
            let deadline = tokio::time::Instant::now() + PATIENCE;
            loop {
                let outcome = send(client, service, stamp, &counter, by).await;
                if matches!(outcome, Outcome::Ok(_)) || tokio::time::Instant::now() >= deadline {
                    // What was not executed this time may have been before.
                    return match outcome {
                        Outcome::Fail(why) => Outcome::Unknown(why),
                        outcome => outcome,
                    };
                }
                client.pause(200).await;
            }
        };
        self.client.record(call, increment).await;
    }

    async fn read(&mut self, counter: Key) {
        let service = self.service;
        let call = Call::ReadCounter { counter: counter.clone() };
        let read = async |client: &mut Client| {
            let mut service_n = CoordinationServiceClient::new(client.channel());
            let get = n::TryGetKeyValueRequest { incarnations: life(service), key: counter.to_string() };
            let answer = client.ask(async move { service_n.try_get_key_value(to_job(JOB, get)).await }).await;
            match answer {
                Answer::No(status) if status.code() == Code::NotFound => Outcome::Ok(Reply::Count(0)),
                answer => answer.outcome(|found| counted(found.kv)),
            }
        };
        self.client.record(call, read).await;
    }
}

fn life(service: u64) -> Option<n::Incarnations> {
    Some(n::Incarnations { service_incarnation: service, ..n::Incarnations::default() })
}

fn counted(entry: Option<n::KeyValueEntry>) -> Outcome {
    let text = entry.map(|entry| String::from_utf8_lossy(&entry.value).into_owned()).unwrap_or_default();
    match text.parse() {
        Ok(count) => Outcome::Ok(Reply::Count(count)),
        Err(_) => Outcome::Fail(format!("{text:?} is no count")),
    }
}

async fn send(client: &mut Client, service: u64, stamp: Stamp, counter: &Key, by: i64) -> Outcome {
    let mut service_n = CoordinationServiceClient::new(client.channel());
    let increment =
        n::IncrementKeyValueRequest { incarnations: life(service), key: counter.to_string(), increment: by };
    let mut request = to_job(JOB, increment);
    // The replies of all earlier increments have been waited for, or never will be.
    let (session, sequence) = (stamp.session, stamp.sequence);
    let stamped = format!("{session}.{sequence}.{sequence}");
    request.metadata_mut().insert(metadata::STAMP, stamped.parse().expect("three numbers"));
    let answer = client.ask(async move { service_n.increment_key_value(request).await }).await;
    answer.outcome(|incremented| counted(incremented.kv))
}
