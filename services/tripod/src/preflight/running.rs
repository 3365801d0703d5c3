//! The node itself, if it runs already: then its ports are taken by nobody else.

use std::time::Duration;

use tokio::time::timeout;
use tripod_client::{Client, Config, wire};

use super::Plan;

/// How long it may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// A node that runs on the data directory that is looked at.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Running {
    pub(super) node: u64,
    /// Ports at which it says that it listens.
    ports: Vec<u16>,
}

impl Running {
    fn of(status: &wire::StatusResponse, client: &str) -> Self {
        let own = status.members.iter().find(|member| member.node_id == status.node_id);
        let told = own.map(|own| [&own.peer_address, &own.http_address]);
        let addresses = told.into_iter().flatten().map(String::as_str).chain([client]);
        Self { node: status.node_id, ports: addresses.filter_map(port).collect() }
    }

    /// Whether it listens at the port of this address. Hosts may be written in several ways.
    pub(super) fn has(&self, address: &str) -> bool {
        port(address).is_some_and(|port| self.ports.contains(&port))
    }

    #[cfg(test)]
    pub(super) fn with_port_of(node: u64, address: &str) -> Self {
        Self { node, ports: port(address).into_iter().collect() }
    }
}

fn port(address: &str) -> Option<u16> {
    address.rsplit_once(':')?.1.parse().ok()
}

/// The node that answers at the planned address for clients, if it is the one whose data the directory holds.
pub(super) async fn find(plan: &Plan) -> Option<Running> {
    let (data, client) = (plan.data.clone()?, plan.client.as_ref()?);
    let owner =
        tokio::task::spawn_blocking(move || tripod_raft::owner(&data).ok().flatten()).await.ok()??;
    let asked = Client::new(&Config::new(vec![client.clone()])).ok()?;
    let answers = timeout(PATIENCE, asked.status(PATIENCE, false)).await.ok()?;
    let status = answers.into_iter().find_map(|answer| answer.status.ok())?;
    let itself = status.node_id == owner.node.0 && status.cluster_id == owner.cluster_id;
    itself.then(|| Running::of(&status, client))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_the_ports_of_its_own_row() {
        let member = |node_id: u64, port: u16| wire::Member {
            node_id,
            peer_address: format!("10.0.0.1:{port}"),
            http_address: format!("10.0.0.1:{}", port + 1),
            ..Default::default()
        };
        let members = vec![member(1, 7800), member(2, 9800)];
        let status = wire::StatusResponse { node_id: 1, members, ..Default::default() };
        let running = Running::of(&status, "0.0.0.0:7700");
        for own in ["10.0.0.1:7700", "0.0.0.0:7800", "[::]:7801"] {
            assert!(running.has(own), "{own}");
        }
        assert!(!running.has("10.0.0.1:9800") && !running.has("nowhere"));
    }
}
