//! Which build the nodes of a cluster are that is upgraded.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Nodes of the build before, and the newer one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Builds {
    newer: PathBuf,
    /// Nodes that are to be upgraded still.
    before: BTreeSet<u64>,
}

impl Builds {
    /// All these nodes are of the build before.
    pub fn before(nodes: impl IntoIterator<Item = u64>, newer: PathBuf) -> Self {
        Self { newer, before: nodes.into_iter().collect() }
    }

    /// The node that is to be upgraded next: that one, if it is of the build before.
    pub(super) fn next(&self, wanted: Option<u64>) -> Option<u64> {
        wanted.filter(|node| self.before.contains(node)).or_else(|| self.before.first().copied())
    }

    /// How many nodes are of the build before.
    #[must_use]
    pub fn left(&self) -> usize {
        self.before.len()
    }

    /// The build that this node is from now on.
    pub(super) fn upgraded(&mut self, node: u64) -> &Path {
        self.before.remove(&node);
        &self.newer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_is_upgraded_once_and_whoever_is_wanted_first() {
        let newer = PathBuf::from("newer");
        let mut builds = Builds::before(1..=3, newer.clone());
        assert_eq!((builds.next(Some(2)), builds.upgraded(2)), (Some(2), newer.as_path()));
        assert_eq!(builds.next(Some(2)), Some(1), "that one was");
        builds.upgraded(1);
        builds.upgraded(3);
        assert_eq!((builds.next(None), builds.next(Some(3)), builds.left()), (None, None, 0));
    }
}
