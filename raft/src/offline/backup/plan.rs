//! What is asked of a restoration, and the new cluster's id that follows from it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tripod_state::ids::NodeId;
use tripod_state::restore::Jobs;
use xxhash_rust::xxh3::Xxh3;

use super::{Contents, Error};
use crate::base::options::InitialMember;

/// Characters of a restoration's name.
const NAME_CHARS_MAX: usize = 40;

/// Makes the data directory of one node. All nodes of the new cluster are given the same but for `node` and
/// `data`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What `tripod snapshot save` wrote.
    pub file: PathBuf,
    /// Whose directory is made: one of the members.
    pub node: NodeId,
    /// Does not exist, or is empty.
    pub data: PathBuf,
    /// All voters of the new cluster.
    pub members: Vec<InitialMember>,
    /// A word for this restoration, never used for another one.
    pub name: String,
    pub jobs: Jobs,
}

impl Plan {
    /// What can be said without the file.
    pub(super) fn check(&self) -> Result<(), Error> {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        if self.name.is_empty() || self.name.len() > NAME_CHARS_MAX || !self.name.chars().all(legal) {
            return Err(plan(&format!(
                "`{}` is no name for a cluster: it has 1 to {NAME_CHARS_MAX} of the characters a-z, 0-9, `-`, `_` \
                 and `.`",
                self.name
            )));
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = self.members.iter().find(|member| !seen.insert(member.node)) {
            return Err(plan(&format!("node {} is named twice among the members", twice.node)));
        }
        if !seen.contains(&self.node) {
            return Err(plan(&format!(
                "node {} is not among the members; name every node of the new cluster, this one too",
                self.node
            )));
        }
        Ok(())
    }

    /// The new cluster's id: the name, and a hash of everything that must be the same on all of its nodes.
    /// Nodes that were restored from different files, or for different members, so belong to different
    /// clusters and refuse each other.
    pub(super) fn cluster_id(&self, contents: &Contents) -> String {
        let mut members: Vec<&InitialMember> = self.members.iter().collect();
        members.sort_by_key(|member| member.node);
        let mut hasher = Xxh3::new();
        let mut part = |bytes: &[u8]| {
            // With their lengths, so that no two lists of parts look alike.
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        part(self.name.as_bytes());
        part(contents.cluster_id.as_bytes());
        part(&contents.file_bytes.to_le_bytes());
        part(&contents.file_hash.to_le_bytes());
        part(&[u8::from(self.jobs == Jobs::Kept)]);
        for member in members {
            part(&member.node.0.to_le_bytes());
            part(member.peer.as_bytes());
        }
        format!("{}-{:016x}", self.name, hasher.digest())
    }
}

fn plan(problem: &str) -> Error {
    Error::Plan(format!("T5202 restore-plan: {problem}"))
}
