//! One generation of a dynamic cluster.

use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use crate::ids::{MetadataName, NodeName, TimeMs};
use crate::memory::{Weigh, Weighed, of_map, of_text};
use crate::mindspore::Member;
use crate::mindspore::ranks::Ranks;
use crate::mindspore::topology::{Dialect, PortRange, Role, TopoState};

/// The cluster, from the first registration on, or the first entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Topology {
    /// From 1.
    pub(crate) generation: u64,
    pub(crate) phase: TopoState,
    /// Until when all nodes must be there: while the first of them wait for the others.
    pub(crate) deadline: Option<TimeMs>,
    /// Of the last registration.
    pub(crate) dialect: Option<Dialect>,
    nodes: Weighed<NodeName, Node>,
    metadata: Weighed<MetadataName, Bytes>,
    // Derived from the nodes and the metadata.
    members: OrdMap<Member, NodeName>,
    ranks: Ranks,
    silent: u32,
    left: u32,
    metadata_bytes: u64,
}

/// A node of this generation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Node {
    pub(crate) member: Member,
    pub(crate) role: Role,
    pub(crate) host_name: Arc<str>,
    pub(crate) host_ip: Arc<str>,
    pub(crate) wanted_rank: Option<u32>,
    /// No two nodes of one base role have the same.
    pub(crate) rank: u32,
    /// It registered more than once.
    pub(crate) recovered: bool,
    pub(crate) silent: bool,
    pub(crate) left: bool,
    /// From when all nodes were there.
    pub(crate) ports: Option<PortRange>,
}

impl Topology {
    pub(crate) fn new(generation: u64) -> Self {
        Self {
            generation,
            phase: TopoState::Initializing,
            deadline: None,
            dialect: None,
            nodes: Weighed::default(),
            metadata: Weighed::default(),
            members: OrdMap::new(),
            ranks: Ranks::default(),
            silent: 0,
            left: 0,
            metadata_bytes: 0,
        }
    }

    /// Whether the next registration begins another generation.
    pub(crate) fn is_over(&self) -> bool {
        match self.phase {
            TopoState::Finished | TopoState::Failed => true,
            TopoState::Initializing | TopoState::Initialized => {
                self.silent > 0 && self.silent + self.left == self.registered()
            }
        }
    }

    pub(crate) fn nodes(&self) -> &OrdMap<NodeName, Node> {
        &self.nodes
    }

    pub(crate) fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.get(name)
    }

    pub(crate) fn members(&self) -> &OrdMap<Member, NodeName> {
        &self.members
    }

    /// How many have registered in this generation, whatever became of them.
    pub(crate) fn registered(&self) -> u32 {
        count(self.nodes.len())
    }

    pub(crate) fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// Nodes that are silent and have not left.
    pub(crate) fn silent(&self) -> u32 {
        self.silent
    }

    pub(crate) fn all_left(&self) -> bool {
        self.left == self.registered()
    }

    /// Adds a node, or changes one.
    pub(crate) fn put(&mut self, name: NodeName, node: Node) {
        if let Some(before) = self.nodes.get(&name) {
            self.ranks.remove(before.role.base(), before.rank, before.member);
            self.silent -= u32::from(before.is_silent());
            self.left -= u32::from(before.left);
        }
        self.ranks.insert(node.role.base(), node.rank, node.member);
        self.silent += u32::from(node.is_silent());
        self.left += u32::from(node.left);
        self.members.insert(node.member, name.clone());
        self.nodes.insert(name, node);
    }

    /// Gives all nodes of a role other ranks, each of which is one of theirs or free.
    pub(crate) fn put_all(&mut self, nodes: Vec<(NodeName, Node)>) {
        for (_, node) in &nodes {
            let before = self.members.get(&node.member).and_then(|name| self.nodes.get(name));
            if let Some(rank) = before.map(|before| before.rank) {
                self.ranks.remove(node.role.base(), rank, node.member);
            }
        }
        for (name, node) in nodes {
            self.ranks.insert(node.role.base(), node.rank, node.member);
            self.nodes.insert(name, node);
        }
    }

    pub(crate) fn metadata(&self) -> &OrdMap<MetadataName, Bytes> {
        &self.metadata
    }

    /// Bytes of all names and values.
    pub(crate) fn metadata_bytes(&self) -> u64 {
        self.metadata_bytes
    }

    /// Keeps an entry, or with an empty value none.
    pub(crate) fn write(&mut self, name: MetadataName, value: Bytes) {
        let key = name.as_str().len() as u64;
        let before = if value.is_empty() {
            self.metadata.remove(&name)
        } else {
            self.metadata_bytes += key + value.len() as u64;
            self.metadata.insert(name, value)
        };
        if let Some(before) = before {
            self.metadata_bytes -= key + before.len() as u64;
        }
    }

    /// What it takes, roughly.
    pub(crate) fn bytes(&self) -> u64 {
        self.nodes.bytes().saturating_add(self.metadata.bytes()).saturating_add(self.around())
    }

    /// The same from all of it.
    pub(crate) fn recounted(&self) -> u64 {
        self.nodes.recounted().saturating_add(self.metadata.recounted()).saturating_add(self.around())
    }

    /// Of what is derived.
    fn around(&self) -> u64 {
        of_map::<Member, NodeName>(self.members.len()).saturating_add(self.ranks.bytes())
    }
}

impl Node {
    fn is_silent(&self) -> bool {
        self.silent && !self.left
    }
}

impl Weigh for Node {
    fn outside(&self) -> u64 {
        of_text(self.host_name.len()).saturating_add(of_text(self.host_ip.len()))
    }
}

impl Weigh for NodeName {
    fn outside(&self) -> u64 {
        of_text(self.as_str().len())
    }
}

impl Weigh for MetadataName {
    fn outside(&self) -> u64 {
        of_text(self.as_str().len())
    }
}

/// Of nodes, of which there are at most [`crate::mindspore::limits::NODES_MAX`].
fn count(nodes: usize) -> u32 {
    u32::try_from(nodes).unwrap_or(u32::MAX)
}
