//! What a log must hold: a map and a few values. And random changes that Raft could make to it.

use std::collections::BTreeMap;

use crate::base::test_entries::{entry, id};
use crate::base::types::{Entry, LogId, Vote};
use crate::disk::journal::simulated::Dice;
use crate::disk::{Change, Loaded};

/// A log.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Log {
    pub(super) entries: BTreeMap<u64, Entry>,
    pub(super) values: Loaded,
}

impl Log {
    pub(super) fn last(&self) -> Option<LogId> {
        self.entries.values().next_back().map(|entry| entry.log_id).or(self.values.purged)
    }

    fn next_index(&self) -> u64 {
        self.last().map_or(0, |id| id.index + 1)
    }

    pub(super) fn apply(&mut self, change: &Change) {
        match change {
            Change::Append(entries) => {
                self.entries.extend(entries.iter().map(|entry| (entry.log_id.index, entry.clone())));
            }
            Change::Vote(vote) => self.values.vote = Some(*vote),
            Change::Committed(id) => self.values.committed = Some(*id),
            Change::TruncateAfter(keep) => {
                self.entries.split_off(&keep.map_or(0, |id| id.index + 1));
            }
            Change::Purge(upto) => {
                self.entries = self.entries.split_off(&(upto.index + 1));
                self.values.purged = Some(*upto);
            }
        }
    }

    /// Every log that may be found if only a part of these changes has reached the disk.
    pub(super) fn prefixes(&self, changes: &[Change]) -> Vec<Self> {
        let mut log = self.clone();
        let mut all = vec![log.clone()];
        for change in changes {
            // A large group is written as several frames, which may cut an append.
            let steps: Vec<Change> = match change {
                Change::Append(entries) => entries.iter().map(|e| Change::Append(vec![e.clone()])).collect(),
                other => vec![other.clone()],
            };
            for step in steps {
                log.apply(&step);
                all.push(log.clone());
            }
        }
        all
    }
}

/// Something that happens to a journal.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// The writer takes these from its queue at once.
    Group(Vec<Change>),
    /// The writer has nothing to do.
    Rest,
    /// The node is stopped and started.
    Reopen,
}

/// Makes up steps. What it makes is valid for the log as the steps so far have left it.
pub(super) struct Script {
    dice: Dice,
    log: Log,
    term: u64,
}

impl Script {
    pub(super) fn steps(seed: u64, count: usize) -> Vec<Step> {
        let mut script = Self { dice: Dice::new(seed), log: Log::default(), term: 1 };
        (0..count).map(|_| script.step()).collect()
    }

    fn step(&mut self) -> Step {
        match self.dice.below(12) {
            0 => Step::Reopen,
            1 | 2 => Step::Rest,
            _ => {
                let count = 1 + self.dice.below(3);
                let mut group = Vec::new();
                for _ in 0..count {
                    let changes = self.changes();
                    changes.iter().for_each(|change| self.log.apply(change));
                    group.extend(changes);
                }
                Step::Group(group)
            }
        }
    }

    fn changes(&mut self) -> Vec<Change> {
        let (next, committed) = (self.log.next_index(), self.log.values.committed);
        let settled = committed.map_or(0, |id| id.index + 1);
        match self.dice.below(10) {
            0 => {
                self.term += 1;
                vec![Change::Vote(Vote::new(self.term, 1))]
            }
            // A cut of what is not committed, by a new leader.
            1 if next > settled => {
                self.term += 1;
                let upto = settled + self.dice.below(next - settled);
                let keep = upto.checked_sub(1).map(|index| self.id_of(index));
                vec![Change::TruncateAfter(keep), self.append_at(upto)]
            }
            2 | 3 if next > settled => {
                let index = settled + self.dice.below(next - settled);
                vec![Change::Committed(self.id_of(index))]
            }
            4 => self.purge(settled),
            5 if self.dice.below(4) == 0 => {
                // A snapshot from the leader, far ahead.
                let upto = id(self.term, next + self.dice.below(9));
                vec![Change::Purge(upto), Change::Committed(upto)]
            }
            _ => vec![self.append_at(next)],
        }
    }

    fn purge(&mut self, settled: u64) -> Vec<Change> {
        let first = self.log.values.purged.map_or(0, |id| id.index + 1);
        if first >= settled {
            return vec![self.append_at(self.log.next_index())];
        }
        let index = first + self.dice.below(settled - first);
        vec![Change::Purge(self.id_of(index))]
    }

    fn append_at(&mut self, first: u64) -> Change {
        let count = 1 + self.dice.below(5);
        let entries = (first..first + count).map(|index| {
            let bytes = self.dice.pick(&[3, 3, 40, 40, 200, 200, 200, 700, 2000]);
            entry(self.term, index, bytes)
        });
        Change::Append(entries.collect())
    }

    /// The id of an entry that is there, or was purged last.
    fn id_of(&self, index: u64) -> LogId {
        let known = self.log.entries.get(&index).map(|entry| entry.log_id);
        known.or(self.log.values.purged).expect("an index of the log")
    }
}
