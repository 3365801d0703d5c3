//! Compares what stores hold with what the state says: a report of a store of 2016 that came while nobody led is lost
//! for ever, and so are objects that a store dropped.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::Instant;
use tonic::Request;
use tripod_proto::ray as pb;
use tripod_proto::ray::obj_store_client::ObjStoreClient;
use tripod_state::ids::TimeMs;
use tripod_state::ray::ids::{ObjectId, StoreId};
use tripod_state::ray::view::Store;
use tripod_state::ray::{Decision, Ray};

use super::leader_term::LeaderTerm;

/// Bytes of a store's answer about what it holds: some six million ids. Whoever registers as a store may answer anything.
const HELD_BYTES_MAX: usize = 64 << 20;
/// How long a store may take to list what it holds.
const DEADLINE: Duration = Duration::from_secs(30);
/// How long a store whose connection broke is left alone before it is asked: it may have to begin anew.
const AFTER_BREAK: Duration = Duration::from_secs(1);

/// Rounds after which a store's answer goes into the log though it is the same as before.
const REPEAT_ROUNDS: u32 = 10;

/// A list of so many ids may go into the log every minute.
const HOLDS_FEW: usize = 4096;

/// What a store answered last, and what the state believed then: a list of a million ids must not go into the log
/// every minute if neither has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Compared {
    holds: Vec<ObjectId>,
    objects: u64,
    in_transit: u64,
}

/// Runs until the job has no scheduler any more.
pub(super) async fn run(led: LeaderTerm) {
    let mut due = Instant::now();
    let mut wanted: Option<BTreeSet<StoreId>> = None;
    let mut compared = HashMap::new();
    for round in 1_u32.. {
        let look = |state: &tripod_state::State, ray: &Ray| (state.now_ms(), ray.stores());
        let Some((asked_ms, stores)) = led.look_around(look).await else { return };
        if round.is_multiple_of(REPEAT_ROUNDS) {
            compared.clear();
        }
        let wants = |store: StoreId| wanted.as_ref().is_none_or(|wanted| wanted.contains(&store));
        for store in stores.into_iter().filter(|store| store.alive && wants(store.id)) {
            reconcile(&led, &store, asked_ms, &mut compared).await;
        }
        if wanted.is_none() {
            due = Instant::now() + led.patience.reconcile_every;
        }
        wanted = tokio::select! {
            biased;
            () = tokio::time::sleep_until(due) => None,
            () = shaken(&led) => Some(led.shaken.take()),
        };
    }
}

async fn shaken(led: &LeaderTerm) {
    led.shaken.some().await;
    tokio::time::sleep(AFTER_BREAK).await;
}

/// Asks one store, and puts its answer into the log. Without an answer nothing is known.
async fn reconcile(
    led: &LeaderTerm,
    store: &Store,
    asked_ms: TimeMs,
    compared: &mut HashMap<StoreId, Compared>,
) {
    let Ok(channel) = led.links.to(&store.address).await else { return };
    let mut client = ObjStoreClient::new(channel).max_decoding_message_size(HELD_BYTES_MAX);
    let asked = client.obj_store_info(Request::new(pb::ObjStoreInfoRequest::default()));
    let Ok(Ok(answer)) = tokio::time::timeout(DEADLINE, asked).await else { return };
    let answer = answer.into_inner();
    // A store that began anew at the same address is another one, and speaks for itself.
    if answer.objstoreid.is_some_and(|id| id != store.id.0) {
        return;
    }
    let mut holds: Vec<ObjectId> = answer.objectid.into_iter().map(ObjectId).collect();
    holds.sort_unstable();
    holds.dedup();
    let now = Compared { holds, objects: store.objects, in_transit: store.in_transit };
    // What is on its way for long may have been forgotten there, and is ordered again.
    let may_wait = store.in_transit == 0 || now.holds.len() > HOLDS_FEW;
    if may_wait && compared.get(&store.id) == Some(&now) {
        return;
    }
    let decision = Decision::Reconcile { store: store.id, holds: now.holds.clone(), asked_ms };
    if led.decide(decision).await.is_some() {
        compared.insert(store.id, now);
    }
}
