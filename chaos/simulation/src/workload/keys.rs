//! Registers: half of the clients speak `tripod.v1`, the others dialect N.

use std::time::Duration;

use bytes::Bytes;
use rand::RngExt as _;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tripod_proto::tripod::v1::kv_client::KvClient;
use tripod_proto::tripod::v1::{GetRequest, JobSpec, PutRequest};
use tripod_proto::xla::coordination as n;
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient;
use tripod_state::ids;

use crate::client::{Answer, Client, to_job};
use crate::invariant::acknowledged_work::Written;
use tripod_checkers::history::{Call, Found, Key, LogIndex, Outcome, Refusal, Reply, Value, Version};

/// The job of the registers.
pub(crate) const JOB: &str = "keys";
const REGISTERS: u32 = 4;

/// One client.
struct Keys {
    client: Client,
    /// The life of the job's service, which dialect N wants in every call.
    service: u64,
    speaks_n: bool,
    written: u64,
}

/// How a call is made.
pub(super) struct Way {
    pub(super) channel: Channel,
    pub(super) patience: Duration,
}

impl Way {
    /// To the node that the client asks now, for as long as a call may take now.
    fn usual(client: &mut Client) -> Self {
        let channel = client.channel();
        Self { channel, patience: client.patience() }
    }
}

pub(super) async fn run(mut client: Client) {
    let service = client.job(JOB, JobSpec { tasks: 1, ..JobSpec::default() }).await;
    let speaks_n = client.id.0 % 2 == 1;
    let mut keys = Keys { client, service, speaks_n, written: 0 };
    while !keys.client.done() {
        keys.step().await;
        keys.client.pause(120).await;
    }
    for register in 0..REGISTERS {
        keys.read(key(register)).await;
    }
}

fn key(register: u32) -> Key {
    Key::from(format!("r/{register}"))
}

/// The number in a value that we wrote; a value that is none of ours is no number of ours either.
fn number(value: &[u8]) -> Value {
    Value(std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX))
}

fn text(value: Value) -> Bytes {
    value.to_string().into_bytes().into()
}

impl Keys {
    async fn step(&mut self) {
        let key = key(self.client.dice.random_range(0..REGISTERS));
        match self.client.dice.random_range(0..10) {
            0..=3 => drop(self.read(key).await),
            4..=6 => {
                let value = self.value();
                self.write(Call::Write { key: key.clone(), value }, &key, value, None).await;
            }
            7 => {
                let value = self.value();
                let key = Key::from(format!("i/{}", self.client.dice.random_range(0..200)));
                self.write(Call::Insert { key: key.clone(), value }, &key, value, Some(Version(0))).await;
            }
            _ if self.speaks_n => drop(self.read(key).await),
            _ => {
                let found = self.read(key.clone()).await;
                let expected = found.and_then(|found| found.version).unwrap_or(Version(0));
                let value = self.value();
                let call = Call::CompareAndSet { key: key.clone(), expected, value };
                self.write(call, &key, value, Some(expected)).await;
            }
        }
    }

    /// A value that nobody else writes.
    fn value(&mut self) -> Value {
        self.written += 1;
        Value(u64::from(self.client.id.0) << 32 | self.written)
    }

    async fn read(&mut self, key: Key) -> Option<Found> {
        let (speaks_n, service) = (self.speaks_n, self.service);
        let call = Call::Read { key: key.clone() };
        let outcome = self
            .client
            .record(call, async |client| {
                if speaks_n {
                    read_n(client, service, &key).await
                } else {
                    let way = Way::usual(client);
                    read_v1(client, way, &key).await
                }
            })
            .await;
        match outcome {
            Outcome::Ok(Reply::Value(found)) => found,
            _ => None,
        }
    }

    /// `expected`: the version that the key must have, if it must have one.
    async fn write(&mut self, call: Call, key: &Key, value: Value, expected: Option<Version>) {
        let (speaks_n, service) = (self.speaks_n, self.service);
        let write = async |client: &mut Client| {
            if speaks_n {
                write_n(client, service, key, value, expected).await
            } else {
                let way = Way::usual(client);
                write_v1(client, way, key, value, expected).await
            }
        };
        self.client.record(call, write).await;
    }
}

pub(super) async fn read_v1(client: &mut Client, way: Way, key: &Key) -> Outcome {
    let mut kv = KvClient::new(way.channel);
    let get = GetRequest { job: JOB.into(), key: key.to_string(), ..GetRequest::default() };
    let answer = client.ask_within(way.patience, async move { kv.get(get).await }).await;
    answer.outcome(|found| {
        let found = found.found.then(|| Found {
            value: number(&found.value),
            version: Some(Version(found.version)),
            index: Some(LogIndex(found.modified_index)),
        });
        Outcome::Ok(Reply::Value(found))
    })
}

pub(super) async fn write_v1(
    client: &mut Client,
    way: Way,
    key: &Key,
    value: Value,
    expected: Option<Version>,
) -> Outcome {
    let mut kv = KvClient::new(way.channel);
    // A key that must not exist can be asked for in two ways.
    let create_only = expected == Some(Version(0)) && value.0.is_multiple_of(2);
    let put = PutRequest {
        job: JOB.into(),
        key: key.to_string(),
        value: text(value),
        create_only,
        expected_version: expected.filter(|_| !create_only).map(|version| version.0),
        stamp: None,
    };
    let answer = client.ask_within(way.patience, async move { kv.put(put).await }).await;
    match answer {
        Answer::No(status) => refused(&status, expected),
        answer => answer.outcome(|put| {
            let written = Written { version: put.version, value: text(value).to_vec() };
            client.witness.acknowledged(key.as_str(), written, ids::LogIndex(put.index));
            let (version, index) = (Some(Version(put.version)), Some(LogIndex(put.index)));
            Outcome::Ok(Reply::Written { version, index })
        }),
    }
}

fn refused(status: &Status, expected: Option<Version>) -> Outcome {
    match (status.code(), expected) {
        (Code::AlreadyExists, _) => Outcome::Ok(Reply::Refused(Refusal::Exists)),
        (Code::FailedPrecondition, Some(Version(0))) => Outcome::Ok(Reply::Refused(Refusal::Exists)),
        (Code::FailedPrecondition, Some(_)) => {
            Outcome::Ok(Reply::Refused(Refusal::VersionMismatch { current: None }))
        }
        _ => Outcome::Fail(format!("{:?}: {}", status.code(), status.message())),
    }
}

fn incarnations(service: u64) -> Option<n::Incarnations> {
    Some(n::Incarnations { service_incarnation: service, ..n::Incarnations::default() })
}

async fn read_n(client: &mut Client, service: u64, key: &Key) -> Outcome {
    let mut service_n = CoordinationServiceClient::new(client.channel());
    let get = n::TryGetKeyValueRequest { incarnations: incarnations(service), key: key.to_string() };
    let answer = client.ask(async move { service_n.try_get_key_value(to_job(JOB, get)).await }).await;
    match answer {
        Answer::No(status) if status.code() == Code::NotFound => Outcome::Ok(Reply::Value(None)),
        answer => answer.outcome(|found| {
            let value = found.kv.map(|entry| number(&entry.value));
            Outcome::Ok(Reply::Value(value.map(|value| Found { value, version: None, index: None })))
        }),
    }
}

async fn write_n(
    client: &mut Client,
    service: u64,
    key: &Key,
    value: Value,
    expected: Option<Version>,
) -> Outcome {
    let mut service_n = CoordinationServiceClient::new(client.channel());
    let insert = n::InsertKeyValueRequest {
        incarnations: incarnations(service),
        kv: Some(n::KeyValueEntry { key: key.to_string(), value: text(value) }),
        allow_overwrite: expected.is_none(),
    };
    let answer = client.ask(async move { service_n.insert_key_value(to_job(JOB, insert)).await }).await;
    match answer {
        Answer::No(status) => refused(&status, expected),
        answer => answer.outcome(|_| Outcome::Ok(Reply::Written { version: None, index: None })),
    }
}
