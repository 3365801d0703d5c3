//! What is shown of a dynamic cluster.

use bytes::Bytes;

use crate::command::Scope;
use crate::fault::Fault;
use crate::ids::{JobId, NodeName, TimeMs};
use crate::mindspore::topology::record::{Node, Topology};
use crate::mindspore::topology::{Dialect, PortRange, Role, TopoState, metadata};
use crate::mindspore::{Expected, Member};
use crate::state::State;

/// How far a cluster is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    pub state: TopoState,
    /// How many are expected.
    pub nodes: u32,
    /// How many have registered, whatever became of them.
    pub registered: u32,
    /// How many are silent and have not left.
    pub silent: u32,
    /// 0: none has begun.
    pub generation: u64,
    /// Until when all nodes must be there, while some are waited for.
    pub deadline_ms: Option<TimeMs>,
    /// In which the node speaks that registered last; all nodes of a cluster are of one release.
    pub dialect: Option<Dialect>,
}

/// A node that belongs to the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    pub node: NodeName,
    pub member: Member,
    pub rank: u32,
    pub role: Role,
    pub host_name: String,
    /// Empty: not told.
    pub host_ip: String,
    /// It registered more than once.
    pub recovered: bool,
    pub silent: bool,
}

impl State {
    /// How far the dynamic cluster of a job is.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn topology(&self, scope: Scope) -> Result<View, Fault> {
        let job = self.jobs.scoped(scope)?;
        let nodes = Expected::of(&job.spec).total();
        Ok(job.domains.topology.as_deref().map_or(
            View {
                state: TopoState::Initializing,
                nodes,
                registered: 0,
                silent: 0,
                generation: 0,
                deadline_ms: None,
                dialect: None,
            },
            |topology| View {
                state: topology.phase,
                nodes,
                registered: topology.registered(),
                silent: topology.silent(),
                generation: topology.generation,
                deadline_ms: topology.deadline,
                dialect: topology.dialect,
            },
        ))
    }

    /// A node; `None` when it never came in this generation, or has left.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn topology_node(&self, scope: Scope, node: &str) -> Result<Option<NodeView>, Fault> {
        let topology = self.topology_of(scope)?;
        Ok(topology.and_then(|topology| {
            let (name, found) = topology.nodes().get_key_value(node)?;
            (!found.left).then(|| view(name, found))
        }))
    }

    /// All nodes that belong to the cluster, by role and rank.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn topology_nodes(&self, scope: Scope) -> Result<Vec<NodeView>, Fault> {
        let Some(topology) = self.topology_of(scope)? else { return Ok(Vec::new()) };
        let nodes = topology.nodes().iter().filter(|(_, node)| !node.left);
        let mut nodes: Vec<NodeView> = nodes.map(|(name, node)| view(name, node)).collect();
        nodes.sort_by_key(|node| (node.role.base(), node.rank));
        Ok(nodes)
    }

    /// What an entry says, if there is one: written by a node, or derived from one. Never empty.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn topology_metadata(&self, scope: Scope, name: &str) -> Result<Option<Bytes>, Fault> {
        Ok(self.topology_of(scope)?.and_then(|topology| topology.entry(name)))
    }

    /// The names of the hosts of all nodes of a role, by rank; `None` until all nodes are there.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn topology_hosts(&self, scope: Scope, role: &str) -> Result<Option<Vec<String>>, Fault> {
        let Some(topology) = self.complete_topology(scope)? else { return Ok(None) };
        let Some(role) = Role::named(role) else { return Ok(Some(Vec::new())) };
        let nodes = metadata::by_rank(topology, role).into_iter();
        Ok(Some(nodes.map(|(_, node)| node.host_name.to_string()).collect()))
    }

    /// Which ports each node may use, by id; `None` until all nodes are there. The entry `node_port_range` says it to
    /// clients.
    ///
    /// # Errors
    /// The scope's faults.
    pub fn topology_ports(&self, scope: Scope) -> Result<Option<Vec<(NodeName, PortRange)>>, Fault> {
        let Some(topology) = self.complete_topology(scope)? else { return Ok(None) };
        let ports = topology.nodes().iter();
        Ok(Some(ports.filter_map(|(name, node)| Some((name.clone(), node.ports?))).collect()))
    }

    /// Whom a new leader must watch: the nodes of a job's cluster that have not left.
    #[must_use]
    pub fn topology_members(&self, job: JobId) -> Vec<Member> {
        let topology = self.jobs.get(job).and_then(|job| job.domains.topology.as_deref());
        let nodes = topology.into_iter().flat_map(|topology| topology.nodes().values());
        nodes.filter(|node| !node.left).map(|node| node.member).collect()
    }

    /// The jobs that have a dynamic cluster, by id.
    #[must_use]
    pub fn topology_jobs(&self) -> Vec<JobId> {
        self.jobs.iter().filter(|job| job.domains.topology.is_some()).map(|job| job.id).collect()
    }

    fn topology_of(&self, scope: Scope) -> Result<Option<&Topology>, Fault> {
        Ok(self.jobs.scoped(scope)?.domains.topology.as_deref())
    }

    fn complete_topology(&self, scope: Scope) -> Result<Option<&Topology>, Fault> {
        let topology = self.topology_of(scope)?;
        Ok(topology.filter(|topology| matches!(topology.phase, TopoState::Initialized | TopoState::Finished)))
    }
}

fn view(name: &NodeName, node: &Node) -> NodeView {
    NodeView {
        node: name.clone(),
        member: node.member,
        rank: node.rank,
        role: node.role,
        host_name: node.host_name.to_string(),
        host_ip: node.host_ip.to_string(),
        recovered: node.recovered,
        silent: node.silent,
    }
}
