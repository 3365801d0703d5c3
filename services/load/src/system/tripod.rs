//! Tripod as a key-value service: `tripod.v1`.

use bytes::Bytes;
use tonic::Status;
use tonic::transport::Channel;
use tripod_proto::tripod::v1::cluster_client::ClusterClient;
use tripod_proto::tripod::v1::kv_client::KvClient;
use tripod_proto::tripod::v1::{Consistency, GetRequest, PutRequest, StatusRequest};

use super::{Freshness, Role};

/// The services of one node.
#[derive(Clone)]
pub struct Client {
    job: String,
    kv: KvClient<Channel>,
    cluster: ClusterClient<Channel>,
}

impl Client {
    pub(super) fn new(channel: Channel, job: String) -> Self {
        Self { job, kv: KvClient::new(channel.clone()), cluster: ClusterClient::new(channel) }
    }

    pub(super) async fn put(&mut self, key: String, value: Bytes) -> Result<(), Status> {
        let request = PutRequest { job: self.job.clone(), key, value, ..PutRequest::default() };
        self.kv.put(request).await?;
        Ok(())
    }

    pub(super) async fn get(&mut self, key: String, freshness: Freshness) -> Result<Option<Bytes>, Status> {
        let consistency = match freshness {
            Freshness::Linearizable => Consistency::Linearizable,
            Freshness::Local => Consistency::Local,
        };
        let request = GetRequest { job: self.job.clone(), key, consistency: consistency.into() };
        let answer = self.kv.get(request).await?.into_inner();
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
