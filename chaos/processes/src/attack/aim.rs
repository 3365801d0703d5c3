//! The nodes that are attacked, and where attacks come from.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::{TcpSocket, TcpStream};
use tonic::transport::Channel;
use tripod_client::{Client, Config};
use tripod_load::connect;
use tripod_proto::xla::coordination::Incarnations;

use crate::cluster::Cluster;

/// The attacker's address. Nodes bound what one address may have, and no well-behaved client of ours has this one.
const FROM: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);
/// How long a node may take to say which cluster it is of.
const LOOK_LIMIT: Duration = Duration::from_secs(10);

/// A cluster that is attacked. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Aim {
    nodes: Arc<[Attacked]>,
    pub(super) cluster_id: String,
    /// The service incarnation of job `default`, without which dialect N answers nothing.
    service: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Attacked {
    pub(super) id: u64,
    pub(super) client: SocketAddr,
    pub(super) peer: SocketAddr,
}

impl Aim {
    /// All nodes of a cluster that serves.
    ///
    /// # Errors
    /// No node says which cluster it is of, or one is not on loopback.
    pub async fn at(cluster: &Cluster) -> anyhow::Result<Self> {
        let client = Client::new(&Config::new(cluster.endpoints()))?;
        let answers = client.status(LOOK_LIMIT, false).await;
        let status = answers.into_iter().find_map(|answer| answer.status.ok());
        let status = status.context("no node tells its cluster's id")?;
        let job = client.jobs().get("default").await?.context("there is no job `default`")?;
        let node = |id| {
            let [peer, _] = cluster.peers(id);
            Ok(Attacked { id, client: on_loopback(&cluster.endpoint(id))?, peer: on_loopback(&peer)? })
        };
        let nodes: anyhow::Result<Vec<_>> = cluster.ids().map(node).collect();
        Ok(Self { nodes: nodes?.into(), cluster_id: status.cluster_id, service: job.service_incarnation })
    }

    /// The first of them alone.
    #[must_use]
    pub fn first(&self) -> Self {
        let first = self.nodes.iter().take(1).cloned().collect();
        Self { nodes: first, ..self.clone() }
    }

    /// No node at all, for tests of what would be sent.
    #[cfg(test)]
    pub(super) fn nowhere() -> Self {
        Self { nodes: Arc::default(), cluster_id: "nowhere".to_owned(), service: 7 }
    }

    pub(super) fn nodes(&self) -> &[Attacked] {
        &self.nodes
    }

    /// The client address of the node whose turn it is.
    pub(super) fn client(&self, turn: usize) -> SocketAddr {
        self.nodes[turn % self.nodes.len()].client
    }

    /// A connection, on which nothing has been said.
    pub(super) async fn connect(&self, turn: usize) -> anyhow::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((FROM, 0).into())?;
        Ok(socket.connect(self.client(turn)).await?)
    }

    /// One channel for each of so many connections, in turn over the nodes. They connect when they are used.
    pub(super) fn channels(&self, connections: usize) -> Vec<Channel> {
        (0..connections).map(|turn| channel(self.client(turn))).collect()
    }

    /// What dialect N wants to know of its caller, in job `default`.
    pub(super) fn life(&self) -> Incarnations {
        Incarnations { task_id: 0, task_incarnation: 1, service_incarnation: self.service }
    }
}

/// A channel from the attacker's address.
pub(super) fn channel(to: SocketAddr) -> Channel {
    let endpoint = connect::endpoint(&to.to_string()).expect("an address of a socket is an address");
    endpoint.local_address(Some(IpAddr::V4(FROM))).connect_lazy()
}

/// Nobody else's nodes are attacked, whatever a caller says.
fn on_loopback(address: &str) -> anyhow::Result<SocketAddr> {
    let parsed: SocketAddr = address.parse().with_context(|| format!("{address} is no IP:PORT"))?;
    anyhow::ensure!(parsed.ip().is_loopback(), "{address} is not on loopback, and nothing else is attacked");
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_attacked() {
        assert!(on_loopback("127.0.0.1:7700").is_ok());
        for elsewhere in ["10.0.0.1:7700", "192.0.2.7:1", "coord.example:7700"] {
            assert!(on_loopback(elsewhere).is_err(), "{elsewhere}");
        }
    }
}
