//! Dynamic clusters: three workers register, learn their ranks when all are there, write and read entries, register once
//! more, and leave together; then the next three come.

use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use prost::Message;
use rand::RngExt as _;
use tokio::time::Instant;
use tripod_checkers::history::{
    Act, Call, ClientId, ClusterNode, ClusterRole, Found, Job, Key, LifeId, NodeName, Rank, Reply, Round,
    Value,
};
use tripod_mindspore::wire::rpc0::Frame;
use tripod_proto::mindspore::topology as pb;

use super::Setting;
use super::scribe::Scribe;
use super::way::{Failure, Way, outcome};
use crate::client::Client;
use crate::witness::now;

pub(super) const JOB: &str = "ms-dynamic";
pub(super) const PORT: u16 = 7711;
const WORKERS: usize = 3;
const SIZE: (u32, u32) = (3, 0);
/// A cluster that is not complete by then has failed, and the next one begins.
const REGISTER_TIMEOUT_MS: u64 = 10_000;
/// The first of the clients, of which each node is one.
const FIRST_CLIENT: u32 = 72;
/// What each worker does until all leave.
const STEPS: usize = 20;
/// Entries that each of them writes, again and again.
const ENTRIES: u64 = 2;
const REST_MAX_MS: u64 = 120;
const PATIENCE: Duration = Duration::from_secs(2);
/// How long everybody may take to come, and to be told so.
const FORM_PATIENCE: Duration = Duration::from_secs(30);
const LEAVE_PATIENCE: Duration = Duration::from_secs(20);
const AGAIN_PAUSE_MS: u64 = 200;
/// What was sent and not answered may be done so much later, but not later still: it would begin the next cluster.
const DONE_LATE: Duration = Duration::from_secs(5);
/// A cluster has all its nodes, or never will.
const INITIALIZED: u32 = 1;
const FAILED: u32 = 2;

/// Which release a cluster is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// Nodes say no address, and go by the rank in the answer to their registration.
    V2_0,
    /// They read their rank when all nodes are there.
    V2_10,
}

pub(super) async fn run(setting: &Setting, mut client: Client) {
    client.job(JOB, super::spec(SIZE, REGISTER_TIMEOUT_MS)).await;
    for round in 1.. {
        let (settled, witness) = (client.settled(), setting.witness.clone());
        // All nodes of a cluster are of one release.
        let dialect = if round % 2 == 1 { Dialect::V2_0 } else { Dialect::V2_10 };
        let gang = (0..WORKERS).zip(FIRST_CLIENT..).map(|(number, id)| {
            let client = client.sibling(ClientId(id));
            Member::new(setting, client, dialect, (round, number))
        });
        if live(gang.collect()).await {
            witness.count("dynamic clusters of MindSpore");
        } else if settled {
            let what = format!("dynamic cluster #{round}: not {FORM_PATIENCE:?} after they came");
            witness.broken(now(), "nodes of MindSpore come together", what);
        }
        if client.done() {
            return;
        }
    }
}

/// One cluster, from its first registration until all have left. Whether all were there: nobody goes on before.
async fn live(mut gang: Vec<Member>) -> bool {
    let formed = join_all(gang.iter_mut().map(Member::come)).await.into_iter().all(|came| came);
    if formed {
        let names: Vec<String> = gang.iter().map(|member| member.name.clone()).collect();
        join_all(gang.iter_mut().map(|member| member.work(&names))).await;
    }
    join_all(gang.iter_mut().map(Member::settle)).await;
    join_all(gang.iter_mut().map(Member::leave)).await;
    formed
}

struct Member {
    client: Client,
    scribe: Scribe,
    name: String,
    dialect: Dialect,
    /// The two connections that each node has.
    control: Way,
    metadata: Way,
    is_registered: bool,
    /// All nodes were there, so that its rank is one for good: a cluster that is not complete in time ends, and who registers
    /// then begins the next one.
    is_formed: bool,
    /// When something was not answered last that may be done later.
    open: Option<Instant>,
    written: u64,
}

impl Member {
    fn new(setting: &Setting, mut client: Client, dialect: Dialect, (round, number): (u64, usize)) -> Self {
        let name = format!("{round}-{number}");
        let node = ClusterNode {
            job: Job::from(JOB),
            round: Round(round),
            name: NodeName::from(name.as_str()),
            role: ClusterRole::Worker,
            life: LifeId(1),
        };
        let scribe = Scribe { witness: setting.witness.clone(), id: client.id, node };
        let place = client.dice.random_range(0..setting.sites.len());
        let way = || Way::new(&setting.sites, PORT, place);
        let (control, metadata) = (way(), way());
        Self {
            client,
            scribe,
            name,
            dialect,
            control,
            metadata,
            is_registered: false,
            is_formed: false,
            open: None,
            written: 0,
        }
    }

    /// Until it has a place, and all others are there.
    async fn come(&mut self) -> bool {
        let deadline = Instant::now() + FORM_PATIENCE;
        while !self.is_registered && Instant::now() < deadline {
            self.is_registered = self.register().await;
            if !self.is_registered {
                self.client.pause(AGAIN_PAUSE_MS).await;
            }
        }
        while self.is_registered && Instant::now() < deadline {
            let told = self.beat().await;
            if told == Some(FAILED) {
                return false;
            }
            if told == Some(INITIALIZED) && self.read_rank().await {
                self.is_formed = true;
                return true;
            }
            self.client.pause(AGAIN_PAUSE_MS).await;
        }
        false
    }

    /// Of 2.0 the answer is the rank; of 2.10 that is read when all are there.
    async fn register(&mut self) -> bool {
        let is_new = self.dialect == Dialect::V2_10;
        let is_final = !is_new && self.is_formed;
        let message = pb::RegistrationMessage {
            node_id: self.name.clone(),
            host_name: "simulated".to_owned(),
            role: "MS_WORKER".to_owned(),
            host_ip: if is_new { "127.0.0.1".to_owned() } else { String::new() },
            device_id: is_new.then_some(u32::MAX),
            ..Default::default()
        };
        let frame = frame(b"0", &message);
        let scribe = self.scribe.clone();
        let made = async {
            let told = ask(&mut self.control, &frame).await;
            if told.as_ref().is_err_and(Failure::is_open) {
                self.open = Some(Instant::now());
            }
            outcome(told.and_then(|told| {
                let told: pb::RegistrationRespMessage = read(told.body)?;
                match (told.success, is_final) {
                    (false, _) => Err(Failure::Refused(told.error_reason)),
                    (true, true) => Ok(Reply::Rank(Rank(told.rank_id))),
                    (true, false) => Ok(Reply::Done),
                }
            }))
        };
        scribe.record(Act::Join, made).await.acknowledged()
    }

    /// Says that it lives; how far its cluster is, if that is answered.
    async fn beat(&mut self) -> Option<u32> {
        let frame = frame(b"2", &pb::HeartbeatMessage { node_id: self.name.clone() });
        let told = ask(&mut self.control, &frame).await.ok()?;
        let told: pb::HeartbeatRespMessage = read(told.body).ok()?;
        Some(told.topo_state)
    }

    /// Whether there is a rank by now.
    async fn read_rank(&mut self) -> bool {
        let frame = asking(&format!("MS_WORKER{}", self.name));
        let (scribe, metadata) = (self.scribe.clone(), &mut self.metadata);
        let made = async {
            outcome(ask(metadata, &frame).await.and_then(|told| {
                let Some(text) = value(told)? else { return Ok(Reply::Value(None)) };
                let rank = String::from_utf8_lossy(&text).parse::<u32>();
                rank.map(|rank| Reply::Rank(Rank(rank)))
                    .map_err(|_| Failure::Unanswered(format!("{text:?} is no rank")))
            }))
        };
        let told = scribe.record(Act::ReadRank, made).await;
        matches!(told.reply(), Some(Reply::Rank(_)))
    }

    async fn work(&mut self, names: &[String]) {
        for _ in 0..STEPS {
            let number = self.client.dice.random_range(0..ENTRIES);
            match self.client.dice.random_range(0..10) {
                0..4 => {
                    let entry = entry(&self.name, number);
                    self.write(&entry).await;
                    self.read(&entry).await;
                }
                4..7 => {
                    let whose = &names[self.client.dice.random_range(0..names.len())];
                    self.read(&entry(whose, number)).await;
                }
                7 => {
                    // As after a connection that broke.
                    self.control.move_on();
                    self.register().await;
                    self.read_rank().await;
                }
                _ => {
                    self.beat().await;
                }
            }
            self.client.pause(REST_MAX_MS).await;
        }
    }

    /// Each entry has one writer: a scheduler may do twice what it does not know to be done.
    async fn write(&mut self, entry: &str) {
        self.written += 1;
        let number = (u64::from(self.client.id.0) << 32) | (self.scribe.node.round.0 << 16) | self.written;
        let message = pb::MetadataMessage { name: entry.to_owned(), value: Bytes::from(number.to_string()) };
        let (written, behind) = (frame(b"6", &message), asking(entry));
        let metadata = &mut self.metadata;
        let made = async {
            if let Err(failure) = metadata.say(PATIENCE, &written).await {
                return outcome(Err(failure));
            }
            // It was durable before the read behind it on the same connection was answered, whatever that found.
            let told = ask(metadata, &behind).await;
            let told = told.map_err(|failure| Failure::Unanswered(format!("{failure:?}")));
            outcome(told.map(|_| Reply::Written { version: None, index: None }))
        };
        let call = Call::Write { key: key(entry), value: Value(number) };
        self.scribe.witness.record(self.client.id, call, made).await;
    }

    async fn read(&mut self, entry: &str) {
        let (frame, metadata) = (asking(entry), &mut self.metadata);
        let made = async {
            outcome(ask(metadata, &frame).await.and_then(|told| {
                let found = |text: Bytes| {
                    // What nobody wrote becomes a value that nobody wrote, which the checker tells.
                    let value = String::from_utf8_lossy(&text).parse().unwrap_or(u64::MAX);
                    Found { value: Value(value), version: None, index: None }
                };
                Ok(Reply::Value(value(told)?.map(found)))
            }))
        };
        let call = Call::Read { key: key(entry) };
        self.scribe.witness.record(self.client.id, call, made).await;
    }

    /// Waits until nothing that it has sent can be done any more.
    async fn settle(&mut self) {
        while self.open.is_some_and(|open| open.elapsed() < DONE_LATE) {
            self.beat().await;
            self.client.pause(AGAIN_PAUSE_MS).await;
        }
    }

    /// Who has no place has none to leave.
    async fn leave(&mut self) {
        let deadline = Instant::now() + LEAVE_PATIENCE;
        let frame = frame(b"1", &pb::UnregistrationMessage { node_id: self.name.clone() });
        // Any answer will do: that it has left, or that its cluster was never complete.
        while self.is_registered && Instant::now() < deadline && ask(&mut self.control, &frame).await.is_err()
        {
            self.client.pause(AGAIN_PAUSE_MS).await;
        }
    }
}

/// Asks something that has an answer. Answers have no number: the next frame is it.
async fn ask(way: &mut Way, frame: &Bytes) -> Result<Frame, Failure> {
    way.ask(PATIENCE, frame, |_: &Frame| true).await
}

/// The bytes of a message of that name.
fn frame(name: &'static [u8], message: &impl Message) -> Bytes {
    let (to, from) = (Bytes::from_static(b"@simulated"), Bytes::from_static(b"@"));
    let body = message.encode_to_vec().into();
    Frame { name: Bytes::from_static(name), to, from, body }.encode()
}

/// A question about an entry.
fn asking(entry: &str) -> Bytes {
    frame(b"7", &pb::MetadataMessage { name: entry.to_owned(), value: Bytes::new() })
}

/// What an entry says, if there is one.
fn value(told: Frame) -> Result<Option<Bytes>, Failure> {
    let told: pb::MetadataMessage = read(told.body)?;
    Ok((!told.value.is_empty()).then_some(told.value))
}

fn read<M: Message + Default>(body: Bytes) -> Result<M, Failure> {
    M::decode(body).map_err(|error| Failure::Unanswered(format!("an answer cannot be read: {error}")))
}

fn entry(whose: &str, number: u64) -> String {
    format!("entry-{whose}-{number}")
}

/// In the history: the names of nodes are used once, so the entries of another cluster are others.
fn key(entry: &str) -> Key {
    Key::from(format!("mindspore/{entry}"))
}
