//! A simulated object store: its service, what it fetches, and what it reports.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{BoxStream, FuturesUnordered};
use rand::RngExt as _;
use tokio::sync::mpsc;
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use tripod_proto::mars::v1::worker_server::WorkerServer;
use tripod_proto::metadata;
use tripod_proto::ray as pb;
use tripod_proto::ray::obj_store_client::ObjStoreClient;
use tripod_proto::ray::obj_store_server::{ObjStore, ObjStoreServer};
use tripod_proto::ray::scheduler_client::SchedulerClient;
use tripod_proto::tripod::v1::heartbeat_request::Kind;
use tripod_proto::tripod::v1::ray_call::Call;
use tripod_proto::tripod::v1::{RayCall, RayFetchFailedRequest};

use super::beat::Beats;
use super::calls::{Calls, Gone, call};
use super::life::{Fate, Life};
use super::mars;
use super::shelf::{Report, Shelf};
use super::value::{Value, of_node};
use super::{JOB, Machine};
use crate::client::{Client, to_job};
use crate::network;
use crate::witness::now;

/// Between attempts to fetch an object.
const PAUSE: Duration = Duration::from_millis(100);
/// So often it is tried: longer than a run takes, as the real store tries for a minute.
const ATTEMPTS: usize = 1000;

/// Lives as the store at that port, until it is given up.
pub(super) async fn live(machine: &Machine, port: u16, client: Client, life: Life) {
    let address = machine.address(port);
    let mut calls = Calls::new(client);
    let register = pb::RegisterObjStoreRequest { objstore_address: address.clone() };
    let send = async |channel, request| SchedulerClient::new(channel).register_obj_store(request).await;
    let Ok(registered) = calls.change(register, &[(metadata::RAY_EXTENDED, 1)], send).await else { return };
    let id = registered.objstoreid;
    machine.witness.note(now(), "scheduler", format_args!("store {id} at {address}"));
    let (shelf, mut reports) = Shelf::new(id);
    let shelf = Arc::new(shelf);
    machine.stores.borrow_mut().insert(address.clone(), Arc::clone(&shelf));
    let _end = Ending { machine, address, shelf: Arc::clone(&shelf) };
    let (orders, ordered) = mpsc::unbounded_channel();
    let service = Service { shelf: Arc::clone(&shelf), orders, life: life.clone() };
    let chunks =
        mars::Chunks { shelf: Arc::clone(&shelf), life: life.clone(), witness: machine.witness.clone() };
    let Ok(incoming) = network::connections(port, life.end()).await else { return };
    let serving = Server::builder()
        .add_service(ObjStoreServer::new(service))
        .add_service(WorkerServer::new(chunks))
        .serve_with_incoming(incoming);
    let (beats, _good_until) = Beats::new(Kind::Store, id);
    let (beating, fetching) = (calls.client.sibling_here(), calls.client.sibling_here());
    tokio::select! {
        biased;
        _ = serving => {}
        () = beats.run(beating, &life) => {}
        () = deliver(machine, fetching, &shelf, &life, ordered) => {}
        _ = report(&mut calls, &shelf, &mut reports, &life) => {}
    }
}

/// Whoever waits at a store that ends must learn it, however it ends.
struct Ending<'a> {
    machine: &'a Machine,
    address: String,
    shelf: Arc<Shelf>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.shelf.die();
        self.machine.stores.borrow_mut().remove(&self.address);
        self.machine.witness.note(now(), "scheduler", format_args!("store {} is gone", self.shelf.store));
    }
}

/// Tells what became ready, once and in order.
async fn report(
    calls: &mut Calls,
    shelf: &Shelf,
    reports: &mut mpsc::UnboundedReceiver<Report>,
    life: &Life,
) -> Result<(), Gone> {
    let mut waiting = Vec::new();
    while reports.recv_many(&mut waiting, 64).await > 0 {
        life.awake().await;
        let objstoreid = shelf.store;
        let told = |report: &Report| match *report {
            Report::Ready { object, run } => {
                let ready = pb::ObjReadyRequest { objectid: object, objstoreid };
                RayCall { run, ..call(Call::Ready(ready)) }
            }
            Report::Refused { object } => {
                let absent_at = String::new();
                let failed = RayFetchFailedRequest { objstoreid, objectid: object, absent_at, told: true };
                call(Call::FetchFailed(failed))
            }
        };
        let told = calls.batch(waiting.iter().map(told).collect(), &["deallocated", "aliased"]).await?;
        for (report, result) in waiting.drain(..).zip(told) {
            match report {
                // The cluster does not count this copy, so it would never have it freed.
                Report::Ready { object, .. } if result.code != 0 => shelf.deallocate(object),
                Report::Ready { .. } => {}
                Report::Refused { object } => shelf.heard_of(object),
            }
        }
    }
    Ok(())
}

struct Order {
    object: u64,
    from: String,
}

/// Fetches what is ordered, many at a time. Now and then it is as if an object could not come here.
async fn deliver(
    machine: &Machine,
    mut client: Client,
    shelf: &Shelf,
    life: &Life,
    mut orders: mpsc::UnboundedReceiver<Order>,
) {
    let mut under_way = FuturesUnordered::new();
    let mut fetched = BTreeSet::new();
    loop {
        tokio::select! {
            biased;
            order = orders.recv() => {
                let Some(order) = order else { return };
                if !fetched.contains(&order.object) && !shelf.has(order.object) && life.refuses() {
                    machine.witness.count("objects that a store refused");
                    let (store, object) = (shelf.store, order.object);
                    machine.witness.note(now(), "scheduler", format_args!("store {store} refuses {object}"));
                    shelf.refuse(order.object);
                } else {
                    fetched.insert(order.object);
                    under_way.push(fetch(machine, client.sibling_here(), shelf, order));
                }
            }
            Some(object) = under_way.next() => drop(fetched.remove(&object)),
        }
    }
}

/// Fetches one, and gives its id.
async fn fetch(machine: &Machine, mut client: Client, shelf: &Shelf, order: Order) -> u64 {
    let Order { object, from } = &order;
    let note = |what: &str| {
        let store = shelf.store;
        machine.witness.note(now(), "scheduler", format_args!("store {store}: {object} {what} {from}"));
    };
    note("is to come from");
    for _ in 0..ATTEMPTS {
        tokio::time::sleep(Duration::from_millis(client.dice.random_range(1..30))).await;
        if shelf.has(order.object) {
            break;
        }
        match fetch_once(machine, &mut client, &order).await {
            Ok(Some(value)) => {
                let _ = shelf.put(order.object, value, None);
                break;
            }
            // It is not there any more: the cluster finds that out, and orders again if it is still wanted.
            Ok(None) => {
                note("is not at");
                break;
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
    order.object
}

/// `None`: it is not there.
async fn fetch_once(machine: &Machine, client: &mut Client, order: &Order) -> Result<Option<Value>, String> {
    let source = machine.stores.borrow().get(&order.from).cloned();
    if let Some(source) = source {
        return source.look(order.object).map_err(|_| "it has ended".to_owned());
    }
    let Some((host, _)) = order.from.rsplit_once(':').filter(|(host, _)| host.starts_with('n')) else {
        return Err("nobody is there".to_owned());
    };
    let mut node = ObjStoreClient::new(network::channel(host));
    let request = pb::StreamObjToRequest { objectid: order.object, ..pb::StreamObjToRequest::default() };
    let streamed = tokio::time::timeout(Duration::from_secs(2), async {
        let mut stream = node.stream_obj_to(to_job(JOB, request)).await?.into_inner();
        let mut bytes = Vec::new();
        while let Some(chunk) = stream.message().await? {
            bytes.extend_from_slice(&chunk.data);
        }
        Ok::<_, Status>(bytes)
    });
    let bytes = streamed.await.map_err(|_| "late".to_owned())?.map_err(|status| status.to_string())?;
    let value = of_node(&bytes);
    if let Err(what) = &value {
        client.witness.broken(now(), "no value is invented", format!("object {}: {what}", order.object));
    }
    value.map(Some)
}

struct Service {
    shelf: Arc<Shelf>,
    orders: mpsc::UnboundedSender<Order>,
    life: Life,
}

impl Service {
    /// The call is meant for this store. How often it is to be carried out.
    async fn take(&self, meant: Option<u64>) -> Result<std::ops::Range<usize>, Status> {
        let fate = self.life.receive().await?;
        if meant.is_some_and(|meant| meant != self.shelf.store) {
            return Err(Status::failed_precondition("another store is here"));
        }
        Ok(0..1 + usize::from(fate == Fate::Twice))
    }
}

type Acknowledged = Result<Response<pb::AckReply>, Status>;

#[tonic::async_trait]
impl ObjStore for Service {
    type StreamObjToStream = BoxStream<'static, Result<pb::ObjChunk, Status>>;

    async fn start_delivery(&self, request: Request<pb::StartDeliveryRequest>) -> Acknowledged {
        let request = request.into_inner();
        for _ in self.take(request.objstoreid).await? {
            let order = Order { object: request.objectid, from: request.objstore_address.clone() };
            // Who has ended delivers nothing.
            let _ = self.orders.send(order);
        }
        Ok(Response::new(pb::AckReply {}))
    }

    async fn stream_obj_to(
        &self,
        _: Request<pb::StreamObjToRequest>,
    ) -> Result<Response<Self::StreamObjToStream>, Status> {
        Err(Status::unimplemented("stores of a simulation share their memory"))
    }

    async fn notify_alias(&self, request: Request<pb::NotifyAliasRequest>) -> Acknowledged {
        let request = request.into_inner();
        for _ in self.take(request.objstoreid).await? {
            if !self.shelf.alias(request.alias_objectid, request.canonical_objectid) {
                return Err(Status::failed_precondition("the object is not here"));
            }
        }
        Ok(Response::new(pb::AckReply {}))
    }

    async fn deallocate_object(&self, request: Request<pb::DeallocateObjectRequest>) -> Acknowledged {
        let request = request.into_inner();
        for _ in self.take(request.objstoreid).await? {
            self.shelf.deallocate(request.canonical_objectid);
        }
        Ok(Response::new(pb::AckReply {}))
    }

    async fn obj_store_info(
        &self,
        _: Request<pb::ObjStoreInfoRequest>,
    ) -> Result<Response<pb::ObjStoreInfoReply>, Status> {
        self.life.receive().await?;
        let (objectid, objstoreid) = (self.shelf.ids(), Some(self.shelf.store));
        Ok(Response::new(pb::ObjStoreInfoReply { objectid, objstoreid, ..Default::default() }))
    }
}
