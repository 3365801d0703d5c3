//! `tripod.v1.RayPeer`: many orders of the scheduler in one call.

use tonic::{Request, Response, Status};
use tripod_proto::ray::obj_store_server::ObjStore;
use tripod_proto::tripod::v1::ray_order::Order;
use tripod_proto::tripod::v1::ray_peer_server::RayPeer;
use tripod_proto::tripod::v1::{RayOrder, RayTellRequest, RayTellResponse, RayTold};

use crate::callers::Wish;
use crate::service::Service;

#[tonic::async_trait]
impl RayPeer for Service {
    async fn tell(&self, request: Request<RayTellRequest>) -> Result<Response<RayTellResponse>, Status> {
        self.callers.check(request.extensions(), Wish::Order).await?;
        let mut told = Vec::new();
        for order in request.into_inner().orders {
            let done = one(self, order).await;
            let refused = done.is_err();
            told.push(match done {
                Ok(()) => RayTold::default(),
                Err(status) => RayTold { code: status.code().into(), text: status.message().to_owned() },
            });
            if refused {
                break;
            }
        }
        Ok(Response::new(RayTellResponse { orders: told }))
    }
}

async fn one(service: &Service, order: RayOrder) -> Result<(), Status> {
    match order.order {
        Some(Order::Deliver(order)) => service.start_delivery(Request::new(order)).await.map(drop),
        Some(Order::Alias(order)) => service.notify_alias(Request::new(order)).await.map(drop),
        Some(Order::Deallocate(order)) => service.deallocate_object(Request::new(order)).await.map(drop),
        Some(
            Order::Execute(_) | Order::Function(_) | Order::Variable(_) | Order::Die(_) | Order::Cancel(_),
        )
        | None => {
            Err(Status::unimplemented("an object store is not told this; next: look at the versions of both"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tripod_dial::Allow;
    use tripod_proto::ray::{DeallocateObjectRequest, DieRequest};

    use super::*;
    use crate::callers::Callers;
    use crate::config::Config;
    use crate::scheduler::Endpoints;

    #[tokio::test]
    async fn orders_after_one_that_is_not_taken_are_not_looked_at() {
        let (_registered, nobody) = tokio::sync::watch::channel(None);
        let config = Config::new(vec!["127.0.0.1:1".to_owned()], "/nowhere".into());
        let callers = Callers::new(Allow::Own, Arc::new(Endpoints::new(&config).unwrap()));
        let service = Service::new(nobody, "/nowhere".into(), Arc::new(callers));
        let free = || RayOrder { order: Some(Order::Deallocate(DeallocateObjectRequest::default())) };
        let die = RayOrder { order: Some(Order::Die(DieRequest {})) };
        let request = RayTellRequest { orders: vec![die, free()] };
        let told = service.tell(Request::new(request)).await.unwrap().into_inner().orders;
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].code, tonic::Code::Unimplemented as i32);
        let request = RayTellRequest { orders: vec![free(), free()] };
        let told = service.tell(Request::new(request)).await.unwrap().into_inner().orders;
        assert_eq!(told.len(), 1, "nobody is registered: {told:?}");
        assert_eq!(told[0].code, tonic::Code::Unavailable as i32);
    }
}
