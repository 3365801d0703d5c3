//! A cluster, with machines of object stores and workers.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;
use tripod_processes::cluster::ReservedPorts;
use tripod_wait::{deadline, until_blocking};
use tripod_worker::{Config, Driver, ObjectRef, Task};

use crate::schemas;
use crate::support::{Dev, kill_by, reserve_ports, tripod};

/// As many tasks as `tripod ray tasks` is asked for: more than any test has at a time.
const TASKS_SHOWN: &str = "10000";

/// A store or a worker.
pub(super) struct Daemon(Child);

impl Daemon {
    fn start(command: &str, endpoints: &str, flags: &[&str]) -> Self {
        Self::start_logging(command, endpoints, flags, Stdio::inherit())
    }

    fn start_logging(command: &str, endpoints: &str, flags: &[&str], log: Stdio) -> Self {
        let process = tripod()
            .args([command, "--exit-with-parent", "--endpoints", endpoints])
            .args(flags)
            .env("TRIPOD_LOG", "warn")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("starts");
        Self(process)
    }

    /// The line that a store prints when it serves.
    fn said(&mut self) -> Value {
        let mut line = String::new();
        let output = self.0.stdout.as_mut().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("readable");
        serde_json::from_str(&line).expect("one line of JSON")
    }

    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(super) fn runs(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

/// Killed, without time for anything.
impl Drop for Daemon {
    fn drop(&mut self) {
        if self.runs() {
            kill_by(self.0.id());
            // There is nobody to tell when even this fails.
            let _ = self.0.wait();
        }
    }
}

/// Nodes, and machines of one store and some workers each. Every machine has an address of its own.
pub(super) struct Site {
    pub(super) dev: Dev,
    pub(super) machines: Vec<Machine>,
    data: PathBuf,
    ports: ReservedPorts,
    stores_started: usize,
}

/// An address of the loopback network with an object store, and workers.
pub(super) struct Machine {
    pub(super) host: String,
    pub(super) store: Daemon,
    pub(super) workers: Vec<Daemon>,
}

impl Site {
    /// Starts it, and waits until every worker is idle.
    pub(super) fn start(data: &Path, machines: usize, workers: usize) -> Self {
        let ports = reserve_ports();
        let dev = Dev::start(&ports, &data.join("nodes"), &["--restart"]);
        let mut site = Self::of(dev, ports, data);
        for _ in 0..machines {
            let machine = site.new_machine(workers);
            site.machines.push(machine);
        }
        // Before the first process registers there is no scheduler that could be asked.
        if machines > 0 {
            site.until_workers(machines * workers);
        }
        site
    }

    /// Nodes that run already, at these ports.
    pub(super) fn of(dev: Dev, ports: ReservedPorts, data: &Path) -> Self {
        Self { dev, machines: Vec::new(), data: data.to_owned(), ports, stores_started: 0 }
    }

    /// The same with nodes of this build, on the same data.
    pub(super) fn upgraded(self, nodes: &Path) -> Self {
        let Self { dev, machines, data, ports, stores_started } = self;
        dev.end();
        let dev = Dev::start(&ports, nodes, &[]);
        Self { dev, machines, data, ports, stores_started }
    }

    /// Another machine, whose store serves and whose workers have been started.
    pub(super) fn new_machine(&mut self, workers: usize) -> Machine {
        self.new_machine_with(workers, &[])
    }

    /// The same, with more flags for the store.
    pub(super) fn new_machine_with(&mut self, workers: usize, more: &[&str]) -> Machine {
        let host = self.next_host();
        let (store, _) = self.new_store_with(&host, more);
        let workers = (0..workers).map(|_| self.new_worker(&host)).collect();
        Machine { host, store, workers }
    }

    /// The address of the next machine.
    pub(super) fn next_host(&self) -> String {
        host_of(&self.ports, self.stores_started)
    }

    /// Another store at a host, which serves, and its address.
    pub(super) fn new_store(&mut self, host: &str) -> (Daemon, String) {
        self.new_store_with(host, &[])
    }

    /// The same, with more flags.
    pub(super) fn new_store_with(&mut self, host: &str, more: &[&str]) -> (Daemon, String) {
        // Short: the path of a socket has room for some 100 bytes.
        let folder = self.data.join(format!("s{}", self.stores_started)).display().to_string();
        self.stores_started += 1;
        let listen = format!("{host}:0");
        let flags = [&["--json", "--listen", &listen, "--directory", &folder], more].concat();
        let mut store = Daemon::start("objstore", &self.dev.endpoints(1), &flags);
        let said = store.said();
        schemas::check("objstore", &said);
        let address = said["address"].as_str().expect("an address").to_owned();
        (store, address)
    }

    /// Another machine without workers, whose store holds no more than that.
    pub(super) fn new_small_machine(&mut self, capacity_mib: u32) -> Machine {
        self.new_machine_with(0, &["--capacity-mib", &capacity_mib.to_string()])
    }

    /// A store and a worker of the next machine, which have been started and may not have registered. What the worker logs
    /// goes to that file.
    pub(super) fn begin_machine(&mut self, log: &Path) -> Machine {
        let host = self.next_host();
        let folder = self.data.join(format!("s{}", self.stores_started)).display().to_string();
        self.stores_started += 1;
        let (endpoints, listen) = (self.dev.endpoints(1), format!("{host}:0"));
        let store = Daemon::start("objstore", &endpoints, &["--listen", &listen, "--directory", &folder]);
        let log = File::create(log).expect("a file").into();
        let worker = Daemon::start_logging("worker", &endpoints, &["--host", &host], log);
        Machine { host, store, workers: vec![worker] }
    }

    /// Another worker of a machine.
    pub(super) fn new_worker(&self, host: &str) -> Daemon {
        self.new_worker_with(host, &[])
    }

    /// The same, with more flags.
    pub(super) fn new_worker_with(&self, host: &str, more: &[&str]) -> Daemon {
        Daemon::start("worker", &self.dev.endpoints(1), &[&["--host", host], more].concat())
    }

    pub(super) fn until_workers(&self, wanted: usize) {
        until_blocking("idle workers", || (self.workers_in("idle") == wanted).then_some(()));
    }

    /// How many workers are in this state.
    pub(super) fn workers_in(&self, state: &str) -> usize {
        let status = self.status();
        let workers = status["workers"].as_array().expect("a list");
        workers.iter().filter(|worker| worker["kind"] == "worker" && worker["state"] == state).count()
    }

    pub(super) fn status(&self) -> Value {
        self.dev.json(&["ray", "status", "--json"])
    }

    /// The tasks that the scheduler remembers: those whose results are referred to, at least.
    pub(super) fn tasks(&self) -> Vec<Value> {
        let tasks = self.dev.json(&["ray", "tasks", "--limit", TASKS_SHOWN, "--json"]);
        tasks.as_array().expect("a list").clone()
    }

    /// How a driver of a machine begins.
    pub(super) fn config(&self, machine: usize) -> Config {
        let endpoints = self.dev.endpoints(2).split(',').map(str::to_owned).collect();
        Config { host: self.machines[machine].host.clone(), ..Config::local(endpoints) }
    }

    pub(super) async fn driver(&self, machine: usize) -> Driver {
        Driver::begin(&self.config(machine)).await.expect("a driver")
    }

    /// Waits until nothing refers to anything any more.
    pub(super) fn until_empty(&self) {
        until_blocking("that every object is gone", || (self.status()["objects"]["live"] == 0).then_some(()));
    }

    /// Every store and every worker runs, and none was given up.
    pub(super) fn assert_all_alive(&mut self) {
        let mut workers = 0;
        for machine in &mut self.machines {
            assert!(machine.store.runs(), "the store of {} has ended", machine.host);
            assert!(machine.workers.iter_mut().all(Daemon::runs), "a worker of {} has ended", machine.host);
            workers += machine.workers.len();
        }
        let status = self.status();
        let alive = |list: &str, is_alive: fn(&Value) -> bool| {
            let listed = status[list].as_array().expect("a list");
            assert!(listed.iter().all(is_alive), "{status:#}");
            listed.len()
        };
        assert_eq!(alive("stores", |store| store["state"] == "alive"), self.machines.len(), "{status:#}");
        assert!(alive("workers", |worker| worker["state"] != "dead") >= workers, "{status:#}");
    }
}

/// An address of the loopback network that no other test uses: workers listen at ports that the scheduler chooses.
fn host_of(ports: &ReservedPorts, place: usize) -> String {
    let [high, low] = ports.first().to_be_bytes();
    let place = u8::try_from(place + 1).expect("few machines");
    Ipv4Addr::new(127, 100 + place, high, low.max(1)).to_string()
}

/// Submits a task of one result.
/// Whether an attempt before the present one was begun. One that found no way to its worker was not, nor one that was
/// given back.
pub(super) fn was_begun_before(task: &Value) -> bool {
    let begun = |ended: &Value| !ended.as_str().is_some_and(|ended| ended.ends_with("was never handed over"));
    task["history"].as_array().expect("a list").iter().any(begun)
}

pub(super) async fn one(driver: &Driver, task: Task) -> ObjectRef {
    let mut results = driver.submit(&task).await.expect("submitted");
    assert_eq!(results.len(), 1);
    results.pop().expect("a result")
}

/// An object that is a number.
pub(super) async fn number(driver: &Driver, object: &ObjectRef) -> i64 {
    driver.get_within(object, deadline()).await.expect("a number")
}

/// Waits until all of the objects are decided.
pub(super) async fn all_decided(driver: &Driver, objects: &[ObjectRef], patience: Duration) {
    let decided = driver.wait(objects, 0, patience).await.expect("an answer");
    let missing = decided.iter().filter(|decided| !**decided).count();
    assert_eq!(missing, 0, "of {} objects", objects.len());
}

/// A number more, of an object that is a number.
pub(super) fn add(left: &ObjectRef, right: i64) -> Task {
    Task::of("tripod.add").object(left).arg(&right).expect("a number")
}
