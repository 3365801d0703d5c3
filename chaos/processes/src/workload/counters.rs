//! Counters over dialects N and T: increments as a client behind an agent makes them, with a stamp and repeated
//! until they are answered; and as a direct client makes them, once, or repeated without a mark, after which
//! nobody knows how often they counted.

use std::time::Duration;

use bytes::Bytes;
use rand::RngExt as _;
use rand::rngs::StdRng;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::Request;
use tonic::metadata::AsciiMetadataValue;
use tripod_calls::Way;
use tripod_proto::metadata::STAMP;
use tripod_proto::tensorflow as t;
use tripod_proto::tensorflow::coordination_service_client::CoordinationServiceClient as DialectT;
use tripod_proto::tripod::v1::OpenSessionRequest;
use tripod_proto::tripod::v1::sessions_client::SessionsClient;
use tripod_proto::xla::coordination as n;
use tripod_proto::xla::coordination::coordination_service_client::CoordinationServiceClient as DialectN;

use super::dialect::Dialect;
use super::registers::life;
use super::setting::Setting;
use super::wire::{Attempt, Wire};
use tripod_checkers::history::{Call, ClientId, Key, Outcome, Reply, Sequence, SessionId, Stamp};

const CLIENTS: usize = 3;
const REST_MAX_MS: u64 = 100;
/// How long one attempt may take.
const LIMIT: Duration = Duration::from_secs(3);
/// How long a stamped call is repeated.
const PATIENCE: Duration = Duration::from_secs(40);
/// Pause between two attempts.
const AGAIN_PAUSE: Duration = Duration::from_millis(50);
/// Counters of each kind.
const COUNTERS: u64 = 2;
const INCREMENT_MAX: i64 = 9;
/// Of a hundred increments without a stamp that were not answered, how many are sent once more.
const AGAIN_PERCENT: u32 = 40;

struct Client {
    setting: Setting,
    id: ClientId,
    random: StdRng,
    wire: Wire,
    session: Option<SessionId>,
    sequence: u64,
}

pub(super) fn start(setting: &Setting, clients: &mut JoinSet<()>) {
    for _ in 0..CLIENTS {
        let id = setting.client_id();
        let mut random = setting.random(id);
        let wire = Wire::new(setting, &mut random);
        let client = Client { setting: setting.clone(), id, random, wire, session: None, sequence: 0 };
        clients.spawn(client.run());
    }
}

impl Client {
    async fn run(mut self) {
        while self.setting.goes_on() {
            let which = self.random.random_range(0..COUNTERS);
            match self.random.random_range(0..100) {
                0..55 => self.stamped(Key::from(format!("counter/stamped/{which}"))).await,
                55..75 => self.plain(Key::from(format!("counter/plain/{which}"))).await,
                75..88 => self.read(Key::from(format!("counter/stamped/{which}"))).await,
                _ => self.read(Key::from(format!("counter/plain/{which}"))).await,
            }
            self.setting.rest(&mut self.random, REST_MAX_MS).await;
        }
    }

    /// Repeats the increment with one stamp until the cluster says what came of it.
    async fn stamped(&mut self, counter: Key) {
        let Some(session) = self.session().await else { return };
        self.sequence += 1;
        let stamp = Stamp { session, sequence: Sequence(self.sequence) };
        let by = self.random.random_range(1..=INCREMENT_MAX);
        let call = Call::Increment { counter: counter.clone(), by, stamp: Some(stamp) };
        let pending = self.setting.invoke(self.id, call).by_node(self.wire.node());
        let deadline = Instant::now() + PATIENCE;
        let mut maybe = None;
        // A stamp is one command's: a call goes on in the dialect that it began in, as an agent's does.
        let dialect = Dialect::draw(&mut self.random);
        let outcome = loop {
            match self.increment(dialect, &counter, by, Some(stamp)).await {
                Attempt::NotExecuted(why) if why.contains("session") => {
                    self.session = None;
                    break maybe.map_or(Outcome::Fail(why), Outcome::Unknown);
                }
                Attempt::NotExecuted(why) if Instant::now() >= deadline => {
                    break maybe.map_or(Outcome::Fail(why), Outcome::Unknown);
                }
                Attempt::Unknown(why) if Instant::now() >= deadline => break Outcome::Unknown(why),
                Attempt::Unknown(why) => maybe = Some(why),
                Attempt::NotExecuted(_) => {}
                answered => break answered.outcome(number, |_| None),
            }
            pending.again();
            tokio::time::sleep(AGAIN_PAUSE).await;
        };
        self.setting.complete(pending, outcome);
    }

    async fn plain(&mut self, counter: Key) {
        let by = self.random.random_range(1..=INCREMENT_MAX);
        let call = Call::Increment { counter: counter.clone(), by, stamp: None };
        let pending = self.setting.invoke(self.id, call).by_node(self.wire.node());
        let dialect = Dialect::draw(&mut self.random);
        let outcome = match self.increment(dialect, &counter, by, None).await {
            Attempt::Unknown(why) if self.random.random_range(0..100) < AGAIN_PERCENT => {
                pending.again();
                let dialect = Dialect::draw(&mut self.random);
                self.increment(dialect, &counter, by, None).await;
                Outcome::Unknown(why)
            }
            attempt => attempt.outcome(number, |_| None),
        };
        self.setting.complete(pending, outcome);
    }

    async fn read(&mut self, counter: Key) {
        let call = Call::ReadCounter { counter: counter.clone() };
        let pending = self.setting.invoke(self.id, call).by_node(self.wire.node());
        let dialect = Dialect::draw(&mut self.random);
        let outcome = read(&mut self.wire, &self.setting, dialect, &counter).await;
        self.setting.complete(pending, outcome);
    }

    /// One attempt. Tells the new value.
    async fn increment(
        &mut self,
        dialect: Dialect,
        counter: &Key,
        by: i64,
        stamp: Option<Stamp>,
    ) -> Attempt<Option<Bytes>> {
        let key = counter.to_string();
        match dialect {
            Dialect::N => {
                let incarnations = Some(life(&self.setting));
                let request =
                    stamped(n::IncrementKeyValueRequest { incarnations, key, increment: by }, stamp);
                let call = |way: Way| async move { DialectN::new(way).increment_key_value(request).await };
                self.wire.attempt(LIMIT, call).await.map(|answer| answer.kv.map(|kv| kv.value))
            }
            Dialect::T => {
                let request = stamped(t::IncrementKeyValueRequest { key, increment: by }, stamp);
                let call = |way: Way| async move { DialectT::new(way).increment_key_value(request).await };
                self.wire.attempt(LIMIT, call).await.map(|answer| answer.kv.map(|kv| kv.value))
            }
        }
    }

    /// The session, opened if there is none; `None` if that does not work just now.
    async fn session(&mut self) -> Option<SessionId> {
        if self.session.is_none() {
            let open = |way: Way| async move {
                SessionsClient::new(way).open(OpenSessionRequest { wide: false }).await
            };
            if let Attempt::Answer(opened) = self.wire.attempt(LIMIT, open).await {
                self.session = Some(SessionId(opened.session));
                self.sequence = 0;
            }
        }
        self.session
    }
}

/// What a counter holds. One that nobody has touched does not exist, and is 0.
pub(super) async fn read(wire: &mut Wire, setting: &Setting, dialect: Dialect, counter: &Key) -> Outcome {
    let key = counter.to_string();
    let attempt = match dialect {
        Dialect::N => {
            let request = n::TryGetKeyValueRequest { incarnations: Some(life(setting)), key };
            let call = |way: Way| async move { DialectN::new(way).try_get_key_value(request).await };
            wire.attempt(LIMIT, call).await.map(|answer| answer.kv.map(|kv| kv.value))
        }
        Dialect::T => {
            let request = t::TryGetKeyValueRequest { key };
            let call = |way: Way| async move { DialectT::new(way).try_get_key_value(request).await };
            wire.attempt(LIMIT, call).await.map(|answer| answer.kv.map(|kv| kv.value))
        }
    };
    match attempt {
        Attempt::Refused(status) if status.code() == tonic::Code::NotFound => Outcome::Ok(Reply::Count(0)),
        attempt => attempt.outcome(number, |_| None),
    }
}

fn stamped<M>(message: M, stamp: Option<Stamp>) -> Request<M> {
    let mut request = Request::new(message);
    if let Some(Stamp { session, sequence }) = stamp {
        // Everything before this call has been answered, or given up for good.
        let text = format!("{session}.{sequence}.{sequence}");
        let value = AsciiMetadataValue::try_from(text).expect("digits and points are ASCII");
        request.metadata_mut().insert(STAMP, value);
    }
    request
}

/// What nobody can have counted becomes a number that nobody can have counted.
fn number(value: Option<Bytes>) -> Result<Reply, String> {
    let value = value.ok_or("an answer without a value")?;
    let text = std::str::from_utf8(&value).unwrap_or_default();
    Ok(Reply::Count(text.parse().unwrap_or(i64::MIN)))
}
