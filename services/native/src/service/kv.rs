//! `tripod.v1.Kv`.

use tonic::{Request, Response, Status};
use tripod_gateway::Gateway;
use tripod_proto::tripod::v1::kv_server::Kv;
use tripod_proto::tripod::v1::{
    DeleteRequest, DeleteResponse, GetRequest, GetResponse, ListRequest, ListResponse, PutRequest,
    PutResponse, Stamp,
};
use tripod_state::ids::JobId;
use tripod_state::{Answer, Command, Envelope, Fault, Reply, State, kv};

use crate::resolve::{self, Freshness};
use crate::{admitted, decode, encode, status};

pub(super) struct Service {
    gateway: Gateway,
}

impl Service {
    pub(super) fn new(gateway: Gateway) -> Self {
        Self { gateway }
    }

    /// `Put`, of which nothing is boxed.
    pub(super) async fn store(&self, request: Request<PutRequest>) -> Result<Response<PutResponse>, Status> {
        admitted::about_job(request.extensions(), &request.get_ref().job)?;
        let request = request.into_inner();
        let stamp = request.stamp;
        let answer = self.write(&request.job, stamp, |job| decode::put(&request, job)).await?;
        encode::put(&answer).map(Response::new)
    }

    /// `Get`, of which nothing is boxed.
    pub(super) async fn find(&self, request: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        admitted::about_job(request.extensions(), &request.get_ref().job)?;
        let request = request.into_inner();
        let found = self.read(request.consistency, |state| {
            let job = resolve::in_state(state, &request.job)?;
            match state.get(resolve::scope(job), &request.key) {
                Ok(entry) => Ok(encode::found(entry)),
                Err(Fault::KeyMissing { .. }) => Ok(encode::missing(&request.key)),
                Err(fault) => Err(fault),
            }
        });
        found.await.map(Response::new)
    }

    /// Replicates a write to the job of that name. The name is looked up in this node's memory, so it
    /// may mean a job that was deleted meanwhile; then it is looked up again.
    async fn write(
        &self,
        job: &str,
        stamp: Option<Stamp>,
        command: impl Fn(JobId) -> kv::Command,
    ) -> Result<Answer, Status> {
        let known = resolve::job(&self.gateway, job, Freshness::LocalFirst).await?;
        let reply = self.submit(stamp, command(known)).await?;
        if !matches!(reply, Err(Fault::JobUnknown { .. })) {
            return reply.map_err(|fault| status::of_fault(&fault));
        }
        let current = resolve::job(&self.gateway, job, Freshness::Linearizable).await?;
        if current == known {
            return reply.map_err(|fault| status::of_fault(&fault));
        }
        // The refusal is remembered under the stamp; only its owner can give the write a new one.
        if stamp.is_some() {
            return Err(status::job_replaced(job));
        }
        let again = self.submit(None, command(current)).await?;
        again.map_err(|fault| status::of_fault(&fault))
    }

    async fn submit(&self, stamp: Option<Stamp>, command: kv::Command) -> Result<Reply, Status> {
        let command = Command::Kv(command);
        let submitted = match stamp {
            Some(stamp) => {
                let envelope = Envelope { stamp: Some(decode::stamp(stamp)?), command };
                self.gateway.submit_stamped(envelope).await
            }
            None => self.gateway.submit(command).await,
        };
        submitted.map_err(|outage| status::of_outage(&outage))
    }

    async fn read<T>(
        &self,
        consistency: i32,
        look: impl FnOnce(&State) -> Result<T, Fault>,
    ) -> Result<T, Status> {
        let read = self.gateway.read(decode::consistency(consistency)?, look).await;
        read.map_err(|outage| status::of_outage(&outage))?.map_err(|fault| status::of_fault(&fault))
    }
}

#[tonic::async_trait]
impl Kv for Service {
    async fn put(&self, request: Request<PutRequest>) -> Result<Response<PutResponse>, Status> {
        self.store(request).await
    }

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        self.find(request).await
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Result<Response<DeleteResponse>, Status> {
        admitted::about_job(request.extensions(), &request.get_ref().job)?;
        let request = request.into_inner();
        let delete = |job| kv::Command::Delete { scope: resolve::scope(job), key: request.key.clone() };
        match self.write(&request.job, request.stamp, delete).await? {
            Answer::Deleted { keys } => Ok(Response::new(DeleteResponse { deleted: keys })),
            other => Err(status::unexpected(&other)),
        }
    }

    async fn list(&self, request: Request<ListRequest>) -> Result<Response<ListResponse>, Status> {
        admitted::about_job(request.extensions(), &request.get_ref().job)?;
        let request = request.into_inner();
        let page = decode::page(&request);
        let listed = self.read(request.consistency, |state| {
            let job = resolve::in_state(state, &request.job)?;
            // One more than asked for tells whether there are more.
            state.list(resolve::scope(job), &request.prefix, page.after.as_ref(), page.limit + 1)
        });
        Ok(Response::new(encode::list(listed.await?, page.limit, request.keys_only)))
    }
}
