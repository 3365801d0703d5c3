//! What the scheduler calls at a worker.

use std::sync::Arc;
use std::time::Duration;

use tonic::{Request, Response, Status};
use tripod_proto::ray::worker_service_server::WorkerService;
use tripod_proto::ray::{
    AckReply, DieReply, DieRequest, ExecuteTaskReply, ExecuteTaskRequest, ImportFunctionReply,
    ImportFunctionRequest, ImportReusableVariableRequest,
};

use tripod_proto::tripod::v1::ray_order::Order;
use tripod_proto::tripod::v1::ray_peer_server::RayPeer;
use tripod_proto::tripod::v1::{RayOrder, RayTellRequest, RayTellResponse, RayTold};

use crate::worker::inbox::Inbox;

/// The longest time that a task is given to end, in milliseconds; the scheduler gives no more.
const GRACE_MS_MAX: u64 = 10 * 60 * 1_000;

/// The service of one life of a worker.
#[derive(Clone)]
pub(super) struct Service {
    worker: u64,
    inbox: Arc<Inbox>,
}

impl Service {
    pub(super) fn new(worker: u64, inbox: Arc<Inbox>) -> Self {
        Self { worker, inbox }
    }

    fn take(&self, request: ExecuteTaskRequest) -> Result<(), Status> {
        // The port may have been another worker's, which is gone.
        if request.workerid.is_some_and(|worker| worker != self.worker) {
            return Err(Status::failed_precondition(format!("this is worker {}", self.worker)));
        }
        self.inbox.task(request);
        Ok(())
    }

    fn one(&self, order: RayOrder) -> Result<(), Status> {
        match order.order {
            Some(Order::Execute(request)) => self.take(request),
            // A function of another language is none that this worker could execute.
            Some(Order::Function(_)) => Ok(()),
            Some(Order::Variable(request)) => {
                self.inbox.variable(request);
                Ok(())
            }
            Some(Order::Die(_)) => {
                self.inbox.end();
                Ok(())
            }
            Some(Order::Cancel(request)) => {
                let run = request.run.ok_or_else(|| Status::invalid_argument("run: it is missing"))?;
                self.inbox.cancel(run, Duration::from_millis(request.grace_ms.min(GRACE_MS_MAX)));
                Ok(())
            }
            Some(Order::Deliver(_) | Order::Alias(_) | Order::Deallocate(_)) | None => {
                Err(Status::unimplemented("a worker is not told this; next: look at the versions of both"))
            }
        }
    }
}

#[tonic::async_trait]
impl RayPeer for Service {
    async fn tell(&self, request: Request<RayTellRequest>) -> Result<Response<RayTellResponse>, Status> {
        let mut told = Vec::new();
        for order in request.into_inner().orders {
            match self.one(order) {
                Ok(()) => told.push(RayTold::default()),
                Err(status) => {
                    told.push(RayTold { code: status.code().into(), text: status.message().to_owned() });
                    break;
                }
            }
        }
        Ok(Response::new(RayTellResponse { orders: told }))
    }
}

#[tonic::async_trait]
impl WorkerService for Service {
    async fn execute_task(
        &self,
        request: Request<ExecuteTaskRequest>,
    ) -> Result<Response<ExecuteTaskReply>, Status> {
        self.take(request.into_inner())?;
        Ok(Response::new(ExecuteTaskReply {}))
    }

    /// A function of another language is none that this worker could execute.
    async fn import_function(
        &self,
        _: Request<ImportFunctionRequest>,
    ) -> Result<Response<ImportFunctionReply>, Status> {
        Ok(Response::new(ImportFunctionReply {}))
    }

    async fn import_reusable_variable(
        &self,
        request: Request<ImportReusableVariableRequest>,
    ) -> Result<Response<AckReply>, Status> {
        self.inbox.variable(request.into_inner());
        Ok(Response::new(AckReply {}))
    }

    async fn die(&self, _: Request<DieRequest>) -> Result<Response<DieReply>, Status> {
        self.inbox.end();
        Ok(Response::new(DieReply {}))
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};
    use tripod_proto::ray::ReusableVar;

    use super::*;
    use crate::outbox::Outbox;
    use crate::worker::inbox::Item;

    #[tokio::test]
    async fn variables_are_queued_among_the_tasks_whichever_way_they_come() {
        let (outbox, _told) = Outbox::scripted();
        let inbox = Arc::new(Inbox::new(3, outbox));
        let service = Service::new(3, Arc::clone(&inbox));
        let import = |name: &'static str, exportid| {
            let variable = ReusableVar { name: name.as_bytes().into(), ..ReusableVar::default() };
            ImportReusableVariableRequest { reusable_variable: Some(variable), exportid: Some(exportid) }
        };
        let task = ExecuteTaskRequest { operationid: Some(0), attempt: 1, ..ExecuteTaskRequest::default() };
        let orders = [
            Order::Variable(import("a", 4)),
            Order::Function(ImportFunctionRequest { exportid: Some(9), ..ImportFunctionRequest::default() }),
            Order::Execute(task),
            Order::Variable(import("b", 5)),
        ];
        let orders = orders.map(|order| RayOrder { order: Some(order) }).to_vec();
        let told = service.tell(Request::new(RayTellRequest { orders })).await.expect("told").into_inner();
        assert!(told.orders.len() == 4 && told.orders.iter().all(|told| told.code == 0), "{told:?}");
        for (name, exportid) in [("late", 4), ("c", 6)] {
            let imported = service.import_reusable_variable(Request::new(import(name, exportid))).await;
            imported.expect("it is acknowledged");
        }
        let mut queued = Vec::new();
        service.die(Request::new(DieRequest {})).await.expect("it is acknowledged");
        while let Some((ticket, item)) = inbox.next() {
            inbox.ended(ticket);
            queued.push(match item {
                Item::Variable(variable) => String::from_utf8(variable.name.to_vec()).expect("a name"),
                Item::Task(_) => "task".to_owned(),
                Item::End => "end".to_owned(),
            });
        }
        assert_eq!(queued, ["a", "task", "b", "c", "end"]);
    }

    /// Whatever a message is made of: it is queued as it is, or refused, and what comes next is taken.
    #[tokio::test]
    async fn no_bytes_end_the_service() {
        let (outbox, _told) = Outbox::scripted();
        let inbox = Arc::new(Inbox::new(3, outbox));
        let service = Service::new(3, Arc::clone(&inbox));
        let seed: u64 = rand::random();
        let mut random = StdRng::seed_from_u64(seed);
        let mut taken = 0;
        for round in 0..20_000 {
            let length = random.random_range(0..40);
            let bytes: Vec<u8> =
                (0..length).map(|_| random.random_range(0..=if round % 2 == 0 { 255 } else { 20 })).collect();
            let Ok(request) = ExecuteTaskRequest::decode(&bytes[..]) else { continue };
            let for_us = request.workerid.is_none_or(|worker| worker == 3);
            let answer = service.execute_task(Request::new(request)).await;
            assert_eq!(answer.is_ok(), for_us, "seed {seed}, message {bytes:?}");
            taken += u64::from(for_us);
        }
        assert!(taken > 0, "some messages are messages; seed {seed}");
        service.die(Request::new(DieRequest {})).await.expect("it is acknowledged");
        let mut queued = 0;
        while let Some((ticket, Item::Task(_))) = inbox.next() {
            inbox.ended(ticket);
            queued += 1;
        }
        assert!((1..=taken).contains(&queued), "each at most once; seed {seed}");
    }
}
