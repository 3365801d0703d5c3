//! A dynamic cluster in pieces, for snapshots. What is derived is not in them.

use std::hash::{Hash, Hasher};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::ids::{FeatureLevel, JobId, MetadataName, NodeName, TimeMs};
use crate::job::domains::{Domain, SnapshotSection};
use crate::level::Kind;
use crate::mindspore::limits::{METADATA_BYTES_MAX, METADATA_ENTRIES_MAX, NODES_MAX};
use crate::mindspore::topology::record::{Node, Topology};
use crate::mindspore::topology::{Dialect, TopoState};
use crate::snapshot::Malformed;
use crate::snapshot::read::Reader;
use crate::snapshot::record::{Piece, Record};
use crate::task::table::Table as Tasks;

/// The first piece.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    generation: u64,
    phase: TopoState,
    deadline: Option<TimeMs>,
    dialect: Option<Dialect>,
    /// How many pieces of each kind follow.
    nodes: u64,
    entries: u64,
}

/// One of the others: the nodes by name, then the entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Part {
    Node(NodeName, Node),
    Entry(MetadataName, Bytes),
}

impl Domain for Option<Box<Topology>> {
    const SECTION: SnapshotSection = SnapshotSection::BehindSessionOwners;
    const KEPT_SINCE: FeatureLevel = Kind::TOPOLOGY_REGISTER.needs;

    fn is_empty(&self) -> bool {
        self.is_none()
    }

    fn digest<H: Hasher>(&self, hasher: &mut H) {
        if let Some(topology) = self {
            topology.hash(hasher);
        }
    }

    fn bytes(&self) -> u64 {
        self.as_ref().map_or(0, |topology| topology.bytes())
    }

    fn recounted(&self) -> u64 {
        self.as_ref().map_or(0, |topology| topology.recounted())
    }

    fn records(&self, job: JobId) -> impl Iterator<Item = Piece> {
        self.iter().flat_map(move |topology| {
            let head = Head {
                generation: topology.generation,
                phase: topology.phase,
                deadline: topology.deadline,
                dialect: topology.dialect,
                nodes: topology.nodes().len() as u64,
                entries: topology.metadata().len() as u64,
            };
            let nodes = topology.nodes().iter().map(|(name, node)| Part::Node(name.clone(), node.clone()));
            let entries = topology.metadata().iter();
            let entries = entries.map(|(name, value)| Part::Entry(name.clone(), value.clone()));
            let parts = nodes.chain(entries).map(|part| Piece::TopologyPart(Box::new(part)));
            std::iter::once(Piece::Topology { job, head: Box::new(head) }).chain(parts)
        })
    }

    fn job_of(record: &Piece) -> Option<JobId> {
        let Piece::Topology { job, .. } = record else { return None };
        Some(*job)
    }

    fn restore<I: Iterator<Item = Record>>(
        &mut self,
        _: &Tasks,
        record: Piece,
        reader: &mut Reader<I>,
    ) -> Result<(), Malformed> {
        let Piece::Topology { head, .. } = record else { return reader.refuse("not a dynamic cluster") };
        let Head { generation, phase, deadline, dialect, nodes, entries } = *head;
        reader.check(self.is_none() && nodes <= NODES_MAX && entries <= METADATA_ENTRIES_MAX)?;
        let mut topology = Topology::new(generation);
        (topology.phase, topology.deadline, topology.dialect) = (phase, deadline, dialect);
        for _ in 0..nodes {
            let Piece::TopologyPart(part) = reader.next()? else { return reader.refuse("not a node") };
            let Part::Node(name, node) = *part else { return reader.refuse("not a node") };
            let ascending = topology.nodes().get_max().is_none_or(|(last, _)| *last < name);
            let is_new = !topology.members().contains_key(&node.member);
            let free = topology.ranks().get(node.role.base(), node.rank).is_none();
            reader.check(ascending && is_new && free)?;
            topology.put(name, node);
        }
        for _ in 0..entries {
            let Piece::TopologyPart(part) = reader.next()? else { return reader.refuse("not an entry") };
            let Part::Entry(name, value) = *part else { return reader.refuse("not an entry") };
            let ascending = topology.metadata().get_max().is_none_or(|(last, _)| *last < name);
            reader.check(ascending && !value.is_empty())?;
            topology.write(name, value);
            reader.check(topology.metadata_bytes() <= METADATA_BYTES_MAX)?;
        }
        *self = Some(Box::new(topology));
        Ok(())
    }
}
