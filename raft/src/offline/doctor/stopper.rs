//! The first entry that a node would stop at.

use std::path::{Path, PathBuf};

use openraft::EntryPayload;
use tripod_state::level;

use crate::base::command;
use crate::base::types::Entry;
use crate::disk::skipped::{Skipped, checksum};

/// Looks for an entry that this build cannot read.
pub(super) struct Unreadable<'a> {
    data: PathBuf,
    skipped: &'a Skipped,
    /// The last entry in the newest snapshot: up to there nothing is applied again.
    saved: u64,
    problem: Option<String>,
}

impl<'a> Unreadable<'a> {
    pub(super) fn new(data: &Path, skipped: &'a Skipped, saved: u64) -> Self {
        Self { data: data.to_owned(), skipped, saved, problem: None }
    }

    pub(super) fn take(&mut self, entry: &Entry) {
        let EntryPayload::Normal(command) = &entry.payload else { return };
        let index = entry.log_id.index;
        if index <= self.saved || self.problem.is_some() || self.skipped.holds(index, &command.payload) {
            return;
        }
        let Err(why) = command::readable(&command.payload, level::NEWEST) else { return };
        let (checksum, data) = (checksum(&command.payload), self.data.display());
        self.problem = Some(format!(
            "T3114 apply-unknown: the command at index {index} (checksum {checksum:016x}) cannot be read: {why}. Start \
             the newest build that any node of the cluster has run. If no build can read it, all nodes have stopped at \
             it: then run `tripod repair skip {data} --index {index} --checksum {checksum:016x}` on each of them"
        ));
    }

    /// What was found.
    pub(super) fn problem(self) -> Option<String> {
        self.problem
    }
}
