//! What all agents of a job share.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use anyhow::Context as _;
use tokio::sync::Semaphore;
use tonic::metadata::{AsciiMetadataValue, MetadataMap};
use tripod_proto::metadata;

use super::tally::{Tally, Told};

/// Agents of one process: beyond, neither addresses on loopback nor open files are what they are counted in.
pub const AGENTS_MAX: u32 = 50_000;
/// The address of the first agent's host. Each other one has the next; all of them are this machine's.
const FIRST_HOST: Ipv4Addr = Ipv4Addr::new(127, 1, 0, 1);
/// Connections that are opened at the same time: more would wait in the kernel's queue, and be sent away from it. Real hosts
/// have some of that time for themselves before their agents start.
const OPENED_AT_ONCE: usize = 256;

/// Where the agents of a job find its cluster. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Fleet {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    endpoints: Vec<String>,
    job: String,
    /// Metadata of every call.
    metadata: MetadataMap,
    opening: Semaphore,
    tally: Tally,
}

impl Fleet {
    /// Agents of tasks of that job, at nodes with these client addresses.
    ///
    /// # Errors
    /// No addresses, or the name is no text for metadata.
    pub fn new(endpoints: Vec<String>, job: &str) -> anyhow::Result<Self> {
        anyhow::ensure!(!endpoints.is_empty(), "agents need the address of a node");
        let mut metadata = MetadataMap::new();
        let name: Result<AsciiMetadataValue, _> = job.parse();
        metadata.insert(metadata::JOB, name.context("this is no name of a job")?);
        let (job, opening, tally) = (job.to_owned(), Semaphore::new(OPENED_AT_ONCE), Tally::default());
        Ok(Self { shared: Arc::new(Shared { endpoints, job, metadata, opening, tally }) })
    }

    /// How streams ended so far, and what was sent again.
    #[must_use]
    pub fn told(&self) -> Told {
        self.shared.tally.told()
    }

    pub(super) fn tally(&self) -> &Tally {
        &self.shared.tally
    }

    pub(super) fn job(&self) -> &str {
        &self.shared.job
    }

    pub(super) fn metadata(&self) -> &MetadataMap {
        &self.shared.metadata
    }

    pub(super) fn opening(&self) -> &Semaphore {
        &self.shared.opening
    }

    /// The nodes that an agent tries, again and again, with their numbers among the endpoints: first number `from`.
    pub(super) fn endpoints_from(&self, from: usize) -> impl Iterator<Item = (usize, &str)> {
        let endpoints = &self.shared.endpoints;
        let nodes = (0..endpoints.len()).cycle().skip(from % endpoints.len());
        nodes.filter_map(|node| Some((node, endpoints.get(node)?.as_str())))
    }

    /// The node that an agent goes to when number `lost` is lost. Those of one node spread over all others.
    pub(super) fn next(&self, agent: u32, lost: usize) -> usize {
        let nodes = self.shared.endpoints.len();
        let others = nodes.saturating_sub(1).max(1);
        let turn = usize::try_from(agent).unwrap_or(0) / nodes;
        (lost + 1 + turn % others) % nodes
    }
}

/// The host of an agent, as nodes see it.
pub(super) fn host(agent: u32) -> IpAddr {
    Ipv4Addr::from_bits(FIRST_HOST.to_bits() + agent.min(AGENTS_MAX)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(nodes: usize) -> Fleet {
        Fleet::new((0..nodes).map(|node| format!("127.0.0.1:{node}")).collect(), "train").unwrap()
    }

    #[test]
    fn the_agents_of_a_dead_node_spread_over_all_others() {
        let fleet = fleet(3);
        // Those that began at the first node.
        let next: Vec<usize> = [0, 3, 6, 9].map(|agent| fleet.next(agent, 0)).into();
        assert_eq!(next, [1, 2, 1, 2]);
        assert_eq!(fleet.next(4, 2), 1);
    }

    #[test]
    fn a_lone_node_is_tried_again() {
        let fleet = fleet(1);
        assert_eq!(fleet.next(7, 0), 0);
        assert_eq!(fleet.endpoints_from(0).take(2).map(|(node, _)| node).collect::<Vec<_>>(), [0, 0]);
    }

    #[test]
    fn every_host_is_another_address_of_this_machine() {
        assert_eq!(host(0), IpAddr::from([127, 1, 0, 1]));
        assert_eq!(host(300), IpAddr::from([127, 1, 1, 45]));
        assert!(host(AGENTS_MAX).is_loopback());
    }

    #[test]
    fn agents_without_nodes_are_refused() {
        assert!(Fleet::new(Vec::new(), "train").is_err());
        assert!(Fleet::new(vec!["127.0.0.1:1".into()], "a\nb").is_err());
    }
}
