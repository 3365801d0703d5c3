//! A job's scheduler: how much there is of what, its workers and its stores.

use serde_json::{Value, json};
use tripod_state::ray::Ray;
use tripod_state::ray::Role;
use tripod_state::ray::view::WorkerLife;

/// Workers, and stores, that are listed.
const LISTED_MAX: usize = 256;
/// Bytes of the reason why a worker is dead.
const DEATH_BYTES_MAX: usize = 256;

pub(crate) fn counts(ray: &Ray) -> Value {
    let counts = ray.counts();
    json!({
        "workers": counts.workers,
        "stores": counts.stores,
        "queued": counts.queued,
        "running": counts.running,
        "succeeded": counts.succeeded,
        "failed": counts.failed,
        "objects": counts.objects,
        "orders": counts.orders,
    })
}

pub(crate) fn stores(ray: &Ray) -> Value {
    let line = |store: tripod_state::ray::view::Store| {
        json!({
            "store": store.id.0,
            "address": store.address,
            "alive": store.alive,
            "objects": store.objects,
            "coming": store.in_transit,
        })
    };
    Value::Array(ray.stores().into_iter().take(LISTED_MAX).map(line).collect())
}

pub(crate) fn workers(ray: &Ray) -> Value {
    let line = |worker: tripod_state::ray::view::Worker| {
        let (state, why) = match &worker.life {
            WorkerLife::Registered => ("registered", ""),
            WorkerLife::Idle => ("idle", ""),
            WorkerLife::Busy => ("busy", ""),
            WorkerLife::Dead(why) => ("dead", &why[..why.floor_char_boundary(DEATH_BYTES_MAX)]),
        };
        json!({
            "worker": worker.id.0,
            "driver": worker.role == Role::Driver,
            "address": worker.address,
            "store": worker.store.0,
            "state": state,
            "why": why,
            "running": worker.running.len(),
        })
    };
    Value::Array(ray.workers().into_iter().take(LISTED_MAX).map(line).collect())
}
