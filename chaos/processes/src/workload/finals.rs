//! What everything holds when all faults are over: one linearizable read of every register, list and
//! counter of the history, and of whatever a lock protects.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;
use tripod_client::{Consistency, Kv};

use super::counters;
use super::dialect::Dialect;
use super::lists;
use super::locks;
use super::registers::found;
use super::setting::Setting;
use super::wire::{Wire, outcome_of};
use tripod_checkers::history::{Call, ClientId, Key, Outcome, Reply};

/// What the cluster says to who was told another service incarnation. A job's never changes, so a cluster that has
/// changed it will say so for ever.
const OTHER_SERVICE: &str = "wrong service incarnation";
/// Between two attempts.
const AGAIN_PAUSE: Duration = Duration::from_millis(20);

/// What is kept under a key, and so how it is read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Kept {
    Register(Key),
    List(Key),
    Counter(Key),
    Guarded(Key),
}

/// Reads it all within `patience`, each thing at least once; tells how many things there were.
///
/// # Errors
/// What could not be read in time, although no fault is left: a violation of liveness.
pub async fn read_all(setting: &Setting, patience: Duration) -> Result<usize, String> {
    let kept = kept(setting);
    let client = setting.client_id();
    let mut random = setting.random(client);
    let library = setting.library(&mut random).kv("");
    let mut wire = Wire::new(setting, &mut random);
    let deadline = Instant::now() + patience;
    let mut unread = Vec::new();
    for thing in &kept {
        loop {
            let outcome = read(thing, setting, client, &library, &mut wire).await;
            if outcome.reply().is_some() {
                break;
            }
            let is_final = matches!(&outcome, Outcome::Fail(why) if why.contains(OTHER_SERVICE));
            if is_final || Instant::now() >= deadline {
                unread.push(format!("{thing:?}: {outcome}"));
                break;
            }
            tokio::time::sleep(AGAIN_PAUSE).await;
        }
    }
    if let Some(first) = unread.first() {
        return Err(format!(
            "{} of {} cannot be read after the last fault; {first}",
            unread.len(),
            kept.len()
        ));
    }
    Ok(kept.len())
}

/// Keys of jobs are left out: jobs go with their keys.
fn kept(setting: &Setting) -> BTreeSet<Kept> {
    let history = setting.recorder.history(setting.clock.now());
    let kept = history.operations.into_iter().filter_map(|operation| match operation.call {
        Call::Write { key, .. } | Call::Insert { key, .. } | Call::CompareAndSet { key, .. } => {
            key.as_str().starts_with("register/").then_some(Kept::Register(key))
        }
        Call::Append { list, .. } => Some(Kept::List(list)),
        Call::Increment { counter, .. } => Some(Kept::Counter(counter)),
        Call::WriteGuarded { register, .. } => Some(Kept::Guarded(register)),
        _ => None,
    });
    kept.collect()
}

async fn read(thing: &Kept, setting: &Setting, client: ClientId, library: &Kv, wire: &mut Wire) -> Outcome {
    let call = match thing.clone() {
        Kept::Register(key) => Call::Read { key },
        Kept::List(list) => Call::ReadList { list },
        Kept::Counter(counter) => Call::ReadCounter { counter },
        Kept::Guarded(register) => Call::ReadGuarded { register },
    };
    let pending = setting.invoke(client, call);
    let outcome = match thing {
        Kept::Register(key) => match library.get(key.as_str(), Consistency::Linearizable).await {
            Ok(None) => Outcome::Ok(Reply::Value(None)),
            Ok(Some(entry)) => found(&entry.value, Some((entry.version, entry.modified_index)))
                .map_or_else(Outcome::Unknown, Outcome::Ok),
            Err(error) => outcome_of(&error),
        },
        Kept::List(list) => match lists::read(library, list).await {
            Ok((elements, _)) => Outcome::Ok(Reply::Elements(elements)),
            Err(outcome) => outcome,
        },
        Kept::Counter(counter) => counters::read(wire, setting, Dialect::N, counter).await,
        Kept::Guarded(register) => match locks::read_guarded(library, register).await {
            Ok((seen, _)) => Outcome::Ok(Reply::Guarded(seen)),
            Err(outcome) => outcome,
        },
    };
    setting.complete(pending, outcome.clone());
    outcome
}
