//! What a simulated worker is told.

use std::sync::Arc;

use tonic::{Request, Response, Status};
use tripod_proto::ray as pb;
use tripod_proto::ray::worker_service_server::WorkerService;
use tripod_proto::tripod::v1::ray_order::Order;
use tripod_proto::tripod::v1::ray_peer_server::RayPeer;
use tripod_proto::tripod::v1::{RayOrder, RayTellRequest, RayTellResponse, RayTold};

use super::super::life::{Fate, Life};
use super::inbox::Inbox;
use crate::witness::Witness;

/// The service of one life of a worker.
#[derive(Clone)]
pub(super) struct Service {
    pub(super) worker: u64,
    pub(super) inbox: Arc<Inbox>,
    pub(super) life: Life,
    pub(super) witness: Witness,
}

impl Service {
    fn execute(&self, request: pb::ExecuteTaskRequest) -> Result<(), Status> {
        // The port may have been another worker's.
        if request.workerid != Some(self.worker) {
            return Err(Status::failed_precondition(format!("this is worker {}", self.worker)));
        }
        self.again(&request, Inbox::task);
        self.inbox.task(request);
        Ok(())
    }

    fn import(&self, request: pb::ImportFunctionRequest) {
        let witness = self.witness.clone();
        self.again(&request, move |inbox, request| {
            if !take_import(inbox, request) {
                witness.count("imports that came too late");
            }
        });
        take_import(&self.inbox, request);
    }

    /// Now and then an order comes once more, when much may have happened.
    fn again<M: Clone + Send + 'static>(&self, order: &M, take: impl FnOnce(&Inbox, M) + Send + 'static) {
        let Some(after) = self.life.comes_again() else { return };
        let (inbox, life, order) = (Arc::clone(&self.inbox), self.life.clone(), order.clone());
        tokio::spawn(async move {
            let end = life.end();
            tokio::select! {
                biased;
                () = end => {}
                () = async { tokio::time::sleep(after).await; life.awake().await } => take(&inbox, order),
            }
        });
    }

    fn one(&self, order: RayOrder) -> Result<(), Status> {
        match order.order {
            Some(Order::Execute(request)) => self.execute(request),
            Some(Order::Function(request)) => {
                self.import(request);
                Ok(())
            }
            // It ends soon by itself, and whatever it says then, it was cancelled.
            Some(Order::Cancel(_)) => {
                self.witness.count("tasks that were to end");
                Ok(())
            }
            _ => Err(Status::unimplemented("a worker of a simulation is not told this")),
        }
    }

    fn all(&self, orders: Vec<RayOrder>) -> Vec<RayTold> {
        let mut told = Vec::new();
        for order in orders {
            match self.one(order) {
                Ok(()) => told.push(RayTold::default()),
                Err(status) => {
                    told.push(RayTold { code: status.code().into(), text: status.message().to_owned() });
                    break;
                }
            }
        }
        told
    }
}

fn take_import(inbox: &Inbox, request: pb::ImportFunctionRequest) -> bool {
    let implementation = request.function.unwrap_or_default().implementation;
    inbox.import(String::from_utf8_lossy(&implementation).into_owned(), request.exportid)
}

#[tonic::async_trait]
impl RayPeer for Service {
    async fn tell(&self, request: Request<RayTellRequest>) -> Result<Response<RayTellResponse>, Status> {
        let orders = request.into_inner().orders;
        if self.life.receive().await? == Fate::Twice {
            self.all(orders.clone());
        }
        Ok(Response::new(RayTellResponse { orders: self.all(orders) }))
    }
}

#[tonic::async_trait]
impl WorkerService for Service {
    async fn execute_task(
        &self,
        request: Request<pb::ExecuteTaskRequest>,
    ) -> Result<Response<pb::ExecuteTaskReply>, Status> {
        let request = request.into_inner();
        if self.life.receive().await? == Fate::Twice {
            self.execute(request.clone())?;
        }
        self.execute(request)?;
        Ok(Response::new(pb::ExecuteTaskReply {}))
    }

    async fn import_function(
        &self,
        request: Request<pb::ImportFunctionRequest>,
    ) -> Result<Response<pb::ImportFunctionReply>, Status> {
        let request = request.into_inner();
        if self.life.receive().await? == Fate::Twice {
            self.import(request.clone());
        }
        self.import(request);
        Ok(Response::new(pb::ImportFunctionReply {}))
    }

    async fn import_reusable_variable(
        &self,
        _: Request<pb::ImportReusableVariableRequest>,
    ) -> Result<Response<pb::AckReply>, Status> {
        Ok(Response::new(pb::AckReply {}))
    }

    async fn die(&self, _: Request<pb::DieRequest>) -> Result<Response<pb::DieReply>, Status> {
        Ok(Response::new(pb::DieReply {}))
    }
}
