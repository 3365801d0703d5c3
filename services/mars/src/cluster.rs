//! Who schedules and who computes: members of the cluster; object stores, and the workers at each.

use std::collections::{BTreeMap, HashMap};
use std::time::SystemTime;

use prost::Message as _;
use tonic::Status;
use tripod_gateway::Consistency;
use tripod_proto::mars::v1 as pb;
use tripod_state::ids::{JobId, NodeId};
use tripod_state::ray::ids::StoreId;
use tripod_state::ray::view::WorkerLife;
use tripod_state::ray::{Ray, Role};
use tripod_state::{State, member};
use xxhash_rust::xxh3::xxh3_64;

use crate::domain;
use crate::fields::Fields;
use crate::figures::{AGE_MAX, StoreFigures};
use crate::front::Front;
use crate::limits::NAMES_MAX;
use crate::status;

/// The one band of a worker: our workers do not tell parts of a machine apart.
const BAND: &str = "numa-0";

/// An object store, and what works there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Worker {
    pub(crate) store: StoreId,
    pub(crate) address: String,
    pub(crate) status: pb::WorkerStatus,
    /// Processes that execute tasks, each one at a time.
    pub(crate) slots: u32,
    pub(crate) slots_used: u32,
}

impl Worker {
    pub(crate) fn message(&self) -> pb::WorkerAddress {
        pb::WorkerAddress {
            worker_id: self.address.clone(),
            address: self.address.clone(),
            bands: vec![BAND.to_owned()],
            status: self.status.into(),
        }
    }
}

/// All of a job's workers, by their addresses. Of stores at one address the last one counts.
pub(crate) fn workers(ray: &Ray) -> Vec<Worker> {
    let mut stores: BTreeMap<StoreId, Worker> = BTreeMap::new();
    for store in ray.stores() {
        let status = if store.alive { pb::WorkerStatus::Starting } else { pb::WorkerStatus::Stopped };
        let worker = Worker { store: store.id, address: store.address, status, slots: 0, slots_used: 0 };
        stores.insert(store.id, worker);
    }
    for process in ray.workers().into_iter().filter(|process| process.role == Role::Worker) {
        let Some(store) = stores.get_mut(&process.store) else { continue };
        if matches!(process.life, WorkerLife::Dead(_)) || store.status == pb::WorkerStatus::Stopped {
            continue;
        }
        store.slots += 1;
        store.slots_used += u32::from(process.life == WorkerLife::Busy);
        // Whoever has registered and asked for no task yet is still starting.
        if process.life != WorkerLife::Registered {
            store.status = pb::WorkerStatus::Ready;
        }
    }
    let by_address: BTreeMap<String, Worker> =
        stores.into_values().map(|worker| (worker.address.clone(), worker)).collect();
    by_address.into_values().collect()
}

/// Workers and the version of their list, which is made of it: every node has the same.
pub(crate) fn versioned(all: &[Worker]) -> (u64, Vec<pb::WorkerAddress>, Vec<String>) {
    let (gone, there): (Vec<&Worker>, Vec<&Worker>) =
        all.iter().partition(|worker| worker.status == pb::WorkerStatus::Stopped);
    let changed: Vec<pb::WorkerAddress> = there.into_iter().map(Worker::message).collect();
    let removed: Vec<String> = gone.into_iter().map(|worker| worker.address.clone()).collect();
    let list = pb::WorkerChanges { header: None, version: 0, changed, removed };
    // 0 is what nobody has who begins.
    let version = xxh3_64(&list.encode_to_vec()).max(1);
    (version, list.changed, list.removed)
}

/// The states that are wanted; none named: those that are ready.
pub(crate) fn statuses(named: &[i32]) -> Result<Vec<pb::WorkerStatus>, Status> {
    if named.is_empty() {
        return Ok(vec![pb::WorkerStatus::Ready]);
    }
    let read = |number: &i32| {
        pb::WorkerStatus::try_from(*number)
            .map_err(|_| status::invalid(&format!("statuses: there is no {number}")))
    };
    named.iter().take(NAMES_MAX).map(read).collect()
}

/// Names that are asked for, within their bound.
pub(crate) fn named(field: &str, names: Vec<String>) -> Result<Vec<String>, Status> {
    if names.len() > NAMES_MAX { Err(status::too_many(field, names.len(), NAMES_MAX)) } else { Ok(names) }
}

impl Front {
    pub(crate) async fn workers(&self, job: JobId, freshness: Consistency) -> Result<Vec<Worker>, Status> {
        self.read(freshness, move |state| state.ray(job).map(workers).unwrap_or_default()).await
    }

    /// What is known of workers; of those that are named, or of all that have not stopped.
    pub(crate) async fn workers_info(
        &self,
        job: JobId,
        ids: Vec<String>,
        fields: &Fields,
    ) -> Result<Vec<pb::WorkerInfo>, Status> {
        let wants_figures =
            ["resource", "quota", "storage", "update_time"].into_iter().any(|field| fields.want(field));
        // They are in the leader's memory: without them, the rest is told.
        let figures = if wants_figures { (self.shared.figures)(job).await } else { HashMap::new() };
        let look = move |state: &State| {
            (state.ray(job).map(workers).unwrap_or_default(), domain::session_names(state, job))
        };
        let (all, sessions) = self.read(Consistency::Linearizable, look).await?;
        let info = |worker: &Worker| info(worker, figures.get(&worker.store), &sessions, fields);
        if ids.is_empty() {
            let there = all.iter().filter(|worker| worker.status != pb::WorkerStatus::Stopped);
            return Ok(there.map(info).collect());
        }
        let by_id: HashMap<&str, &Worker> =
            all.iter().map(|worker| (worker.address.as_str(), worker)).collect();
        let of_id = |id: &String| by_id.get(id.as_str()).copied().map_or_else(|| unknown(id), info);
        Ok(ids.iter().map(of_id).collect())
    }

    pub(crate) async fn schedulers(&self) -> Result<Vec<pb::SchedulerAddress>, Status> {
        let members = self.read(Consistency::Linearizable, State::members).await?;
        let status = self.gateway().admin().status();
        let leader = self.gateway().leadership().borrow().leader;
        let role = |node: NodeId| {
            let member = status.members.iter().find(|member| member.node == node);
            match member {
                _ if Some(node) == leader => pb::SchedulerRole::Leader,
                Some(member) if !member.voter => pb::SchedulerRole::Learner,
                _ => pb::SchedulerRole::Follower,
            }
        };
        let address = |(node, addresses): (NodeId, member::Addresses)| pb::SchedulerAddress {
            address: addresses.client,
            role: role(node).into(),
            node_id: node.0,
        };
        Ok(members.into_iter().map(address).collect())
    }

    /// What is known of schedulers, in the order in which they were asked for; of all, if none was.
    pub(crate) async fn schedulers_info(
        &self,
        addresses: Vec<String>,
        fields: &Fields,
    ) -> Result<Vec<pb::SchedulerInfo>, Status> {
        let all = self.schedulers().await?;
        let status = self.gateway().admin().status();
        let info = |known: &pb::SchedulerAddress| {
            let here = known.node_id == status.node.0;
            let matched = status.members.iter().find(|member| member.node.0 == known.node_id);
            let applied = if here { Some(status.applied) } else { matched.and_then(|member| member.matched) };
            pb::SchedulerInfo {
                found: true,
                address: fields.only("address", known.address.clone()),
                role: fields.only("role", known.role),
                // Of others it is the level that counts, and that is one for all.
                version: fields
                    .only("version", if here { env!("CARGO_PKG_VERSION").to_owned() } else { String::new() }),
                applied_index: fields.only("applied_index", applied.map_or(0, |index| index.0)),
                update_time: fields.only("update_time", Some(SystemTime::now().into())),
            }
        };
        if addresses.is_empty() {
            return Ok(all.iter().map(info).collect());
        }
        let of = |address: &String| {
            let known = all.iter().find(|known| known.address == *address);
            known.map_or_else(|| pb::SchedulerInfo { address: address.clone(), ..Default::default() }, info)
        };
        Ok(addresses.iter().map(of).collect())
    }
}

fn unknown(id: &str) -> pb::WorkerInfo {
    let worker = pb::WorkerAddress { worker_id: id.to_owned(), ..Default::default() };
    pb::WorkerInfo { worker: Some(worker), ..Default::default() }
}

fn info(
    worker: &Worker,
    figures: Option<&StoreFigures>,
    sessions: &[String],
    fields: &Fields,
) -> pb::WorkerInfo {
    let address = worker.message();
    let shown = pb::WorkerAddress {
        worker_id: worker.address.clone(),
        address: fields.only("address", address.address),
        bands: fields.only("bands", address.bands),
        status: fields.only("status", address.status),
    };
    let cpus = |count: u32| f64::from(count);
    let free = worker.slots.saturating_sub(worker.slots_used);
    let resource = [("cpu_total", cpus(worker.slots)), ("cpu_avail", cpus(free))];
    let of_figures = |name: &str, bytes: fn(&StoreFigures) -> u64| Some((name.to_owned(), bytes(figures?)));
    let quota = [of_figures("memory_total", |figures| figures.capacity_bytes)];
    let storage = [
        of_figures("memory_used", |figures| figures.used_bytes),
        of_figures("memory_total", |figures| figures.capacity_bytes),
        of_figures("disk_used", |figures| figures.spilled_bytes),
    ];
    let age = figures.and_then(|_| AGE_MAX.try_into().ok());
    pb::WorkerInfo {
        found: true,
        worker: Some(shown),
        resource: fields.only("resource", resource.map(|(name, count)| (name.to_owned(), count)).into()),
        quota_bytes: fields.only("quota", quota.into_iter().flatten().collect()),
        storage_bytes: fields.only("storage", storage.into_iter().flatten().collect()),
        // A worker serves all sessions of its job.
        sessions: fields.only("sessions", sessions.to_vec()),
        env: HashMap::new(),
        slots: fields.only("slots", worker.slots),
        slots_used: fields.only("slots", worker.slots_used),
        statistics_age: fields.only("update_time", age),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(address: &str, status: pb::WorkerStatus) -> Worker {
        Worker { store: StoreId(1), address: address.to_owned(), status, slots: 2, slots_used: 1 }
    }

    #[test]
    fn a_version_is_that_of_what_the_list_says() {
        let (ready, gone) =
            (worker("a:1", pb::WorkerStatus::Ready), worker("b:1", pb::WorkerStatus::Stopped));
        let (first, changed, removed) = versioned(&[ready.clone(), gone.clone()]);
        assert_eq!((changed.len(), removed), (1, vec!["b:1".to_owned()]));
        let busier = Worker { slots_used: 2, ..ready.clone() };
        assert_eq!(versioned(&[busier, gone.clone()]).0, first, "what a worker does is no change of workers");
        assert_ne!(versioned(&[ready]).0, first);
        assert_ne!(versioned(&[]).0, 0);
    }

    #[test]
    fn only_what_is_wanted_is_told_and_figures_only_where_there_are_some() {
        let ready = worker("a:1", pb::WorkerStatus::Ready);
        let figures = StoreFigures { used_bytes: 3, capacity_bytes: 9, spilled_bytes: 0 };
        let sessions = ["s".to_owned()];
        let all = info(&ready, Some(&figures), &sessions, &Fields::All);
        assert_eq!((all.storage_bytes["memory_used"], all.quota_bytes["memory_total"]), (3, 9));
        assert!(all.statistics_age.is_some() && all.sessions == sessions);
        let none = info(&ready, None, &sessions, &Fields::All);
        assert!(none.statistics_age.is_none() && none.storage_bytes.is_empty());
        let fields = Fields::read(&["slots".to_owned()], crate::fields::WORKER).unwrap();
        let slots = info(&ready, Some(&figures), &sessions, &fields);
        let shown = slots.worker.clone().unwrap();
        assert_eq!((slots.slots, shown.worker_id.as_str(), shown.address.as_str()), (2, "a:1", ""));
        assert!(slots.sessions.is_empty() && slots.storage_bytes.is_empty());
    }

    #[test]
    fn nobody_who_names_no_status_wants_those_that_are_not_ready() {
        assert_eq!(statuses(&[]).unwrap(), [pb::WorkerStatus::Ready]);
        assert_eq!(statuses(&[5]).unwrap(), [pb::WorkerStatus::Stopped]);
        assert!(statuses(&[77]).is_err());
    }
}
