//! One order, made ready to be sent, and what came of sending it.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use prost::Message as _;
use tonic::{Code, Request, Status};
use tripod_proto::ray as pb;
use tripod_proto::ray::obj_store_client::ObjStoreClient;
use tripod_proto::ray::worker_service_client::WorkerServiceClient;
use tripod_proto::tripod::v1::ray_peer_client::RayPeerClient;
use tripod_proto::tripod::v1::{
    RayCancelOrder, RayOrder, RayRun, RayTellRequest, RayTellResponse, ray_order,
};
use tripod_state::State;
use tripod_state::ids::{JobId, NodeId};
use tripod_state::ray::ids::ExportId;
use tripod_state::ray::view::Export;
use tripod_state::ray::{Order, Ray, Source, Unfit};

use super::links::Links;
use crate::graph;

/// How long a peer may take to answer: it only says that it has the order.
const DEADLINE: Duration = Duration::from_secs(10);

/// An order with all that its message needs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ready {
    pub(super) address: String,
    pub(super) message: Message,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Message {
    Execute(Box<pb::ExecuteTaskRequest>),
    Function(pb::ImportFunctionRequest),
    Variable(pb::ImportReusableVariableRequest),
    Die,
    Deliver(pb::StartDeliveryRequest),
    Alias(pb::NotifyAliasRequest),
    Deallocate(pb::DeallocateObjectRequest),
    Cancel(RayCancelOrder),
}

/// What came of sending an order.
#[derive(Debug, Clone)]
pub(super) enum Sent {
    /// The peer has it.
    Taken,
    /// The peer answered that it does not take it.
    Refused(Status),
    /// Nothing was sent.
    Unreachable(String),
    /// The peer may have it.
    Doubtful(String),
}

/// What came of sending many.
#[derive(Debug)]
pub(super) struct SendOutcome {
    /// So many were taken, from the first on.
    pub(super) taken: usize,
    /// The peer takes them one at a time.
    pub(super) plain: bool,
}

impl Ready {
    /// The order as the state has it now. `None`: there is nothing left to be told, or nobody to be told.
    pub(super) fn of(
        state: &State,
        ray: &Ray,
        (job, node): (JobId, NodeId),
        unfit: &Unfit,
        order: &Order,
    ) -> Option<Self> {
        let (address, message) = match order {
            Order::Execute { worker, run } => {
                let execution = ray.execution(*run)?;
                let message = pb::ExecuteTaskRequest {
                    task: Some(graph::task(&execution)),
                    operationid: Some(run.operation.0),
                    attempt: run.attempt.0,
                    workerid: Some(worker.0),
                    store_output: execution.store_output,
                    elsewhere: ray.may_go_elsewhere(*run, unfit),
                };
                (ray.worker(*worker)?.address, Message::Execute(Box::new(message)))
            }
            Order::Import { worker, export } => {
                (ray.worker(*worker)?.address, import(*export, &ray.export(*export)?))
            }
            Order::Die { worker } => (ray.worker(*worker)?.address, Message::Die),
            Order::Deliver { store, from, object } => {
                let objstore_address = match from {
                    Source::Store(source) => ray.store(*source)?.address,
                    Source::Coordinator => here(state, job, node).unwrap_or_default(),
                };
                let message = pb::StartDeliveryRequest {
                    objstore_address,
                    objectid: object.0,
                    objstoreid: Some(store.0),
                };
                (ray.store(*store)?.address, Message::Deliver(message))
            }
            Order::NotifyAlias { store, alias, canonical } => {
                let message = pb::NotifyAliasRequest {
                    alias_objectid: alias.0,
                    canonical_objectid: canonical.0,
                    objstoreid: Some(store.0),
                };
                (ray.store(*store)?.address, Message::Alias(message))
            }
            Order::Deallocate { store, object } => {
                let message =
                    pb::DeallocateObjectRequest { canonical_objectid: object.0, objstoreid: Some(store.0) };
                (ray.store(*store)?.address, Message::Deallocate(message))
            }
            Order::Cancel { worker, run, grace_ms } => {
                let run = RayRun { operationid: run.operation.0, attempt: run.attempt.0 };
                let message = RayCancelOrder { run: Some(run), grace_ms: grace_ms.0 };
                (ray.worker(*worker)?.address, Message::Cancel(message))
            }
        };
        Some(Self { address, message })
    }

    /// Tells the peer.
    pub(super) async fn send(&self, links: &Links) -> Sent {
        if !self.is_whole() {
            return Sent::Unreachable("this node has announced no place where it serves the job".to_owned());
        }
        let channel = match links.to(&self.address).await {
            Ok(channel) => channel,
            Err(why) => return Sent::Unreachable(why),
        };
        let told = tokio::time::timeout(DEADLINE, self.call(channel)).await;
        match told {
            Ok(Ok(())) => Sent::Taken,
            // A status that this side made up comes with the transport's error; the peer's own has none.
            Ok(Err(status)) if status.source().is_some() => {
                links.broken(&self.address);
                Sent::Doubtful(status.to_string())
            }
            Ok(Err(status)) => Sent::Refused(status),
            Err(_) => {
                links.broken(&self.address);
                Sent::Doubtful(format!("no answer within {DEADLINE:?}"))
            }
        }
    }

    /// Tells the peer many orders, which all go to one address. Those that were not taken, for whatever reason, are
    /// to be sent one by one, which shows the reason.
    pub(super) async fn send_all(orders: &[Self], links: &Links) -> SendOutcome {
        let mut told = SendOutcome { taken: 0, plain: false };
        let Some(Self { address, .. }) = orders.first() else { return told };
        let Ok(channel) = links.to(address).await else { return told };
        let mut peer = RayPeerClient::new(channel);
        match tokio::time::timeout(DEADLINE, peer.tell(together(orders))).await {
            Ok(Ok(answer)) => told.taken = taken(answer.get_ref(), orders.len()),
            Ok(Err(status)) if status.source().is_none() => told.plain = status.code() == Code::Unimplemented,
            Ok(Err(_)) | Err(_) => links.broken(address),
        }
        told
    }

    /// Whether nothing is missing: an error is fetched from this node, which may not be reachable for others.
    pub(super) fn is_whole(&self) -> bool {
        !matches!(&self.message, Message::Deliver(message) if message.objstore_address.is_empty())
    }

    /// About how large the message is, in bytes.
    pub(super) fn size_bytes(&self) -> usize {
        match &self.message {
            Message::Execute(message) => message.encoded_len(),
            Message::Function(message) => message.encoded_len(),
            Message::Variable(message) => message.encoded_len(),
            Message::Die
            | Message::Deliver(_)
            | Message::Alias(_)
            | Message::Deallocate(_)
            | Message::Cancel(_) => 0,
        }
    }

    async fn call(&self, channel: tonic::transport::Channel) -> Result<(), Status> {
        let worker = || WorkerServiceClient::new(channel.clone());
        let store = || ObjStoreClient::new(channel.clone());
        match self.message.clone() {
            Message::Execute(message) => worker().execute_task(Request::new(*message)).await.map(drop),
            Message::Function(message) => worker().import_function(message).await.map(drop),
            Message::Variable(message) => worker().import_reusable_variable(message).await.map(drop),
            Message::Die => worker().die(pb::DieRequest {}).await.map(drop),
            Message::Deliver(message) => store().start_delivery(message).await.map(drop),
            Message::Alias(message) => store().notify_alias(message).await.map(drop),
            Message::Deallocate(message) => store().deallocate_object(message).await.map(drop),
            // Workers of 2016 are told no such thing, so there is no call of that time for it.
            Message::Cancel(_) => {
                let mut peer = RayPeerClient::new(channel.clone());
                told_alone(peer.tell(together(std::slice::from_ref(self))).await?.into_inner())
            }
        }
    }
}

/// What a peer said of the only order that it was told.
fn told_alone(answer: RayTellResponse) -> Result<(), Status> {
    match answer.orders.into_iter().next() {
        Some(told) if told.code == 0 => Ok(()),
        Some(told) => Err(Status::new(Code::from_i32(told.code), told.text)),
        None => Err(Status::unavailable("the peer says nothing of the order")),
    }
}

impl Message {
    fn order(&self) -> RayOrder {
        let order = match self.clone() {
            Self::Execute(message) => ray_order::Order::Execute(*message),
            Self::Function(message) => ray_order::Order::Function(message),
            Self::Variable(message) => ray_order::Order::Variable(message),
            Self::Die => ray_order::Order::Die(pb::DieRequest {}),
            Self::Deliver(message) => ray_order::Order::Deliver(message),
            Self::Alias(message) => ray_order::Order::Alias(message),
            Self::Deallocate(message) => ray_order::Order::Deallocate(message),
            Self::Cancel(message) => ray_order::Order::Cancel(message),
        };
        RayOrder { order: Some(order) }
    }
}

impl Sent {
    /// Whether the peer has only no room or no time now.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self, Self::Refused(status)
            if matches!(status.code(), Code::Unavailable | Code::ResourceExhausted | Code::DeadlineExceeded))
    }
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken => f.write_str("taken"),
            Self::Refused(status) => write!(f, "refused: {status}"),
            Self::Unreachable(why) => write!(f, "not sent: {why}"),
            Self::Doubtful(why) => write!(f, "not answered: {why}"),
        }
    }
}

/// Orders for one peer as one message.
pub(super) fn together(orders: &[Ready]) -> RayTellRequest {
    RayTellRequest { orders: orders.iter().map(|order| order.message.order()).collect() }
}

/// How many of so many orders a peer took, from the first on.
pub(super) fn taken(answer: &RayTellResponse, orders: usize) -> usize {
    answer.orders.iter().take(orders).take_while(|told| told.code == 0).count()
}

/// Bodies were decoded when they came, so they can be decoded again.
fn import(id: ExportId, export: &Export) -> Message {
    let exportid = Some(id.0);
    match export {
        Export::Function(body) => {
            let function = pb::Function::decode(body.clone()).unwrap_or_default();
            Message::Function(pb::ImportFunctionRequest { function: Some(function), exportid })
        }
        Export::Variable(body) => {
            let variable = pb::ReusableVar::decode(body.clone()).unwrap_or_default();
            let reusable_variable = Some(variable);
            Message::Variable(pb::ImportReusableVariableRequest { reusable_variable, exportid })
        }
    }
}

/// Where this node serves that job: a store of 2016 says nothing of a job when it fetches, so it must come to the
/// job's own port.
fn here(state: &State, job: JobId, node: NodeId) -> Option<String> {
    let slot = state.job(job)?.slot;
    let (_, addresses) = state.members().into_iter().find(|(member, _)| *member == node)?;
    addresses.job(slot).map(|place| place.to_string())
}
