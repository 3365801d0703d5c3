//! Append lists: a key whose value is the whole list, extended by compare-and-set.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use rand::RngExt as _;
use rand::rngs::StdRng;
use tokio::task::JoinSet;
use tripod_client::{Condition, Consistency, Kv};

use super::setting::Setting;
use super::wire::outcome_of;
use tripod_checkers::history::{Call, ClientId, Element, Key, Outcome, Refusal, Reply};

const CLIENTS: usize = 3;
const REST_MAX_MS: u64 = 120;
/// Lists that are in use at the same time.
const LISTS: u64 = 2;
/// Calls until other lists are used: every call carries the whole list.
const CALLS_PER_LISTS: u64 = 300;

struct Client {
    setting: Setting,
    id: ClientId,
    random: StdRng,
    library: Kv,
    calls: Arc<AtomicU64>,
}

pub(super) fn start(setting: &Setting, clients: &mut JoinSet<()>) {
    let calls = Arc::new(AtomicU64::new(0));
    for _ in 0..CLIENTS {
        let id = setting.client_id();
        let mut random = setting.random(id);
        let library = setting.library(&mut random).kv("");
        let client = Client { setting: setting.clone(), id, random, library, calls: Arc::clone(&calls) };
        clients.spawn(client.run());
    }
}

impl Client {
    async fn run(mut self) {
        while self.setting.goes_on() {
            let group = self.calls.fetch_add(1, Ordering::Relaxed) / CALLS_PER_LISTS;
            let list = Key::from(format!("list/{}", group * LISTS + self.random.random_range(0..LISTS)));
            if let Some((elements, version)) = self.read(&list).await {
                self.append(list, elements, version).await;
            }
            self.setting.rest(&mut self.random, REST_MAX_MS).await;
        }
    }

    async fn read(&self, list: &Key) -> Option<(Vec<Element>, u64)> {
        let pending = self.setting.invoke(self.id, Call::ReadList { list: list.clone() });
        let read = read(&self.library, list).await;
        let (outcome, seen) = match read {
            Ok((elements, version)) => {
                (Outcome::Ok(Reply::Elements(elements.clone())), Some((elements, version)))
            }
            Err(outcome) => (outcome, None),
        };
        self.setting.complete(pending, outcome);
        seen
    }

    async fn append(&self, list: Key, mut elements: Vec<Element>, version: u64) {
        let element = Element(self.setting.fresh());
        elements.push(element);
        let text: Vec<String> = elements.iter().map(ToString::to_string).collect();
        let pending = self.setting.invoke(self.id, Call::Append { list: list.clone(), element });
        let condition = Condition::Version(version);
        let put = self.library.put(list.as_str(), Bytes::from(text.join(",")), condition).await;
        let outcome = match put {
            Ok(_) => Outcome::Ok(Reply::Done),
            Err(error) => match outcome_of(&error) {
                Outcome::Ok(Reply::Refused(Refusal::VersionMismatch { .. })) => {
                    Outcome::Fail("somebody else was first".to_owned())
                }
                outcome => outcome,
            },
        };
        self.setting.complete(pending, outcome);
    }
}

/// The elements of a list and its version; 0 if there is none.
///
/// # Errors
/// How the call ended instead.
pub(super) async fn read(library: &Kv, list: &Key) -> Result<(Vec<Element>, u64), Outcome> {
    match library.get(list.as_str(), Consistency::Linearizable).await {
        Ok(None) => Ok((Vec::new(), 0)),
        Ok(Some(entry)) => {
            let text = String::from_utf8_lossy(&entry.value);
            // What nobody wrote becomes an element that nobody appended, which the checker tells.
            let elements = text.split(',').map(|part| Element(part.parse().unwrap_or(u64::MAX)));
            Ok((elements.collect(), entry.version))
        }
        Err(error) => Err(outcome_of(&error)),
    }
}
