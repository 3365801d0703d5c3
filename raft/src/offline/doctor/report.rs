//! What is found in a data directory. Serialised as it is: the names are a schema that scripts rely on.

use serde::Serialize;
use serde_json::Value;

use crate::base::types::{Entry, TERMS_AHEAD_MAX, Vote, entry_bytes};
use crate::disk::journal::SegmentFacts;
use crate::offline::backup::Contents;

/// Everything that was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    pub data: String,
    /// Whose directory it is, as the file beside the log says.
    pub identity: Option<Value>,
    /// The same, as the log itself says.
    pub log_identity: Option<Value>,
    pub vote: Option<VoteFacts>,
    pub log: LogFacts,
    /// The log could be read to its end. If not, `log` tells of what came before the damage.
    pub log_whole: bool,
    pub journal: Vec<SegmentFacts>,
    /// In ascending order of their last entry.
    pub snapshots: Vec<SnapshotFacts>,
    /// `rejoining`: the node has lost its data and gives no vote. `restored`: it was restored, and has not joined.
    pub notes: Vec<String>,
    /// The last entry that the node holds applied when it has started: the newest whole snapshot, and what
    /// was committed behind it.
    pub applied_at_start: u64,
    /// What is wrong, one each. Empty: the node would start.
    pub problems: Vec<String>,
}

/// A place in the log. Of two logs, the one with the greater last place is further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct EntryId {
    pub term: u64,
    pub index: u64,
}

/// The last vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct VoteFacts {
    pub term: u64,
    /// For whom.
    pub node: u64,
    /// A majority gave theirs, too: that node led.
    pub committed: bool,
}

/// The entries that are in the log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LogFacts {
    pub entries: u64,
    /// Of their commands, with what memory holds for each.
    pub bytes: u64,
    pub first: Option<EntryId>,
    pub last: Option<EntryId>,
    /// The last entry known as committed when it was written; there may be more.
    pub committed: Option<EntryId>,
    /// The last entry that was given up for a snapshot.
    pub purged: Option<EntryId>,
}

/// A snapshot file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotFacts {
    pub file: String,
    /// Every byte was read, and is what was written.
    pub whole: bool,
    pub cluster_id: Option<String>,
    pub last: Option<EntryId>,
    pub bytes: Option<u64>,
    pub keys: Option<u64>,
}

impl VoteFacts {
    pub(super) fn of(vote: &Vote) -> Self {
        Self { term: vote.leader_id.term, node: vote.leader_id.node_id, committed: vote.committed }
    }
}

/// What says whose a directory is.
const OWNER: [&str; 2] = ["cluster_id", "node"];

impl LogFacts {
    pub(super) fn count(&mut self, entry: &Entry) {
        let id = EntryId { index: entry.log_id.index, term: entry.log_id.leader_id.term };
        self.entries += 1;
        self.bytes += entry_bytes(entry) as u64;
        self.first.get_or_insert(id);
        self.last = Some(id);
    }
}

impl SnapshotFacts {
    pub(super) fn whole(file: String, contents: &Contents) -> Self {
        Self {
            file,
            whole: true,
            cluster_id: Some(contents.cluster_id.clone()),
            last: Some(EntryId { index: contents.index.0, term: contents.term.0 }),
            bytes: Some(contents.file_bytes),
            keys: Some(contents.counts.keys),
        }
    }

    pub(super) fn damaged(file: String) -> Self {
        Self { file, whole: false, cluster_id: None, last: None, bytes: None, keys: None }
    }
}

impl Report {
    fn judge_vote(&mut self) {
        let last_term = self.last().map_or(0, |last| last.term);
        let absurd = self.vote.filter(|vote| vote.term > last_term.saturating_add(TERMS_AHEAD_MAX));
        if let Some(vote) = absurd {
            let data = &self.data;
            self.problems.push(format!(
                "T3117 vote-absurd: the vote is of term {}, and the log ends in term {last_term}: no election of this \
                 cluster came so far. Repair it with `tripod repair vote {data}`",
                vote.term
            ));
        }
    }

    /// Where the node's knowledge ends: its last entry, or that of its newest snapshot.
    #[must_use]
    pub fn last(&self) -> Option<EntryId> {
        let saved = self.snapshots.iter().filter_map(|snapshot| snapshot.last).max();
        saved.max(self.log.last)
    }

    /// Compares what the parts say of each other.
    pub(super) fn judge(&mut self) {
        self.judge_vote();
        if let (Some(file), Some(log)) = (&self.identity, &self.log_identity)
            // The format of the file rises with the feature level, that of the log does not.
            && OWNER.iter().any(|field| file[field] != log[field])
        {
            self.problems.push(format!("T4104 identity-node: identity.json says {file}, the log says {log}"));
        }
        let saved = self.snapshots.iter().filter_map(|snapshot| snapshot.last).map(|last| last.index).max();
        let purged = self.log.purged.map(|purged| purged.index);
        if let Some(purged) = purged.filter(|purged| saved.is_none_or(|saved| saved < *purged)) {
            self.problems.push(format!(
                "T3105 snapshot-damaged: the log begins behind index {purged}, but no whole snapshot reaches so far"
            ));
        }
        let own = self.log_identity.as_ref().or(self.identity.as_ref());
        let own = own.and_then(|identity| identity.get("cluster_id")).and_then(Value::as_str);
        for snapshot in &self.snapshots {
            if let (Some(own), Some(other)) = (own, &snapshot.cluster_id)
                && own != other
            {
                let file = &snapshot.file;
                self.problems
                    .push(format!(
                    "T4103 identity-cluster: snapshots/{file} is of cluster {other}, the node belongs to {own}"
                ));
            }
        }
        let committed = self.log.committed.map_or(0, |committed| committed.index);
        self.applied_at_start = saved.unwrap_or(0).max(committed);
    }
}
