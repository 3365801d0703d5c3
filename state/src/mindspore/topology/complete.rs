//! All nodes are there: ranks are final, and each node is given ports of its host.

use std::sync::Arc;

use imbl::OrdMap;

use crate::ids::NodeName;
use crate::mindspore::limits::{PORT_FIRST, PORTS_PER_HOST};
use crate::mindspore::topology::record::{Node, Topology};
use crate::mindspore::topology::{PortRange, TopoState, rank};
use crate::mindspore::{self};

impl Topology {
    pub(super) fn complete(&mut self) {
        self.phase = TopoState::Initialized;
        self.deadline = None;
        let ports = self.divided_ports();
        for role in [mindspore::Role::Worker, mindspore::Role::Server] {
            let of_role = self.nodes().iter().filter(|(_, node)| node.role.base() == role);
            let mut nodes: Vec<(NodeName, Node)> =
                of_role.map(|(name, node)| (name.clone(), node.clone())).collect();
            let ranks = rank::when_complete(&nodes);
            for (place, (name, node)) in nodes.iter_mut().enumerate() {
                node.ports = ports.get(name).copied();
                node.rank = ranks.as_ref().map_or(node.rank, |ranks| ranks[place]);
            }
            self.put_all(nodes);
        }
    }

    /// The ports of each host, in equal parts for its nodes, which are in order of their ids: as upstream divides them.
    fn divided_ports(&self) -> OrdMap<NodeName, PortRange> {
        let mut hosts: OrdMap<Arc<str>, Vec<NodeName>> = OrdMap::new();
        for (name, node) in self.nodes() {
            hosts.entry(Arc::clone(&node.host_name)).or_default().push(name.clone());
        }
        let mut ports = OrdMap::new();
        for names in hosts.values() {
            let nodes = u32::try_from(names.len()).unwrap_or(u32::MAX);
            let width = (PORTS_PER_HOST / nodes).max(1);
            for (place, name) in (0..).zip(names) {
                let first = PORT_FIRST + place * width;
                ports.insert(name.clone(), PortRange { first, last: first + width - 1 });
            }
        }
        ports
    }
}
