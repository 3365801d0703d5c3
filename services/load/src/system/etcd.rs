//! etcd as a peer: three calls of its v3 API.

use bytes::Bytes;
use tonic::Status;
use tonic::transport::Channel;
use tripod_proto::etcdserverpb::kv_client::KvClient;
use tripod_proto::etcdserverpb::maintenance_client::MaintenanceClient;
use tripod_proto::etcdserverpb::{PutRequest, RangeRequest, StatusRequest};

use super::{Freshness, Role};

/// The services of one member.
#[derive(Clone)]
pub struct Client {
    kv: KvClient<Channel>,
    maintenance: MaintenanceClient<Channel>,
}

impl Client {
    pub(super) fn new(channel: Channel) -> Self {
        Self { kv: KvClient::new(channel.clone()), maintenance: MaintenanceClient::new(channel) }
    }

    pub(super) async fn put(&mut self, key: String, value: Bytes) -> Result<(), Status> {
        self.kv.put(PutRequest { key: key.into(), value }).await?;
        Ok(())
    }

    pub(super) async fn get(&mut self, key: String, freshness: Freshness) -> Result<Option<Bytes>, Status> {
        let request = RangeRequest { key: key.into(), serializable: freshness == Freshness::Local };
        let found = self.kv.range(request).await?.into_inner().kvs;
        Ok(found.into_iter().next().map(|pair| pair.value))
    }

    pub(super) async fn role(&mut self) -> Result<Role, Status> {
        let status = self.maintenance.status(StatusRequest {}).await?.into_inner();
        let me = status.header.map_or(0, |header| header.member_id);
        Ok(match status.leader {
            0 => Role::Leaderless,
            leader if leader == me => Role::Leader,
            _ => Role::Follower,
        })
    }
}
