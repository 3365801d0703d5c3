//! Blocks of free ports on loopback that stay ours between a node's death and its restart.

use std::net::TcpListener;

use anyhow::Context as _;
use rand::RngExt as _;

/// Ports of one block.
const BLOCK: u16 = 128;
/// Blocks begin here, above what services commonly use.
const LOWEST: u16 = 12_000;
/// Blocks end here: Linux takes the ports of outgoing connections from 32,768 up.
const HIGHEST: u16 = 32_000;
/// Ports that each kind of listener has in a block; also the most nodes that a block serves.
const NODES_MAX: u16 = 6;
const PEER_OFFSET: u16 = 8;
const HTTP_OFFSET: u16 = 16;
const JOB_OFFSET: u16 = 24;
/// Job ports of a node.
const JOB_PORTS: u16 = 16;
/// Random blocks tried before we give up.
const ATTEMPTS: u32 = 200;

/// A block of ports, reserved against other users of this type in any process.
///
/// Its last port is held open for as long as the block lives: whoever looks for a block tries to
/// bind all its ports, so two tests that run at the same time never share one, not even while the
/// nodes of one of them are dead.
#[derive(Debug)]
pub struct PortBlock {
    first: u16,
    _guard: TcpListener,
}

/// The ports of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodePorts {
    pub client: u16,
    pub peer: u16,
    pub http: u16,
    /// First and last of the job ports.
    pub jobs: (u16, u16),
}

impl PortBlock {
    /// Finds and reserves a block.
    ///
    /// # Errors
    /// No free block was found.
    pub fn reserve() -> anyhow::Result<Self> {
        for _ in 0..ATTEMPTS {
            let blocks = (HIGHEST - LOWEST) / BLOCK;
            let first = LOWEST + rand::rng().random_range(0..blocks) * BLOCK;
            if let Some(block) = Self::try_at(first) {
                return Ok(block);
            }
        }
        anyhow::bail!("no {BLOCK} free ports in a row between {LOWEST} and {HIGHEST} on 127.0.0.1")
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
        let first_job = self.first + JOB_OFFSET + position * JOB_PORTS;
        Ok(NodePorts {
            client: self.first + position,
            peer: self.first + PEER_OFFSET + position,
            http: self.first + HTTP_OFFSET + position,
            jobs: (first_job, first_job + JOB_PORTS - 1),
        })
    }

    fn try_at(first: u16) -> Option<Self> {
        // The guard comes first: of two processes that try the same block, one fails here.
        let guard = TcpListener::bind(("127.0.0.1", first + BLOCK - 1)).ok()?;
        for port in first..first + BLOCK - 1 {
            TcpListener::bind(("127.0.0.1", port)).ok()?;
        }
        Some(Self { first, _guard: guard })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_reserved_block_is_not_given_twice() {
        let block = PortBlock::reserve().unwrap();
        assert!(PortBlock::try_at(block.first).is_none());
    }

    #[test]
    fn a_block_with_a_port_in_use_is_not_given() {
        let block = PortBlock::reserve().unwrap();
        let first = block.first;
        let _taken = TcpListener::bind(("127.0.0.1", first + 40)).unwrap();
        drop(block);
        assert!(PortBlock::try_at(first).is_none());
    }

    #[test]
    fn no_two_listeners_of_a_block_share_a_port() {
        let block = PortBlock::reserve().unwrap();
        let mut seen = BTreeSet::from([block.first + BLOCK - 1]);
        for id in 1..=u64::from(NODES_MAX) {
            let ports = block.node(id).unwrap();
            for port in [ports.client, ports.peer, ports.http].into_iter().chain(ports.jobs.0..=ports.jobs.1)
            {
                assert!(seen.insert(port), "port {port} of node {id} is used twice");
                assert!(port < block.first + BLOCK);
            }
        }
        assert!(block.node(0).is_err());
        assert!(block.node(u64::from(NODES_MAX) + 1).is_err());
    }
}
