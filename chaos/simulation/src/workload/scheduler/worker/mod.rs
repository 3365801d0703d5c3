//! A simulated worker: runs what it is given, in order, and tells what came of it. While a task waits it runs others,
//! and what would wait too long behind one it gives back.

mod execute;
mod inbox;
mod service;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::future::LocalBoxFuture;
use futures::stream::FuturesUnordered;
use tonic::transport::Server;
use tripod_proto::metadata;
use tripod_proto::ray as pb;
use tripod_proto::ray::scheduler_client::SchedulerClient;
use tripod_proto::ray::worker_service_server::WorkerServiceServer;
use tripod_proto::tripod::v1::heartbeat_request::Kind;
use tripod_proto::tripod::v1::ray_call::Call;
use tripod_proto::tripod::v1::ray_peer_server::RayPeerServer;
use tripod_proto::tripod::v1::{RayGiveBackRequest, RayRun};

use self::inbox::{Inbox, Item};
use self::service::Service;
use super::Machine;
use super::beat::{Beats, GoodUntil};
use super::calls::{Calls, Gone, call};
use super::function::FUNCTIONS;
use super::life::Life;
use super::shelf::Shelf;
use crate::client::Client;
use crate::network;
use crate::witness::now;

/// How many tasks a worker may be given at a time: more than wait within each other here.
const SLOTS: u64 = 8;
/// What waits behind a task that runs for this long is given back, and how often that is looked at.
const LONG: Duration = Duration::from_millis(100);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Lives as a worker of the store at that port, until it is given up.
pub(super) async fn live(machine: &Machine, store_port: u16, client: Client, life: Life) {
    let mut calls = Calls::new(client);
    let register = pb::RegisterWorkerRequest {
        node_ip_address: machine.ip.clone(),
        objstore_address: machine.address(store_port),
        is_driver: false,
    };
    let headers = [(metadata::RAY_EXTENDED, 1), (metadata::RAY_SLOTS, SLOTS)];
    let send = async |channel, request| SchedulerClient::new(channel).register_worker(request).await;
    let Ok(registered) = calls.change(register, &headers, send).await else { return };
    let id = registered.workerid;
    calls.process = Some(id);
    let Some(shelf) = machine.shelf(&registered.objstore_address, registered.objstoreid) else { return };
    machine.witness.note(now(), "scheduler", format_args!("worker {id} of store {}", shelf.store));
    let port = registered.worker_address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let Some(port) = port else { return };
    let Ok(incoming) = network::connections(port, life.end()).await else { return };
    let inbox = Arc::new(Inbox::default());
    let witness = machine.witness.clone();
    let service = Service { worker: id, inbox: Arc::clone(&inbox), life: life.clone(), witness };
    let server = Server::builder()
        .add_service(WorkerServiceServer::new(service.clone()))
        .add_service(RayPeerServer::new(service));
    let (beats, good_until) = Beats::new(Kind::Worker, id);
    let beating = calls.client.sibling_here();
    let worker = Worker { machine, id, shelf, life: life.clone(), good_until, inbox };
    tokio::select! {
        biased;
        _ = server.serve_with_incoming(incoming) => {}
        () = beats.run(beating, &life) => {}
        _ = worker.run(calls) => {}
    }
    machine.witness.note(now(), "scheduler", format_args!("worker {id} begins anew"));
}

pub(super) struct Worker<'a> {
    pub(super) machine: &'a Machine,
    id: u64,
    pub(super) shelf: Arc<Shelf>,
    life: Life,
    good_until: GoodUntil,
    pub(super) inbox: Arc<Inbox>,
}

impl Worker<'_> {
    async fn run(&self, mut calls: Calls) -> Result<(), Gone> {
        self.announce(&mut calls).await?;
        let mut doing: FuturesUnordered<LocalBoxFuture<'_, Result<(), Gone>>> = FuturesUnordered::new();
        let mut versions: BTreeMap<String, u64> = BTreeMap::new();
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            tokio::select! {
                biased;
                item = self.inbox.next() => match item {
                    Item::Import(implementation) => {
                        let Some((name, version)) = implementation.rsplit_once(':') else { return Err(Gone) };
                        // The last one counts, whichever that is.
                        versions.insert(name.to_owned(), version.parse().unwrap_or_default());
                        doing.push(self.imported(calls.beside(), name.to_owned()).boxed_local());
                    }
                    Item::Task(task) => {
                        let name = task.task.as_ref().map(|task| String::from_utf8_lossy(&task.name));
                        let version = name.and_then(|name| versions.get(name.as_ref()).copied());
                        doing.push(self.execute(calls.beside(), *task, version).boxed_local());
                    }
                },
                Some(done) = doing.next() => done?,
                _ = looks.tick() => {
                    let given = self.inbox.behind(LONG);
                    if !given.is_empty() {
                        let mut beside = calls.beside();
                        let told = async move { self.give_back(&mut beside, given, false).await };
                        doing.push(told.boxed_local());
                    }
                }
            }
        }
    }

    /// Says which functions it has, and that it can be given a task.
    async fn announce(&self, calls: &mut Calls) -> Result<(), Gone> {
        let workerid = self.id;
        let function = |(name, results): &(&'static str, u64)| {
            let fnname = name.as_bytes().into();
            call(Call::Function(pb::RegisterFunctionRequest { workerid, fnname, num_return_vals: *results }))
        };
        let mut hello: Vec<_> = FUNCTIONS.iter().map(function).collect();
        hello.push(call(Call::Idle(pb::ReadyForNewTaskRequest { workerid, previous_task_info: None })));
        calls.batch(hello, &[]).await.map(drop)
    }

    async fn imported(&self, mut calls: Calls, name: String) -> Result<(), Gone> {
        self.life.awake().await;
        self.machine.witness.count("functions that workers imported");
        let function = pb::RegisterFunctionRequest {
            workerid: self.id,
            fnname: name.into_bytes().into(),
            num_return_vals: 1,
        };
        calls.batch(vec![call(Call::Function(function))], &[]).await.map(drop)
    }

    /// Gives tasks back, and asks for one if more are wanted.
    pub(super) async fn give_back(
        &self,
        calls: &mut Calls,
        runs: Vec<RayRun>,
        wants_more: bool,
    ) -> Result<(), Gone> {
        self.life.awake().await;
        let workerid = self.id;
        if !runs.is_empty() {
            let given = format_args!("worker {workerid} gives back {runs:?}").to_string();
            self.machine.witness.note(now(), "scheduler", format_args!("{given}"));
            self.machine.witness.count("times that tasks were given back");
            calls.batch(vec![call(Call::GiveBack(RayGiveBackRequest { workerid, runs }))], &[]).await?;
        }
        if wants_more {
            let idle = pb::ReadyForNewTaskRequest { workerid, previous_task_info: None };
            calls.batch(vec![call(Call::Idle(idle))], &[]).await?;
        }
        Ok(())
    }
}
