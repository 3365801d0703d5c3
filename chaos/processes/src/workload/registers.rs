//! Registers: every way in which the wire reads and writes a key, on the same few keys.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use rand::RngExt as _;
use rand::rngs::StdRng;
use tokio::task::JoinSet;
use tonic::Code;
use tripod_calls::Way;
use tripod_client::{Condition, Consistency, Kv};
use tripod_proto::tensorflow as t;
use tripod_proto::tensorflow::coordination_service_client::CoordinationServiceClient as DialectT;
use tripod_proto::tripod::v1::kv_client::KvClient;
use tripod_proto::tripod::v1::{GetRequest, PutRequest};
use tripod_proto::xla::coordination as n;
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient as DialectN;

use super::setting::Setting;
use super::wire::{Attempt, Wire, outcome_of};
use tripod_checkers::history::{
    Call, ClientId, Found, Key, LogIndex, Outcome, Refusal, Reply, Value, Version,
};

const CLIENTS: usize = 6;
/// Rest between two calls of a client, so that a history stays small enough to be checked.
const REST_MAX_MS: u64 = 60;
/// How long one attempt may take.
const LIMIT: Duration = Duration::from_secs(5);
/// Keys that are in use at the same time.
const KEYS: u64 = 4;
/// Calls until other keys are used: many unknown outcomes of one key are too much for any checker.
const CALLS_PER_KEYS: u64 = 400;

struct Client {
    setting: Setting,
    id: ClientId,
    random: StdRng,
    wire: Wire,
    library: Kv,
    /// What this client last saw of a key.
    versions: BTreeMap<Key, Version>,
    calls: Arc<AtomicU64>,
}

pub(super) fn start(setting: &Setting, clients: &mut JoinSet<()>) {
    let calls = Arc::new(AtomicU64::new(0));
    for _ in 0..CLIENTS {
        let id = setting.client_id();
        let mut random = setting.random(id);
        let client = Client {
            setting: setting.clone(),
            id,
            wire: Wire::also_by_agents(setting, &mut random),
            library: setting.library(&mut random).kv(""),
            random,
            versions: BTreeMap::new(),
            calls: Arc::clone(&calls),
        };
        clients.spawn(client.run());
    }
}

impl Client {
    async fn run(mut self) {
        while self.setting.goes_on() {
            let key = self.key();
            let call = self.draw(key.clone());
            let pending = self.setting.invoke(self.id, call.clone());
            let is_of_library_only = self.wire.is_at_agent() && matches!(call, Call::CompareAndSet { .. });
            let (pending, outcome) = if self.random.random_bool(0.5) || is_of_library_only {
                (pending, self.by_library(&call).await)
            } else {
                (pending.by_node(self.wire.node()), self.by_wire(&call).await)
            };
            self.remember(key, &outcome);
            self.setting.complete(pending, outcome);
            self.setting.rest(&mut self.random, REST_MAX_MS).await;
        }
    }

    fn key(&mut self) -> Key {
        let group = self.calls.fetch_add(1, Ordering::Relaxed) / CALLS_PER_KEYS;
        let key = group * KEYS + self.random.random_range(0..KEYS);
        Key::from(format!("register/{key}"))
    }

    fn draw(&mut self, key: Key) -> Call {
        let value = Value(self.setting.fresh());
        match self.random.random_range(0..100) {
            0..35 => Call::Read { key },
            35..55 => Call::Write { key, value },
            55..70 => Call::Insert { key, value },
            70..95 => {
                let expected = self.versions.get(&key).copied().unwrap_or_default();
                Call::CompareAndSet { key, expected, value }
            }
            _ => Call::Delete { key },
        }
    }

    fn remember(&mut self, key: Key, outcome: &Outcome) {
        let version = match outcome {
            Outcome::Ok(Reply::Written { version, .. }) => *version,
            Outcome::Ok(Reply::Value(Some(found))) => found.version,
            Outcome::Ok(Reply::Value(None) | Reply::Done) => Some(Version(0)),
            _ => None,
        };
        if let Some(version) = version {
            self.versions.insert(key, version);
        }
    }

    /// By the client library: stamped, and repeated until it is answered.
    async fn by_library(&self, call: &Call) -> Outcome {
        let put = |key: &Key, value: Value, condition| {
            let (library, key) = (self.library.clone(), key.clone());
            async move {
                match library.put(key.as_str(), text(value), condition).await {
                    Ok(written) => Outcome::Ok(written_as(written.version, written.index)),
                    Err(error) => outcome_of(&error),
                }
            }
        };
        match call {
            Call::Write { key, value } => put(key, *value, Condition::Always).await,
            Call::Insert { key, value } => put(key, *value, Condition::CreateOnly).await,
            Call::CompareAndSet { key, expected, value } => {
                put(key, *value, Condition::Version(expected.0)).await
            }
            Call::Delete { key } => match self.library.delete(key.as_str()).await {
                Ok(_) => Outcome::Ok(Reply::Done),
                Err(error) => outcome_of(&error),
            },
            _ => match self.library.get(key_of(call), Consistency::Linearizable).await {
                Ok(None) => Outcome::Ok(Reply::Value(None)),
                Ok(Some(entry)) => found(&entry.value, Some((entry.version, entry.modified_index)))
                    .map_or_else(Outcome::Unknown, Outcome::Ok),
                Err(error) => outcome_of(&error),
            },
        }
    }

    /// By one attempt at one node, in the protocol that chance decides.
    async fn by_wire(&mut self, call: &Call) -> Outcome {
        let dialect = self.random.random_range(usize::from(self.wire.is_at_agent())..3);
        match (call, dialect) {
            (Call::CompareAndSet { key, expected, value }, _) => {
                self.put(PutRequest { expected_version: Some(expected.0), ..put(key, *value) }).await
            }
            (Call::Write { key, value }, 0) => self.put(put(key, *value)).await,
            (Call::Insert { key, value }, 0) => {
                self.put(PutRequest { create_only: true, ..put(key, *value) }).await
            }
            (Call::Write { key, value }, 1) => self.insert_n(key, *value, true).await,
            (Call::Insert { key, value }, 1) => self.insert_n(key, *value, false).await,
            (Call::Write { key, value }, _) => self.insert_t(key, *value, true).await,
            (Call::Insert { key, value }, _) => self.insert_t(key, *value, false).await,
            (Call::Read { key }, 0) => self.get(key).await,
            (Call::Read { key }, 1) => self.get_n(key).await,
            (Call::Read { key }, _) => self.get_t(key).await,
            (Call::Delete { key }, _) => self.delete_t(key).await,
            _ => Outcome::Fail("registers have no such call".to_owned()),
        }
    }

    async fn put(&mut self, request: PutRequest) -> Outcome {
        let call = |way: Way| async move { KvClient::new(way).put(request).await };
        let attempt = self.wire.attempt(LIMIT, call).await;
        attempt.outcome(
            |answer| Ok(written_as(answer.version, answer.index)),
            |status| match status.code() {
                Code::AlreadyExists => Some(Refusal::Exists),
                Code::FailedPrecondition => Some(Refusal::VersionMismatch { current: None }),
                _ => None,
            },
        )
    }

    async fn get(&mut self, key: &Key) -> Outcome {
        let request = GetRequest { key: key.to_string(), ..GetRequest::default() };
        let call = |way: Way| async move { KvClient::new(way).get(request).await };
        let attempt = self.wire.attempt(LIMIT, call).await;
        let told = |answer: tripod_proto::tripod::v1::GetResponse| match answer.found {
            true => found(&answer.value, Some((answer.version, answer.modified_index))),
            false => Ok(Reply::Value(None)),
        };
        attempt.outcome(told, |_| None)
    }

    async fn insert_n(&mut self, key: &Key, value: Value, allow_overwrite: bool) -> Outcome {
        let kv = n::KeyValueEntry { key: key.to_string(), value: text(value) };
        let request = n::InsertKeyValueRequest {
            incarnations: Some(life(&self.setting)),
            kv: Some(kv),
            allow_overwrite,
        };
        let call = |way: Way| async move { DialectN::new(way).insert_key_value(request).await };
        inserted(self.wire.attempt(LIMIT, call).await)
    }

    async fn insert_t(&mut self, key: &Key, value: Value, allow_overwrite: bool) -> Outcome {
        let kv = t::KeyValueEntry { key: key.to_string(), value: text(value) };
        let request = t::InsertKeyValueRequest { kv: Some(kv), allow_overwrite };
        let call = |way: Way| async move { DialectT::new(way).insert_key_value(request).await };
        inserted(self.wire.attempt(LIMIT, call).await)
    }

    async fn get_n(&mut self, key: &Key) -> Outcome {
        let request =
            n::TryGetKeyValueRequest { incarnations: Some(life(&self.setting)), key: key.to_string() };
        let call = |way: Way| async move { DialectN::new(way).try_get_key_value(request).await };
        got(self.wire.attempt(LIMIT, call).await, |answer| answer.kv.map(|kv| kv.value))
    }

    async fn get_t(&mut self, key: &Key) -> Outcome {
        let request = t::TryGetKeyValueRequest { key: key.to_string() };
        let call = |way: Way| async move { DialectT::new(way).try_get_key_value(request).await };
        got(self.wire.attempt(LIMIT, call).await, |answer| answer.kv.map(|kv| kv.value))
    }

    async fn delete_t(&mut self, key: &Key) -> Outcome {
        let request = t::DeleteKeyValueRequest { key: key.to_string(), is_directory: false };
        let call = |way: Way| async move { DialectT::new(way).delete_key_value(request).await };
        self.wire.attempt(LIMIT, call).await.outcome(|_| Ok(Reply::Done), |_| None)
    }
}

/// What dialect N wants to know of its caller, in job `default`.
pub(super) fn life(setting: &Setting) -> n::Incarnations {
    n::Incarnations { task_id: 0, task_incarnation: 1, service_incarnation: setting.service }
}

/// A read of dialects N and T: a key that does not exist is refused.
pub(super) fn got<T>(attempt: Attempt<T>, value: impl FnOnce(T) -> Option<Bytes>) -> Outcome {
    match attempt {
        Attempt::Refused(status) if status.code() == Code::NotFound => Outcome::Ok(Reply::Value(None)),
        other => {
            other.outcome(|answer| found(&value(answer).ok_or("an answer without a value")?, None), |_| None)
        }
    }
}

fn inserted<T>(attempt: Attempt<T>) -> Outcome {
    attempt.outcome(
        |_| Ok(Reply::Written { version: None, index: None }),
        |status| (status.code() == Code::AlreadyExists).then_some(Refusal::Exists),
    )
}

fn put(key: &Key, value: Value) -> PutRequest {
    PutRequest { key: key.to_string(), value: text(value), ..PutRequest::default() }
}

fn key_of(call: &Call) -> &str {
    match call {
        Call::Read { key }
        | Call::Write { key, .. }
        | Call::Insert { key, .. }
        | Call::CompareAndSet { key, .. }
        | Call::Delete { key } => key.as_str(),
        _ => "",
    }
}

pub(super) fn text(value: Value) -> Bytes {
    Bytes::from(value.to_string())
}

fn written_as(version: u64, index: u64) -> Reply {
    Reply::Written { version: Some(Version(version)), index: Some(LogIndex(index)) }
}

/// A value as it was read, with version and index if they were told.
///
/// # Errors
/// The bytes are none that a client of ours wrote.
pub(super) fn found(bytes: &[u8], told: Option<(u64, u64)>) -> Result<Reply, String> {
    let number = std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
    // A value that nobody wrote: no checker may overlook it.
    let value = Value(number.unwrap_or(u64::MAX));
    let (version, index) = (told.map(|told| Version(told.0)), told.map(|told| LogIndex(told.1)));
    Ok(Reply::Value(Some(Found { value, version, index })))
}
