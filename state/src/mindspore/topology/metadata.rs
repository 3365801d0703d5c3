//! Entries that nodes leave for each other, and those that are derived from the nodes.

use bytes::Bytes;

use crate::ids::{MetadataName, NodeName};
use crate::job::turn::Turn;
use crate::limits::within;
use crate::mindspore::Answer;
use crate::mindspore::apply::Answered;
use crate::mindspore::limits::{
    METADATA_BYTES_MAX, METADATA_ENTRIES_MAX, METADATA_NAME_BYTES_MAX, METADATA_VALUE_BYTES_MAX,
};
use crate::mindspore::topology::record::{Node, Topology};
use crate::mindspore::topology::{Role, TopoState};

impl Turn<'_> {
    pub(super) fn write_metadata(&mut self, name: &str, value: Bytes) -> Answered {
        within("bytes of a metadata name", name.len() as u64, METADATA_NAME_BYTES_MAX as u64)?;
        within("bytes of a metadata value", value.len() as u64, METADATA_VALUE_BYTES_MAX as u64)?;
        let kept = &mut self.job.domains.topology;
        if let Some(topology) = kept.as_deref() {
            topology.check_room(name, &value)?;
        } else if value.is_empty() {
            return Ok(Answer::Written);
        }
        let topology = kept.get_or_insert_with(|| Box::new(Topology::new(1)));
        topology.write(MetadataName::from(name), value);
        self.mindspore_changed();
        Ok(Answer::Written)
    }

    pub(super) fn delete_metadata(&mut self, name: &str) -> Answered {
        let Some(topology) = self.job.domains.topology.as_deref_mut() else {
            return Ok(Answer::Deleted { existed: false });
        };
        let existed = topology.entry(name).is_some();
        if topology.metadata().contains_key(name) {
            topology.write(MetadataName::from(name), Bytes::new());
            self.mindspore_changed();
        }
        Ok(Answer::Deleted { existed })
    }
}

impl Topology {
    /// What an entry says. Those that are derived come first: nobody writes over them.
    pub(super) fn entry(&self, name: &str) -> Option<Bytes> {
        if let Some(node) = self.told_by(name) {
            return Some(Bytes::from(node.rank.to_string()));
        }
        self.metadata().get(name).cloned()
    }

    /// The node whose rank the entry tells, once it is final.
    fn told_by(&self, name: &str) -> Option<&Node> {
        let is_final = matches!(self.phase, TopoState::Initialized | TopoState::Finished);
        let mut roles = Role::ALL.into_iter().filter(|_| is_final);
        roles.find_map(|role| {
            let node = self.node(name.strip_prefix(role.name())?)?;
            (node.role == role).then_some(node)
        })
    }

    fn check_room(&self, name: &str, value: &Bytes) -> Result<(), crate::fault::Fault> {
        if value.is_empty() {
            return Ok(());
        }
        let before = self.metadata().get(name);
        let entries = self.metadata().len() as u64 + u64::from(before.is_none());
        within("metadata entries of the job", entries, METADATA_ENTRIES_MAX)?;
        let more = before.map_or((name.len() + value.len()) as u64, |_| value.len() as u64);
        let less = before.map_or(0, |before| before.len() as u64);
        within("bytes of the job's metadata", self.metadata_bytes() - less + more, METADATA_BYTES_MAX)
    }
}

/// The ids of nodes by rank, for those who ask for the hosts of a role.
pub(super) fn by_rank(topology: &Topology, role: Role) -> Vec<(&NodeName, &Node)> {
    let mut nodes: Vec<(&NodeName, &Node)> =
        topology.nodes().iter().filter(|(_, node)| node.role == role).collect();
    nodes.sort_by_key(|(_, node)| node.rank);
    nodes
}
