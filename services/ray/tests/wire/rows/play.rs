//! Plays a scenario undisturbed, and then once for each of its steps with the leader killed after that.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;

use tripod_proto::ray as pb;
use tripod_proto::ray::obj_store_client::ObjStoreClient;
use tripod_state::ray::Peer;
use tripod_state::ray::ids::{StoreId, WorkerId};

use crate::support::store::{Call as StoreCall, Store};
use crate::support::worker::{Call, Worker};
use crate::support::{Cluster, Kind, until};

/// A cluster on whose calls steps are counted.
pub(super) struct Play {
    pub(super) cluster: Cluster,
    steps: u64,
    kill_after: u64,
    /// Tasks that workers were given. A new leader gives a worker of 2016 its task again: the attempt tells.
    given: HashSet<(u64, u32)>,
    /// Whether the scheduler is small enough to be shown as a whole.
    small: bool,
    /// What workers imported.
    imported: HashSet<(u64, String)>,
}

/// What can be seen in the end.
#[derive(Debug, PartialEq)]
struct Ended {
    /// Unless it is too large for a message.
    info: Option<pb::SchedulerInfoReply>,
    tasks: pb::TaskInfoReply,
}

type Scene<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A scenario of calls and of what peers do. What it asserts must hold wherever the leader dies, and the end must be
/// the same.
pub(super) async fn everywhere(kind: fn() -> Kind, scene: for<'a> fn(&'a mut Play) -> Scene<'a>) {
    let (wanted, steps) = run(kind(), 0, scene).await;
    assert!(steps > 0, "a scenario has steps");
    for step in 1..=steps {
        let ended = tokio::spawn(run(kind(), step, scene)).await;
        let (ended, _) = ended.unwrap_or_else(|error| panic!("the leader died after step {step}: {error}"));
        assert_eq!(ended, wanted, "the leader died after step {step}");
    }
}

async fn run(kind: Kind, kill_after: u64, scene: for<'a> fn(&'a mut Play) -> Scene<'a>) -> (Ended, u64) {
    let small = kind.prepared.is_none();
    let cluster = Cluster::of(kind).await;
    let (given, imported) = (HashSet::new(), HashSet::new());
    let mut play = Play { cluster, steps: 0, kill_after, given, small, imported };
    scene(&mut play).await;
    assert!(kill_after <= play.steps, "the leader was killed");
    let mut info = None;
    if play.small {
        info.insert(play.cluster.info().await).avail_worker.sort_unstable();
    }
    let tasks = play.cluster.task_info().await;
    (Ended { info, tasks }, play.steps)
}

impl Play {
    /// A step is over: perhaps the leader is too.
    pub(super) async fn step(&mut self) {
        self.steps += 1;
        if self.steps == self.kill_after {
            self.cluster.kill_leader().await;
        }
    }

    pub(super) async fn submit(&mut self, from: u64, name: &'static str, arg: Vec<pb::Value>) -> Vec<u64> {
        let results = self.cluster.submit(from, name, arg).await;
        self.step().await;
        results
    }

    /// A value that a process puts, with one handle to it.
    pub(super) async fn put(&mut self, from: u64, store: &Store) -> u64 {
        let object = self.cluster.put(from).await;
        self.step().await;
        self.cluster.inc(&[object]).await;
        self.step().await;
        self.ready(object, store).await;
        object
    }

    pub(super) async fn ready(&mut self, object: u64, store: &Store) {
        self.cluster.ready(object, store).await;
        self.step().await;
    }

    /// A store could not fetch an object from there.
    pub(super) async fn cannot_fetch(&mut self, store: &Store, object: u64, absent_at: &str) {
        let told = self.cluster.fetch_failed(object, store.id, absent_at, false).await;
        assert_eq!(told.code, 0, "{}", told.text);
        self.step().await;
    }

    /// Waits until a store is told to fetch an object from somewhere.
    pub(super) async fn is_to_fetch(&mut self, store: &Store, object: u64, from: &str) {
        loop {
            match store.calls.next().await {
                StoreCall::Deliver { from: told, object: wanted } if told == from && wanted == object => {
                    break;
                }
                StoreCall::Deliver { .. } | StoreCall::Alias { .. } | StoreCall::Deallocate(_) => {}
            }
        }
    }

    pub(super) async fn get(&mut self, from: u64, object: u64) {
        self.cluster.get(from, object).await;
        self.step().await;
    }

    pub(super) async fn alias(&mut self, alias: u64, target: u64) {
        self.cluster.alias(alias, target).await.expect("aliased");
        self.step().await;
    }

    pub(super) async fn done(&mut self, worker: &Worker) {
        self.cluster.done(worker.id).await;
        self.step().await;
    }

    /// A worker's process ends, and is given up.
    pub(super) async fn worker_dies(&mut self, worker: &mut Worker) {
        worker.die();
        self.cluster.expire(vec![Peer::Worker(WorkerId(worker.id))]).await;
        self.step().await;
    }

    /// A store ends with the workers of its machine, and is given up.
    pub(super) async fn store_dies(&mut self, store: &mut Store, workers: &mut [&mut Worker]) {
        store.die();
        for worker in workers {
            worker.die();
        }
        self.cluster.expire(vec![Peer::Store(StoreId(store.id))]).await;
        self.step().await;
    }

    /// The next task of a worker that it was not given before, after whatever it is to import.
    pub(super) async fn task(&mut self, worker: &Worker) -> pb::ExecuteTaskRequest {
        loop {
            match worker.calls.next().await {
                Call::Execute(task) => {
                    if self.given.insert((task.operationid.expect("ours tell it"), task.attempt)) {
                        return task;
                    }
                }
                Call::Function(name) => {
                    self.imported.insert((worker.id, name));
                }
                other => panic!("no task: {other:?}"),
            }
        }
    }

    /// Which of the workers has a task.
    pub(super) async fn busy(&mut self, workers: &[Worker]) -> usize {
        let mut busy = None;
        until("a worker has a task", || {
            let workers = self.cluster.seen().map(|ray| ray.workers()).unwrap_or_default();
            let found = workers.into_iter().find(|worker| !worker.running.is_empty());
            busy = found.map(|found| found.id.0);
            busy.is_some()
        })
        .await;
        workers.iter().position(|worker| Some(worker.id) == busy).expect("it is one of them")
    }

    /// A worker takes its next task and does it, with all results at its store.
    pub(super) async fn runs(&mut self, worker: &Worker, store: &Store) -> pb::ExecuteTaskRequest {
        let told = self.task(worker).await;
        for result in &told.task.as_ref().expect("a task").result {
            self.ready(*result, store).await;
        }
        self.done(worker).await;
        told
    }

    /// The next export that a worker did not have.
    pub(super) async fn imports(&mut self, worker: &Worker) -> String {
        loop {
            match worker.calls.next().await {
                Call::Function(name) if self.imported.insert((worker.id, name.clone())) => return name,
                Call::Function(_) => {}
                other => panic!("no export: {other:?}"),
            }
        }
    }

    /// Waits until a store is told to fetch from the node what stands for an object that cannot be had. Another node may
    /// lead by then, and serve it too.
    pub(super) async fn fetches_failed(&mut self, store: &Store, object: u64, node: &str) {
        self.fetches(store, object, node).await;
        let asked = pb::StreamObjToRequest { objectid: object, ..Default::default() };
        let mut node = ObjStoreClient::new(self.cluster.connect().await);
        let mut chunks = node.stream_obj_to(asked).await.expect("it has failed").into_inner();
        assert!(chunks.message().await.expect("a stream").is_some());
    }

    /// Waits until a store is told to fetch an object from somewhere, and it does.
    pub(super) async fn fetches(&mut self, store: &Store, object: u64, from: &str) {
        self.is_to_fetch(store, object, from).await;
        self.ready(object, store).await;
    }
}
