//! The scheduler's peers: object stores, workers and drivers on one machine, which speak the wire to the nodes' own
//! engines. They die, stand still, and lose what they are told.
//!
//! | module | what |
//! |---|---|
//! | `calls`, `beat` | what every process does: calls with stamps, signs of life |
//! | `store`, `shelf`, `value` | an object store and what it holds |
//! | `worker`, `function` | a worker and what it executes |
//! | `driver` | submits, reads and judges |
//! | `mars` | sessions of Mars on the same stores and workers: graphs, and mutable tensors without their cells |
//! | `life`, `harm` | ends, pauses, lost orders |

mod beat;
mod calls;
mod driver;
mod function;
mod harm;
mod life;
mod mars;
mod shelf;
mod store;
mod value;
mod worker;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::future::LocalBoxFuture;
use futures::stream::FuturesUnordered;
use rand::RngExt as _;
use tripod_proto::ray::SchedulerInfoRequest;
use tripod_proto::ray::scheduler_client::SchedulerClient;
use tripod_proto::tripod::v1::ray_client::RayClient;
use tripod_proto::tripod::v1::{JobSpec, RayStatusRequest, RayTasksRequest};

use self::harm::{Harm, Seat};
use self::life::{Life, Rough};
use self::shelf::Shelf;
use super::Setting;
use crate::client::{Answer, Client, to_job};
use crate::invariant::scheduled_work::ScheduledWork;
use crate::witness::{Witness, now};
use tripod_checkers::history::ClientId;

/// The job of the scheduler.
pub(crate) const JOB: &str = "scheduler";
/// The host of all its peers.
pub(crate) const HOST: &str = "peers";

const STORE_PORTS: [u16; 2] = [5000, 5001];
const WORKERS: usize = 4;
const DRIVERS: usize = 2;
/// Everything that was dropped must be gone within so many milliseconds.
const EMPTY_WITHIN_MS: u64 = 30_000;

/// Whether there is a scheduler in the run of a seed: in every fifth one, for a run with it takes twice as long.
pub(crate) fn is_in(seed: u64) -> bool {
    seed.is_multiple_of(5)
}

/// Whether there are sessions of Mars in the run of a seed with a scheduler. Of the seeds that have one by themselves every
/// second one has none, for they make it longer.
fn has_sessions(seed: u64) -> bool {
    seed % 10 != 5
}

/// Whether the scheduler's peers die in the run of a seed. Where they do not, no task may run twice and nothing may
/// be lost.
pub(crate) fn peers_die(seed: u64) -> bool {
    !seed.is_multiple_of(3)
}

/// Where all peers are.
pub(super) struct Machine {
    ip: String,
    /// The stores that live, by their addresses.
    stores: RefCell<BTreeMap<String, Arc<Shelf>>>,
    witness: Witness,
    /// Whether objects may be lost in this run.
    losses: bool,
}

impl Machine {
    fn address(&self, port: u16) -> String {
        format!("{}:{port}", self.ip)
    }

    /// A store of this machine, if it still is the one that is meant.
    fn shelf(&self, address: &str, id: u64) -> Option<Arc<Shelf>> {
        self.stores.borrow().get(address).filter(|shelf| shelf.store == id).cloned()
    }
}

pub(super) async fn run(setting: &Setting) {
    let mut client = setting.client(50);
    client.job(JOB, JobSpec { tasks: 1, ..JobSpec::default() }).await;
    let machine = Machine {
        ip: turmoil::lookup(HOST).to_string(),
        stores: RefCell::default(),
        witness: setting.witness.clone(),
        losses: peers_die(setting.seed),
    };
    let rough = Rough::default();
    let harm = Rc::new(Harm::new(&rough));
    let mut peers: FuturesUnordered<LocalBoxFuture<'_, ()>> = FuturesUnordered::new();
    for port in STORE_PORTS {
        let (client, machine) = (client.sibling(ClientId(51)), &machine);
        let live = move |client, life: Life| async move {
            let end = life.end();
            tokio::select! { biased; () = end => {}, () = store::live(machine, port, client, life) => {} }
            false
        };
        peers.push(keep(Seat::Store(port), client, Rc::clone(&harm), live).boxed_local());
    }
    for place in 0..WORKERS {
        let (client, machine) = (client.sibling(ClientId(52)), &machine);
        let port = STORE_PORTS[place % STORE_PORTS.len()];
        let live = move |client, life: Life| async move {
            let end = life.end();
            tokio::select! { biased; () = end => {}, () = worker::live(machine, port, client, life) => {} }
            false
        };
        peers.push(keep(Seat::Worker(place), client, Rc::clone(&harm), live).boxed_local());
    }
    let drivers = (0..DRIVERS).map(|place| {
        let (client, machine) = (client.sibling(ClientId(53)), &machine);
        let port = STORE_PORTS[place % STORE_PORTS.len()];
        let live = move |client, life| driver::live(machine, port, client, life);
        keep(Seat::Driver(place), client, Rc::clone(&harm), live)
    });
    let drivers = futures::future::join_all(drivers.collect::<Vec<_>>());
    let harming = harm.run(client.sibling(ClientId(54)), machine.losses);
    let callers = [55, 56].map(|id| client.sibling(ClientId(id)));
    let sessions = async {
        if has_sessions(setting.seed) {
            mars::run(&machine, callers).await;
        }
    };
    tokio::select! {
        biased;
        () = async { futures::join!(drivers, sessions); until_empty(client).await } => {}
        () = harming => {}
        () = async { while peers.next().await.is_some() {} } => {}
    }
}

/// Begins a process again whenever it has ended, until it says that it is done.
async fn keep<Living: Future<Output = bool>>(
    seat: Seat,
    mut client: Client,
    harm: Rc<Harm>,
    live: impl Fn(Client, Life) -> Living,
) {
    loop {
        let life = harm.begin(seat, client.dice.random());
        if live(client.sibling_here(), life).await {
            return;
        }
        client.pause(if client.settled() { 300 } else { 3000 }).await;
    }
}

/// The objects that are left, with what they mean, how many references they have, and the operations that made them.
async fn what_is_left(client: &mut Client) -> String {
    let mut scheduler = SchedulerClient::new(client.channel());
    let asked = async move { scheduler.scheduler_info(to_job(JOB, SchedulerInfoRequest {})).await };
    let Answer::Yes(info) = client.ask(asked).await else { return String::new() };
    let counted = info.target_objectid.iter().zip(&info.reference_count).enumerate();
    let objects = counted.filter(|(_, (_, count))| **count != u64::MAX);
    let objects: Vec<_> = objects.map(|(place, (target, count))| (place, *target, *count)).collect();
    let operations = info.computation_graph.unwrap_or_default().operation;
    let operations =
        operations.iter().enumerate().filter(|(_, made)| made.task.is_some() || made.put.is_some());
    let operations: Vec<_> = operations.collect();
    format!("; objects (place, meaning, references): {objects:?}; operations: {operations:?}")
}

/// Waits until nothing is left of what all drivers have dropped.
async fn until_empty(mut client: Client) {
    let began = now();
    let mut seen = "nobody answered".to_owned();
    while now().since_ms(began) < EMPTY_WITHIN_MS {
        let mut ray = RayClient::new(client.channel());
        let asked = async move { ray.status(to_job(JOB, RayStatusRequest {})).await };
        if let Answer::Yes(status) = client.ask(asked).await {
            let left = [
                ("objects", status.objects_live),
                ("queued", status.tasks_queued),
                ("running", status.tasks_running),
                ("gets", status.gets_waiting),
                ("orders", status.orders_waiting),
            ];
            if left.iter().all(|(_, count)| *count == 0) {
                client.witness.note(now(), "scheduler", format_args!("nothing is left"));
                client.witness.scheduled(ScheduledWork::empty);
                return;
            }
            seen = format!("{left:?}");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let mut ray = RayClient::new(client.channel());
    let asked = async move { ray.tasks(to_job(JOB, RayTasksRequest::default())).await };
    if let Answer::Yes(listed) = client.ask(asked).await {
        let open = listed.tasks.into_iter().filter(|task| task.state != "done" && task.state != "failed");
        seen.push_str(&format!("; tasks: {:?}", open.collect::<Vec<_>>()));
    }
    seen.push_str(&what_is_left(&mut client).await);
    let what = format!("{EMPTY_WITHIN_MS} ms after everything was dropped: {seen}");
    client.witness.broken(now(), "what was dropped is gone", what);
}
