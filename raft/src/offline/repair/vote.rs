//! A vote in a term that no election of this cluster can have reached.

use std::path::Path;

use openraft::impls::leader_id_adv::LeaderId;

use super::{Error, OpenLog};
use crate::base::types::{TERMS_AHEAD_MAX, Vote};
use crate::disk::{Change, Disk as _};
use crate::snapshot::SnapshotStore;

/// How far behind the last entry the new vote is. This node may have voted in terms that left no entry, though never in so
/// many; and a node never votes twice in one term.
const TERMS_SKIPPED: u64 = 1 << 20;

/// What was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepairedVote {
    /// The term of the vote that was there.
    pub from_term: u64,
    /// The term of the one that is there now.
    pub to_term: u64,
    /// The term of the last entry in the log, or of the newest snapshot.
    pub last_term: u64,
}

/// Why a vote cannot be from an election of a cluster whose log ends in `last_term`, if so.
pub(crate) fn absurd(vote: &Vote, last_term: u64) -> Option<String> {
    let term = vote.leader_id.term;
    (term > last_term.saturating_add(TERMS_AHEAD_MAX)).then(|| {
        format!("the vote is of term {term}, and the log ends in term {last_term}: no election of this cluster came so far")
    })
}

/// Replaces an absurd vote in the log of `data`, durably. Blocks.
///
/// # Errors
/// [`Error`]; nothing was changed.
pub fn vote(data: &Path) -> Result<RepairedVote, Error> {
    let mut last_term = 0;
    let mut log = OpenLog::open(data, &mut |entry| last_term = last_term.max(entry.log_id.leader_id.term))?;
    let last_term = last_term.max(saved_term(data)?);
    let held = log.loaded.vote.filter(|vote| absurd(vote, last_term).is_some());
    let Some(held) = held else {
        let vote = log.loaded.vote.map_or_else(
            || "there is none".to_owned(),
            |vote| format!("it is of term {}, and the log ends in term {last_term}", vote.leader_id.term),
        );
        log.close();
        return Err(Error::Refused(format!(
            "T5501 repair-refused: the vote in {} is as it should be ({vote}); nothing was changed",
            data.display()
        )));
    };
    let to_term = last_term + TERMS_SKIPPED;
    let new = Vote { leader_id: LeaderId { term: to_term, node_id: log.node }, committed: false };
    let written = log.disk.write(&[Change::Vote(new)]).and_then(|()| log.disk.sync());
    log.close();
    written?;
    Ok(RepairedVote { from_term: held.leader_id.term, to_term, last_term })
}

/// The term in which the newest whole snapshot ends.
fn saved_term(data: &Path) -> Result<u64, Error> {
    let store = SnapshotStore::open_directory(&data.join("snapshots")).map_err(|error| {
        Error::Storage(format!("T3106 snapshot-io: {error}; check the disk and permissions"))
    })?;
    Ok(store.current().and_then(|snapshot| snapshot.meta.last_log_id).map_or(0, |last| last.leader_id.term))
}
