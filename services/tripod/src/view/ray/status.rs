//! `tripod ray status`.

use serde::Serialize;
use tripod_client::wire;

use super::bytes;
use crate::output::Table;

/// Everything that `ray status` prints. A contract: fields may be added, never renamed.
#[derive(Debug, Serialize)]
pub(crate) struct RayStatusView {
    tasks: TasksView,
    objects: ObjectsView,
    functions: u64,
    exports: u64,
    /// What workers and stores are still to be told.
    orders_waiting: u64,
    lineage_bytes: u64,
    workers: Vec<WorkerView>,
    stores: Vec<StoreView>,
}

#[derive(Debug, Serialize)]
struct TasksView {
    queued: u64,
    running: u64,
    succeeded: u64,
    failed: u64,
}

#[derive(Debug, Serialize)]
struct ObjectsView {
    live: u64,
    pending: u64,
    failed: u64,
    gets_waiting: u64,
}

#[derive(Debug, Serialize)]
struct WorkerView {
    id: u64,
    kind: String,
    state: String,
    address: String,
    store: u64,
    running: Vec<u64>,
    /// Why it is dead.
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
}

#[derive(Debug, Serialize)]
struct StoreView {
    id: u64,
    state: String,
    address: String,
    objects: u64,
    in_transit: u64,
    used_bytes: u64,
    capacity_bytes: u64,
    spilled_bytes: u64,
}

impl RayStatusView {
    pub(crate) fn of(answer: wire::RayStatusResponse) -> Self {
        let worker = |worker: wire::RayWorker| WorkerView {
            id: worker.workerid,
            kind: worker.kind,
            state: worker.state,
            address: worker.address,
            store: worker.objstoreid,
            running: worker.running.iter().map(|run| run.operationid).collect(),
            reason: worker.reason,
        };
        let store = |store: wire::RayStore| StoreView {
            id: store.objstoreid,
            state: store.state,
            address: store.address,
            objects: store.objects,
            in_transit: store.in_transit,
            used_bytes: store.used_bytes,
            capacity_bytes: store.capacity_bytes,
            spilled_bytes: store.spilled_bytes,
        };
        Self {
            tasks: TasksView {
                queued: answer.tasks_queued,
                running: answer.tasks_running,
                succeeded: answer.tasks_succeeded,
                failed: answer.tasks_failed,
            },
            objects: ObjectsView {
                live: answer.objects_live,
                pending: answer.objects_pending,
                failed: answer.objects_failed,
                gets_waiting: answer.gets_waiting,
            },
            functions: answer.functions,
            exports: answer.exports,
            orders_waiting: answer.orders_waiting,
            lineage_bytes: answer.lineage_bytes,
            workers: answer.workers.into_iter().map(worker).collect(),
            stores: answer.stores.into_iter().map(store).collect(),
        }
    }

    pub(crate) fn render(&self) -> String {
        let TasksView { queued, running, succeeded, failed } = self.tasks;
        let ObjectsView { live, pending, failed: lost, gets_waiting } = self.objects;
        let mut text = format!(
            "tasks    {queued} queued, {running} running, {succeeded} succeeded, {failed} failed\n\
             objects  {live} live, {pending} pending, {lost} failed; {gets_waiting} gets wait\n\
             known    {} functions, {} exports; lineage {}; {} orders not carried out yet\n",
            self.functions,
            self.exports,
            bytes(self.lineage_bytes),
            self.orders_waiting,
        );
        if self.workers.is_empty() && self.stores.is_empty() {
            text += "\nnobody has registered yet; next: `tripod objstore`, then a worker on the same machine";
            return text;
        }
        let mut stores =
            Table::new(&["STORE", "STATE", "ADDRESS", "OBJECTS", "COMING", "USED", "OF", "SPILLED"]);
        for store in &self.stores {
            stores.row(vec![
                store.id.to_string(),
                store.state.clone(),
                store.address.clone(),
                store.objects.to_string(),
                store.in_transit.to_string(),
                bytes(store.used_bytes),
                bytes(store.capacity_bytes),
                bytes(store.spilled_bytes),
            ]);
        }
        let mut workers = Table::new(&["WORKER", "KIND", "STATE", "ADDRESS", "STORE", "RUNS"]);
        for worker in &self.workers {
            let state = match worker.reason.as_str() {
                "" => worker.state.clone(),
                reason => format!("{}: {reason}", worker.state),
            };
            let runs: Vec<_> = worker.running.iter().map(u64::to_string).collect();
            workers.row(vec![
                worker.id.to_string(),
                worker.kind.clone(),
                state,
                worker.address.clone(),
                worker.store.to_string(),
                runs.join(" "),
            ]);
        }
        format!("{text}\n{}\n\n{}", stores.render(), workers.render())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_without_anybody_says_what_is_next() {
        let text = RayStatusView::of(wire::RayStatusResponse::default()).render();
        assert!(text.contains("0 queued") && text.ends_with("on the same machine"), "{text}");
    }

    #[test]
    fn workers_and_stores_have_a_line_each() {
        let worker = wire::RayWorker {
            workerid: 3,
            address: "10.0.0.1:40003".into(),
            kind: "worker".into(),
            state: "dead".into(),
            reason: "silent for 12 s".into(),
            ..wire::RayWorker::default()
        };
        let store = wire::RayStore {
            objstoreid: 0,
            address: "10.0.0.1:7001".into(),
            state: "alive".into(),
            objects: 2,
            used_bytes: 3 << 20,
            capacity_bytes: 1 << 30,
            ..wire::RayStore::default()
        };
        let answer = wire::RayStatusResponse {
            workers: vec![worker],
            stores: vec![store],
            tasks_queued: 4,
            ..wire::RayStatusResponse::default()
        };
        let text = RayStatusView::of(answer).render();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "tasks    4 queued, 0 running, 0 succeeded, 0 failed");
        assert_eq!(lines[5], "0      alive  10.0.0.1:7001  2        0       3.0 MiB  1.0 GiB  0 B");
        assert_eq!(lines[8], "3       worker  dead: silent for 12 s  10.0.0.1:40003  0");
    }
}
