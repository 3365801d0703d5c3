//! Tripod as a key-value service: `tripod.v1`.

use bytes::Bytes;
use prost::Message;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tripod_calls::{CallOptions, CallStream};
use tripod_proto::tripod::v1::cluster_client::ClusterClient;
use tripod_proto::tripod::v1::kv_client::KvClient;
use tripod_proto::tripod::v1::{
    Consistency, GetRequest, GetResponse, PutRequest, PutResponse, StatusRequest,
};

use super::{Freshness, Role};

const PUT: &str = "/tripod.v1.Kv/Put";
const GET: &str = "/tripod.v1.Kv/Get";

/// The services of one node.
#[derive(Clone)]
pub struct Client {
    job: String,
    kv: KvClient<Channel>,
    cluster: ClusterClient<Channel>,
    /// By which puts and gets go, if there is one.
    stream: Option<CallStream>,
}

impl Client {
    pub(super) fn new(channel: Channel, job: String) -> Self {
        Self { job, kv: KvClient::new(channel.clone()), cluster: ClusterClient::new(channel), stream: None }
    }

    pub(super) fn by_stream(channel: Channel, stream: CallStream, job: String) -> Self {
        Self { stream: Some(stream), ..Self::new(channel, job) }
    }

    pub(super) async fn put(&mut self, key: String, value: Bytes) -> Result<(), Status> {
        let request = PutRequest { job: self.job.clone(), key, value, ..PutRequest::default() };
        match &self.stream {
            Some(stream) => by_stream::<PutResponse>(stream, PUT, &request).await.map(drop),
            None => self.kv.put(request).await.map(drop),
        }
    }

    pub(super) async fn get(&mut self, key: String, freshness: Freshness) -> Result<Option<Bytes>, Status> {
        let consistency = match freshness {
            Freshness::Linearizable => Consistency::Linearizable,
            Freshness::Local => Consistency::Local,
        };
        let request = GetRequest { job: self.job.clone(), key, consistency: consistency.into() };
        let answer = match &self.stream {
            Some(stream) => by_stream::<GetResponse>(stream, GET, &request).await?,
            None => self.kv.get(request).await?.into_inner(),
        };
        Ok(answer.found.then_some(answer.value))
    }

    pub(super) async fn role(&mut self) -> Result<Role, Status> {
        let status = self.cluster.status(StatusRequest { digest: false }).await?.into_inner();
        Ok(match status.leader_id {
            0 => Role::Leaderless,
            leader if leader == status.node_id => Role::Leader,
            _ => Role::Follower,
        })
    }
}

/// One call, as an op. A call without an answer is counted as one that the connection lost.
async fn by_stream<T: Message + Default>(
    stream: &CallStream,
    path: &str,
    request: &impl Message,
) -> Result<T, Status> {
    let answer = stream.call(path, request.encode_to_vec().into(), &CallOptions::default()).await;
    let answer = answer.map_err(|lost| Status::unavailable(lost.to_string()))?;
    if answer.code != Code::Ok {
        return Err(answer.into_status());
    }
    T::decode(answer.message).map_err(|error| Status::internal(error.to_string()))
}
