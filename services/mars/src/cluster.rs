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
use tripod_state::ray::{Offers, Ray, Role};
use tripod_state::{State, member};
use xxhash_rust::xxh3::xxh3_64;

use crate::domain;
use crate::fields::Fields;
use crate::figures::{AGE_MAX, StoreFigures};
use crate::front::Front;
use crate::limits::{NAMES_MAX, RESOURCES_TOLD_MAX};
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
    /// What those processes have together.
    pub(crate) total: Offers,
    /// What those of them have that execute nothing.
    pub(crate) free: Offers,
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
        let worker = Worker {
            store: store.id,
            address: store.address,
            status,
            slots: 0,
            slots_used: 0,
            total: NOTHING,
            free: NOTHING,
        };
        stores.insert(store.id, worker);
    }
    for process in ray.workers().into_iter().filter(|process| process.role == Role::Worker) {
        let Some(store) = stores.get_mut(&process.store) else { continue };
        if matches!(process.life, WorkerLife::Dead(_)) || store.status == pb::WorkerStatus::Stopped {
            continue;
        }
        store.slots += 1;
        let offers = ray.offers(process.id);
        add(&mut store.total, &offers);
        if process.life == WorkerLife::Busy {
            store.slots_used += 1;
        } else {
            add(&mut store.free, &offers);
        }
        // Whoever has registered and asked for no task yet is still starting.
        if process.life != WorkerLife::Registered {
            store.status = pb::WorkerStatus::Ready;
        }
    }
    let by_address: BTreeMap<String, Worker> =
        stores.into_values().map(|worker| (worker.address.clone(), worker)).collect();
    by_address.into_values().collect()
}

/// What no processes have.
const NOTHING: Offers = Offers { cpus_milli: 0, memory_bytes: 0, named_milli: BTreeMap::new() };

fn add(sum: &mut Offers, offers: &Offers) {
    sum.cpus_milli = sum.cpus_milli.saturating_add(offers.cpus_milli);
    sum.memory_bytes = sum.memory_bytes.saturating_add(offers.memory_bytes);
    for (name, milli) in &offers.named_milli {
        if sum.named_milli.len() < RESOURCES_TOLD_MAX || sum.named_milli.contains_key(name) {
            let named = sum.named_milli.entry(name.clone()).or_default();
            *named = named.saturating_add(*milli);
        }
    }
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
    if named.len() > NAMES_MAX {
        return Err(status::too_many("statuses", named.len(), NAMES_MAX));
    }
    let read = |number: &i32| {
        let known = pb::WorkerStatus::try_from(*number).ok();
        let known = known.filter(|known| *known != pb::WorkerStatus::Unspecified);
        known.ok_or_else(|| status::invalid(&format!("statuses: there is no {number}")))
    };
    named.iter().map(read).collect()
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
        resource: fields.only("resource", resource(worker)),
        quota_bytes: fields.only("quota", quota.into_iter().flatten().collect()),
        storage_bytes: fields.only("storage", storage.into_iter().flatten().collect()),
        // A worker serves all sessions of its job.
        sessions: fields.only("sessions", sessions.to_vec()),
        env: fields.only("env", env(worker)),
        slots: fields.only("slots", worker.slots),
        slots_used: fields.only("slots", worker.slots_used),
        statistics_age: fields.only("update_time", age),
    }
}

/// How much there is of everything, and how much of it is free: a process that executes something has all of its own.
fn resource(worker: &Worker) -> HashMap<String, f64> {
    let Worker { total, free, .. } = worker;
    let mut all = HashMap::new();
    let mut put = |name: &str, total: f64, free: f64| {
        all.insert(format!("{name}_total"), total);
        all.insert(format!("{name}_avail"), free);
    };
    for (name, milli) in &total.named_milli {
        put(name, whole(*milli), whole(free.named_milli.get(name).copied().unwrap_or(0)));
    }
    put("cpu", whole(total.cpus_milli), whole(free.cpus_milli));
    // Of memory only those tell who say how much they have.
    if total.memory_bytes > 0 {
        put("memory", total.memory_bytes as f64, free.memory_bytes as f64);
    }
    all
}

fn whole(milli: u64) -> f64 {
    milli as f64 / 1_000.0
}

/// What its processes said of their machine when they registered. Nobody tells versions.
fn env(worker: &Worker) -> HashMap<String, String> {
    let Worker { slots, total, .. } = worker;
    if *slots == 0 {
        return HashMap::new();
    }
    let mut all: HashMap<String, String> = total
        .named_milli
        .iter()
        .map(|(name, milli)| (format!("resource.{name}"), whole(*milli).to_string()))
        .collect();
    all.insert("cpus".to_owned(), whole(total.cpus_milli).to_string());
    if total.memory_bytes > 0 {
        all.insert("memory_bytes".to_owned(), total.memory_bytes.to_string());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(address: &str, status: pb::WorkerStatus) -> Worker {
        let named_milli = [("gpu".to_owned(), 500)].into();
        let total = Offers { cpus_milli: 3_000, memory_bytes: 4_096, named_milli };
        let free = Offers { cpus_milli: 1_000, ..NOTHING };
        let (address, store) = (address.to_owned(), StoreId(1));
        Worker { store, address, status, slots: 2, slots_used: 1, total, free }
    }

    #[test]
    fn what_processes_have_is_told_together_and_what_nobody_told_is_not() {
        let told = info(&worker("a:1", pb::WorkerStatus::Ready), None, &[], &Fields::All);
        assert_eq!((told.resource["cpu_total"], told.resource["cpu_avail"]), (3.0, 1.0));
        assert_eq!((told.resource["gpu_total"], told.resource["gpu_avail"]), (0.5, 0.0));
        assert_eq!((told.resource["memory_total"], told.resource["memory_avail"]), (4_096.0, 0.0));
        assert_eq!((told.env["cpus"].as_str(), told.env["resource.gpu"].as_str()), ("3", "0.5"));
        assert_eq!(told.env["memory_bytes"], "4096");
        let starting = worker("a:1", pb::WorkerStatus::Starting);
        let bare = Worker { slots: 0, slots_used: 0, total: NOTHING, free: NOTHING, ..starting };
        assert!(info(&bare, None, &[], &Fields::All).env.is_empty(), "nobody has said anything");
    }

    #[test]
    fn sums_of_what_processes_have_are_bounded() {
        let mut many = NOTHING;
        for number in 0..RESOURCES_TOLD_MAX + 9 {
            add(&mut many, &Offers { named_milli: [(number.to_string(), 1)].into(), ..NOTHING });
        }
        assert_eq!(many.named_milli.len(), RESOURCES_TOLD_MAX);
        add(&mut many, &Offers { named_milli: [("0".to_owned(), u64::MAX)].into(), ..NOTHING });
        assert_eq!(many.named_milli["0"], u64::MAX, "sums do not overflow");
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
        assert!(statuses(&[77]).is_err() && statuses(&[0]).is_err());
        assert!(statuses(&vec![2; NAMES_MAX + 1]).is_err());
    }
}
