//! What people are shown: `tripod.v1.Ray/Status` and `Tasks`.

use std::collections::HashMap;

use tripod_proto::tripod::v1 as pb;
use tripod_state::ray::ids::StoreId;
use tripod_state::ray::view::{ListedTask, Store, TaskState, Totals, Worker, WorkerLife};
use tripod_state::ray::{Role, Run};

use crate::pulse::Usage;

/// The words for the states of a task.
pub(crate) const TASK_STATES: [(TaskState, &str); 7] = [
    (TaskState::Waiting, "waiting"),
    (TaskState::Queued, "queued"),
    (TaskState::Running, "running"),
    (TaskState::Reported, "reported"),
    (TaskState::Done, "done"),
    (TaskState::Failed, "failed"),
    (TaskState::Cancelled, "cancelled"),
];

pub(crate) fn status(
    workers: Vec<Worker>,
    stores: Vec<Store>,
    totals: Totals,
    usage: &HashMap<StoreId, Usage>,
) -> pb::RayStatusResponse {
    let stores = stores.into_iter().map(|shown| {
        let usage = usage.get(&shown.id).copied().unwrap_or_default();
        store(shown, usage)
    });
    pb::RayStatusResponse {
        workers: workers.into_iter().map(worker).collect(),
        stores: stores.collect(),
        tasks_queued: totals.queued,
        tasks_running: totals.running,
        tasks_succeeded: totals.succeeded,
        tasks_failed: totals.failed,
        objects_live: totals.objects_live,
        objects_pending: totals.objects_pending,
        objects_failed: totals.objects_failed,
        gets_waiting: totals.gets,
        orders_waiting: totals.orders,
        functions: totals.functions,
        exports: totals.exports,
        lineage_bytes: totals.lineage_bytes,
    }
}

fn worker(worker: Worker) -> pb::RayWorker {
    let kind = match worker.role {
        Role::Worker => "worker",
        Role::Driver => "driver",
    };
    let (state, reason) = match worker.life {
        WorkerLife::Registered => ("registered", String::new()),
        WorkerLife::Idle => ("idle", String::new()),
        WorkerLife::Busy => ("busy", String::new()),
        WorkerLife::Dead(reason) => ("dead", reason),
    };
    pb::RayWorker {
        workerid: worker.id.0,
        address: worker.address,
        objstoreid: worker.store.0,
        kind: kind.to_owned(),
        state: state.to_owned(),
        running: worker.running.into_iter().map(run).collect(),
        reason,
    }
}

fn run(run: Run) -> pb::RayRun {
    pb::RayRun { operationid: run.operation.0, attempt: run.attempt.0 }
}

fn store(store: Store, usage: Usage) -> pb::RayStore {
    pb::RayStore {
        objstoreid: store.id.0,
        address: store.address,
        state: if store.alive { "alive" } else { "dead" }.to_owned(),
        objects: store.objects,
        in_transit: store.in_transit,
        used_bytes: usage.used_bytes,
        capacity_bytes: usage.capacity_bytes,
        spilled_bytes: usage.spilled_bytes,
    }
}

pub(crate) fn task(task: ListedTask) -> pb::RayTask {
    let state = TASK_STATES.iter().find(|(state, _)| *state == task.state).map_or("", |(_, name)| name);
    pb::RayTask {
        operationid: task.id.0,
        function_name: task.name.to_string(),
        state: state.to_owned(),
        attempt: task.attempts,
        workerid: task.worker.map(|worker| worker.0),
        error: String::from_utf8_lossy(&task.error).into_owned(),
        history: task.history,
    }
}
