//! The ports of a cluster's nodes.

use anyhow::Context as _;

use super::reservation::ReservedPorts;

/// Ports that each kind of listener has in a block; also the most nodes that a block serves.
const NODES_MAX: u16 = 8;
const PEER_OFFSET: u16 = 8;
const HTTP_OFFSET: u16 = 16;
const JOB_OFFSET: u16 = 24;
/// Job ports of a node.
const JOB_PORTS: u16 = 16;
const MINDSPORE_OFFSET: u16 = JOB_OFFSET + NODES_MAX * JOB_PORTS;
/// Ports of a node on which nodes of MindSpore find the first jobs.
const MINDSPORE_PORTS: u16 = 4;
const PEER_PROXY_OFFSET: u16 = MINDSPORE_OFFSET + NODES_MAX * MINDSPORE_PORTS;
const CLIENT_PROXY_OFFSET: u16 = PEER_PROXY_OFFSET + 8;
/// Ports of one block.
const BLOCK: u16 = CLIENT_PROXY_OFFSET + 8;

/// Reserved ports for the nodes of one cluster, which stay its own while nodes are dead.
#[derive(Debug)]
pub struct PortBlock {
    ports: ReservedPorts,
}

/// The ports of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodePorts {
    pub client: u16,
    pub peer: u16,
    pub http: u16,
    /// First and last of the job ports.
    pub jobs: (u16, u16),
    /// First and last of those for nodes of MindSpore.
    pub mindspore: (u16, u16),
    /// Where the network's proxy accepts what is meant for `peer`, if there is a proxy.
    pub peer_proxy: u16,
    /// The same for `client`.
    pub client_proxy: u16,
}

impl PortBlock {
    /// Finds and reserves a block.
    ///
    /// # Errors
    /// No free block was found.
    pub fn reserve() -> anyhow::Result<Self> {
        Ok(Self { ports: ReservedPorts::reserve(BLOCK)? })
    }

    /// The ports of node `id` (1 and up).
    ///
    /// # Errors
    /// A block has no room for that many nodes.
    pub fn node(&self, id: u64) -> anyhow::Result<NodePorts> {
        let position = id.checked_sub(1).and_then(|position| u16::try_from(position).ok());
        let position = position
            .filter(|position| *position < NODES_MAX)
            .with_context(|| format!("node {id} is not among 1 to {NODES_MAX}"))?;
        let first = self.ports.first();
        let first_job = first + JOB_OFFSET + position * JOB_PORTS;
        let first_mindspore = first + MINDSPORE_OFFSET + position * MINDSPORE_PORTS;
        Ok(NodePorts {
            client: first + position,
            peer: first + PEER_OFFSET + position,
            http: first + HTTP_OFFSET + position,
            jobs: (first_job, first_job + JOB_PORTS - 1),
            mindspore: (first_mindspore, first_mindspore + MINDSPORE_PORTS - 1),
            peer_proxy: first + PEER_PROXY_OFFSET + position,
            client_proxy: first + CLIENT_PROXY_OFFSET + position,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_listeners_of_a_block_share_a_port() {
        let block = PortBlock::reserve().unwrap();
        let mut seen = BTreeSet::new();
        for id in 1..=u64::from(NODES_MAX) {
            let ports = block.node(id).unwrap();
            let single = [ports.client, ports.peer, ports.http, ports.peer_proxy, ports.client_proxy];
            let ranges = (ports.jobs.0..=ports.jobs.1).chain(ports.mindspore.0..=ports.mindspore.1);
            for port in single.into_iter().chain(ranges) {
                assert!(seen.insert(port), "port {port} of node {id} is used twice");
                assert!(block.ports.range().contains(&port), "port {port} of node {id} is not reserved");
            }
        }
        assert!(block.node(0).is_err());
        assert!(block.node(u64::from(NODES_MAX) + 1).is_err());
    }
}
