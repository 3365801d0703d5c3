//! Whether the nodes hold the same.

use super::indexes;
use super::node::NodeView;

/// What the hashes of the nodes amount to. Only those at one index can be compared.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// Fewer than two were asked for and told.
    None,
    Equal {
        index: u64,
    },
    /// Some were taken at other indexes than others, and none contradicts another.
    Moving,
    /// Nodes that hold different things at one index.
    Different {
        index: u64,
        nodes: Vec<u64>,
    },
}

/// Compares what the nodes told.
pub(super) fn compare(nodes: &[NodeView]) -> Comparison {
    let told: Vec<(u64, u64, &str)> = nodes
        .iter()
        .filter_map(|node| Some((node.id()?, node.applied_index?, node.digest.as_deref()?)))
        .collect();
    let [(_, index, _), _, ..] = told[..] else { return Comparison::None };
    for (_, index, digest) in &told {
        let here = || told.iter().filter(|(_, other, _)| other == index);
        if here().any(|(_, _, other)| other != digest) {
            return Comparison::Different { index: *index, nodes: here().map(|(id, _, _)| *id).collect() };
        }
    }
    if told.iter().all(|(_, other, _)| *other == index) {
        Comparison::Equal { index }
    } else {
        Comparison::Moving
    }
}

impl Comparison {
    /// The line below the table. What differs is a trouble, which has its own.
    pub(super) fn render(&self, base: u64) -> Option<String> {
        match self {
            Self::None | Self::Different { .. } => None,
            Self::Equal { index } => {
                Some(format!("digests: all equal at index {}", indexes::shown(*index, base)))
            }
            Self::Moving => Some(
                "digests: of different indexes, which cannot be compared; again: tripod status --digest"
                    .to_owned(),
            ),
        }
    }
}
