//! Dynamic clusters: three workers register, learn their ranks when all are there, write and read entries, register once
//! more, and leave together; then the next three come.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use rand::RngExt as _;
use rand::rngs::StdRng;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tripod_checkers::history::{
    Act, Call, ClusterNode, ClusterRole, Found, Job, Key, LifeId, NodeName, Rank, Reply, Round, Value,
};
use tripod_load::mindspore::{Dialect, Failure, Registered, Size, Worker};

use super::super::setting::Setting;
use super::scribe::{Scribe, outcome};
use super::{AGAIN_PAUSE, FORM_PATIENCE, LIMIT};

const JOB: &str = "ms-dynamic";
const WORKERS: usize = 3;
const SIZE: Size = Size { workers: WORKERS as u32, servers: 0 };
/// What each worker does until all leave.
const STEPS: usize = 30;
/// Entries that each of them writes, again and again.
const ENTRIES: u64 = 2;
const REST_MAX_MS: u64 = 120;

pub(in crate::workload) fn start(setting: &Setting, clients: &mut JoinSet<()>) {
    let setting = setting.clone();
    clients.spawn(async move {
        let mut random = setting.random(setting.client_id());
        let Some(job) = super::job(&setting, &mut random, JOB, SIZE).await else { return };
        let mut round = 0;
        while setting.goes_on() {
            round += 1;
            // Both dialects, in turn: all nodes of a cluster are of one.
            let dialect = if round % 2 == 1 { Dialect::V2_0 } else { Dialect::V2_10 };
            let gang =
                (0..WORKERS).map(|number| Member::new(&setting, &job.addresses, dialect, (round, number)));
            live(gang.collect()).await;
        }
    });
}

/// One cluster, from its first registration until all have left. Nobody goes on to the next part before all have done the
/// last one.
async fn live(mut gang: Vec<Member>) {
    let formed = all(join_all(gang.iter_mut().map(Member::register)).await)
        && all(join_all(gang.iter_mut().map(Member::until_all_are_there)).await);
    if formed {
        let names: Vec<String> = gang.iter().map(|member| member.worker.id().to_owned()).collect();
        join_all(gang.iter_mut().map(|member| member.work(&names))).await;
    }
    join_all(gang.iter_mut().map(Member::leave)).await;
}

fn all(done: Vec<bool>) -> bool {
    done.into_iter().all(|done| done)
}

struct Member {
    setting: Setting,
    scribe: Scribe,
    dialect: Dialect,
    worker: Worker,
    random: StdRng,
    registered: bool,
}

impl Member {
    fn new(
        setting: &Setting,
        addresses: &Arc<[String]>,
        dialect: Dialect,
        (round, number): (u64, usize),
    ) -> Self {
        let id = setting.client_id();
        let mut random = setting.random(id);
        let name = format!("{round}-{number}");
        let place = random.random_range(0..addresses.len());
        let node = ClusterNode {
            job: Job::from(JOB),
            round: Round(round),
            name: NodeName::from(name.as_str()),
            role: ClusterRole::Worker,
            life: LifeId(1),
        };
        let scribe = Scribe { setting: setting.clone(), id, node };
        let worker = Worker::new(name, dialect, (Arc::clone(addresses), place), LIMIT);
        Self { setting: setting.clone(), scribe, dialect, worker, random, registered: false }
    }

    /// Until it has a place. Of 2.0 the answer is the rank for good; of 2.10 that is read when all are there.
    async fn register(&mut self) -> bool {
        let deadline = Instant::now() + FORM_PATIENCE;
        while Instant::now() < deadline {
            let pending = self.scribe.begin(Act::Join);
            let told = self.worker.register().await;
            let reply = |Registered { rank, .. }: &Registered| match self.dialect {
                Dialect::V2_0 => Reply::Rank(Rank(*rank)),
                Dialect::V2_10 => Reply::Done,
            };
            self.scribe.end(pending, told.as_ref().map(reply));
            if told.is_ok() {
                self.registered = true;
                return true;
            }
            tokio::time::sleep(AGAIN_PAUSE).await;
        }
        false
    }

    async fn until_all_are_there(&mut self) -> bool {
        let deadline = Instant::now() + FORM_PATIENCE;
        while Instant::now() < deadline {
            if matches!(self.worker.beat().await, Ok(true)) && self.read_rank().await {
                return true;
            }
            tokio::time::sleep(AGAIN_PAUSE).await;
        }
        false
    }

    /// Whether there is a rank by now.
    async fn read_rank(&mut self) -> bool {
        let pending = self.scribe.begin(Act::ReadRank);
        let told = self.worker.rank().await;
        let is_known = matches!(told, Ok(Some(_)));
        let reply = match told {
            Ok(Some(rank)) => Ok(Reply::Rank(Rank(rank))),
            Ok(None) => Ok(Reply::Value(None)),
            Err(failure) => Err(failure),
        };
        self.scribe.end(pending, reply.as_ref().cloned());
        is_known
    }

    async fn work(&mut self, names: &[String]) {
        for _ in 0..STEPS {
            if !self.setting.goes_on() {
                return;
            }
            let number = self.random.random_range(0..ENTRIES);
            match self.random.random_range(0..10) {
                0..4 => {
                    let entry = entry(self.worker.id(), number);
                    self.write(&entry).await;
                    self.read(&entry).await;
                }
                4..8 => {
                    let whose = &names[self.random.random_range(0..names.len())];
                    self.read(&entry(whose, number)).await;
                }
                8 => {
                    // As after a connection that broke.
                    self.worker.move_on();
                    self.register().await;
                    self.read_rank().await;
                }
                _ => {
                    let _ = self.worker.beat().await;
                }
            }
            self.setting.rest(&mut self.random, REST_MAX_MS).await;
        }
    }

    /// Each entry has one writer: a scheduler may do twice what it does not know to be done.
    async fn write(&mut self, entry: &str) {
        let value = self.setting.fresh();
        let call = Call::Write { key: key(entry), value: Value(value) };
        let pending = self.setting.invoke(self.scribe.id, call);
        // It was durable before the read behind it was answered, whatever that found.
        let told = self.worker.write(entry, Bytes::from(value.to_string())).await;
        let written = Reply::Written { version: None, index: None };
        self.setting.complete(pending, outcome(told.as_ref().map(|_| written)));
    }

    async fn read(&mut self, entry: &str) {
        let pending = self.setting.invoke(self.scribe.id, Call::Read { key: key(entry) });
        let told = self.worker.read(entry).await;
        let found = |value: &Bytes| {
            // What nobody wrote becomes a value that nobody wrote, which the checker tells.
            let value = String::from_utf8_lossy(value).parse().unwrap_or(u64::MAX);
            Found { value: Value(value), version: None, index: None }
        };
        let told = told.as_ref().map(|value| Reply::Value(value.as_ref().map(found)));
        self.setting.complete(pending, outcome(told));
    }

    /// Who has no place has none to leave.
    async fn leave(&mut self) {
        let deadline = Instant::now() + FORM_PATIENCE;
        while self.registered && Instant::now() < deadline {
            match self.worker.unregister().await {
                // The latter before all were there.
                Ok(()) | Err(Failure::Refused(_)) => return,
                Err(_) => tokio::time::sleep(AGAIN_PAUSE).await,
            }
        }
    }
}

fn entry(whose: &str, number: u64) -> String {
    format!("entry-{whose}-{number}")
}

/// In the history: the names of nodes are used once, so the entries of another cluster are others.
fn key(entry: &str) -> Key {
    Key::from(format!("mindspore/{entry}"))
}
