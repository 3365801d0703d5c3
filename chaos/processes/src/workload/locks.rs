//! Locks: a key that says who holds it, taken by insert and by compare-and-set, and a register that takes a write
//! only from the holder with the highest token so far.
//!
//! A holder that does not give its lock back within [`HOLD`] may lose it. Some are late on purpose, between the
//! look at the register and the write: that write must be refused if another holder has written meanwhile.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use rand::RngExt as _;
use rand::rngs::StdRng;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tripod_client::{Condition, Consistency, Kv};

use super::setting::Setting;
use super::wire::outcome_of;
use tripod_checkers::history::{
    Call, ClientId, Fence, Guarded, Key, LockSeen, Outcome, Refusal, Reply, Value,
};

const CLIENTS: usize = 4;
/// Locks, each with the register that it protects.
const LOCKS: u64 = 2;
const REST_MAX_MS: u64 = 120;
/// Who has not given a lock back for so long may lose it.
const HOLD: Duration = Duration::from_millis(700);
/// How much later than that a late holder goes on, at most.
const LATE_MAX_MS: u64 = 1_500;
/// Of a hundred writes, how many are late.
const LATE_PERCENT: u32 = 12;
const WRITES_MAX: u32 = 4;

struct Client {
    setting: Setting,
    id: ClientId,
    random: StdRng,
    library: Kv,
    /// The version at which a lock was last seen held by somebody else, and since when.
    watched: BTreeMap<Key, (u64, Instant)>,
}

/// A lock that this client was told it has.
struct HeldLock {
    lock: Key,
    register: Key,
    fence: Fence,
    /// Of the lock's key, when it was taken.
    version: u64,
}

pub(super) fn start(setting: &Setting, clients: &mut JoinSet<()>) {
    for _ in 0..CLIENTS {
        let id = setting.client_id();
        let mut random = setting.random(id);
        let library = setting.library(&mut random).kv("");
        let client = Client { setting: setting.clone(), id, random, library, watched: BTreeMap::new() };
        clients.spawn(client.run());
    }
}

impl Client {
    async fn run(mut self) {
        while self.setting.goes_on() {
            let number = self.random.random_range(0..LOCKS);
            let (lock, register) = (format!("lock/{number}"), format!("guarded/{number}"));
            let (lock, register) = (Key::from(lock), Key::from(register));
            if let Some((seen, version)) = self.look(&lock).await {
                match self.may_take(&lock, seen, version) {
                    Some(steals) => {
                        if let Some(held) = self.acquire(lock, register, (seen, version), steals).await {
                            self.hold(held).await;
                        }
                    }
                    None => {
                        self.read(&register).await;
                    }
                }
            }
            self.setting.rest(&mut self.random, REST_MAX_MS).await;
        }
    }

    /// Whether a lock that was seen so may be taken, and if so whether from its holder.
    fn may_take(&mut self, lock: &Key, seen: Option<LockSeen>, version: u64) -> Option<bool> {
        if !seen.is_some_and(|seen| seen.held) {
            return Some(false);
        }
        let now = Instant::now();
        let (known, since) = *self.watched.entry(lock.clone()).or_insert((version, now));
        if known != version {
            self.watched.insert(lock.clone(), (version, now));
            return None;
        }
        (now.duration_since(since) >= HOLD).then_some(true)
    }

    async fn look(&self, lock: &Key) -> Option<(Option<LockSeen>, u64)> {
        let pending = self.setting.invoke(self.id, Call::ReadLock { lock: lock.clone() });
        let (outcome, told) = match read_lock(&self.library, lock).await {
            Ok((seen, version)) => (Outcome::Ok(Reply::Lock(seen)), Some((seen, version))),
            Err(outcome) => (outcome, None),
        };
        self.setting.complete(pending, outcome);
        told
    }

    async fn read(&self, register: &Key) -> Option<(Option<Guarded>, u64)> {
        let pending = self.setting.invoke(self.id, Call::ReadGuarded { register: register.clone() });
        let (outcome, told) = match read_guarded(&self.library, register).await {
            Ok((seen, version)) => (Outcome::Ok(Reply::Guarded(seen)), Some((seen, version))),
            Err(outcome) => (outcome, None),
        };
        self.setting.complete(pending, outcome);
        told
    }

    /// Takes the lock if it still is as it was seen. Of a call whose outcome is not known nobody is the holder,
    /// until somebody takes the lock away.
    async fn acquire(
        &self,
        lock: Key,
        register: Key,
        (seen, version): (Option<LockSeen>, u64),
        steals: bool,
    ) -> Option<HeldLock> {
        let fence = Fence(seen.map_or(0, |seen| seen.fence.0).saturating_add(1));
        let condition = if seen.is_none() { Condition::CreateOnly } else { Condition::Version(version) };
        let pending = self.setting.invoke(self.id, Call::Acquire { lock: lock.clone(), fence, steals });
        let text = format!("{fence} held {}", self.id);
        let (outcome, version) = match self.library.put(lock.as_str(), Bytes::from(text), condition).await {
            Ok(written) => (Outcome::Ok(Reply::Done), Some(written.version)),
            Err(error) => match outcome_of(&error) {
                Outcome::Ok(_) => (Outcome::Fail("somebody else was first".to_owned()), None),
                outcome => (outcome, None),
            },
        };
        self.setting.complete(pending, outcome);
        version.map(|version| HeldLock { lock, register, fence, version })
    }

    /// What a holder does. Whoever sees that it was overtaken stops writing.
    async fn hold(&mut self, held: HeldLock) {
        for _ in 0..self.random.random_range(1..=WRITES_MAX) {
            let Some((seen, version)) = self.read(&held.register).await else { break };
            if seen.is_some_and(|seen| seen.fence > held.fence) {
                break;
            }
            if self.random.random_range(0..100) < LATE_PERCENT {
                let late = HOLD + Duration::from_millis(self.random.random_range(0..LATE_MAX_MS));
                tokio::time::sleep(late).await;
            }
            self.write(&held, version).await;
        }
        self.release(held).await;
    }

    async fn write(&self, held: &HeldLock, version: u64) {
        let (register, fence, value) = (held.register.clone(), held.fence, Value(self.setting.fresh()));
        let call = Call::WriteGuarded { register: register.clone(), fence, value };
        let pending = self.setting.invoke(self.id, call);
        let outcome = self.change(&register, format!("{fence} {value}"), version).await;
        self.setting.complete(pending, outcome);
    }

    async fn release(&self, held: HeldLock) {
        let HeldLock { lock, fence, version, .. } = held;
        let pending = self.setting.invoke(self.id, Call::Release { lock: lock.clone(), fence });
        let outcome = self.change(&lock, format!("{fence} free"), version).await;
        self.setting.complete(pending, outcome);
    }

    async fn change(&self, key: &Key, text: String, version: u64) -> Outcome {
        match self.library.put(key.as_str(), Bytes::from(text), Condition::Version(version)).await {
            Ok(_) => Outcome::Ok(Reply::Done),
            Err(error) => match outcome_of(&error) {
                // Nobody deletes them, so this too says that the key is another one than was read.
                Outcome::Ok(Reply::Refused(Refusal::Exists)) => {
                    Outcome::Ok(Reply::Refused(Refusal::VersionMismatch { current: None }))
                }
                outcome => outcome,
            },
        }
    }
}

/// How a lock stands, and its version; 0 if there is none yet.
///
/// # Errors
/// How the call ended instead.
async fn read_lock(library: &Kv, lock: &Key) -> Result<(Option<LockSeen>, u64), Outcome> {
    let Some((text, version)) = read_text(library, lock).await? else { return Ok((None, 0)) };
    let mut words = text.split(' ');
    let fence = Fence(number(words.next()));
    Ok((Some(LockSeen { fence, held: words.next() == Some("held") }), version))
}

/// What a lock protects, and its version; 0 if nothing was written yet.
///
/// # Errors
/// How the call ended instead.
pub(super) async fn read_guarded(library: &Kv, register: &Key) -> Result<(Option<Guarded>, u64), Outcome> {
    let Some((text, version)) = read_text(library, register).await? else { return Ok((None, 0)) };
    let mut words = text.split(' ');
    let (fence, value) = (Fence(number(words.next())), Value(number(words.next())));
    Ok((Some(Guarded { fence, value }), version))
}

async fn read_text(library: &Kv, key: &Key) -> Result<Option<(String, u64)>, Outcome> {
    match library.get(key.as_str(), Consistency::Linearizable).await {
        Ok(found) => {
            Ok(found.map(|entry| (String::from_utf8_lossy(&entry.value).into_owned(), entry.version)))
        }
        Err(error) => Err(outcome_of(&error)),
    }
}

/// What nobody wrote becomes a number that nobody wrote, which the checker tells.
fn number(word: Option<&str>) -> u64 {
    word.and_then(|word| word.parse().ok()).unwrap_or(u64::MAX)
}
