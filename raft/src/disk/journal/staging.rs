//! Changes on their way into frames.

use std::collections::VecDeque;

use crate::base::types::{Entry, LogId};
use crate::disk::Change;
use crate::disk::journal::record::{self, Checkpoint, Record};
use crate::disk::journal::state::{LogValues, behind};

/// What is reserved for a frame before anything is in it. A few small entries fit.
const BODY_BYTES: usize = 2048;

/// A frame that is not written yet.
pub(crate) struct Draft {
    pub(crate) body: Vec<u8>,
    pub(crate) edits: Vec<Edit>,
    /// The log behind this frame.
    pub(crate) values: LogValues,
    /// Nothing more may be added.
    full: bool,
    /// Where the bytes of a record of entries begin that ends with the body, and may be continued.
    open_entries: Option<usize>,
}

/// What a frame changes in the index of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edit {
    Add { first: u64, last: u64, record_at: usize },
    CutAfter(Option<LogId>),
    DropBelow { first: u64 },
}

/// Changes that wait for the next flush, already encoded.
pub(crate) struct Staging {
    drafts: VecDeque<Draft>,
    /// The log behind everything that is staged.
    values: LogValues,
    /// Bytes of a body that fit every segment; only a single entry may need more.
    body_max: usize,
}

impl Staging {
    pub(crate) fn new(values: LogValues, body_max: usize) -> Self {
        Self { drafts: VecDeque::new(), values, body_max }
    }

    pub(crate) fn values(&self) -> &LogValues {
        &self.values
    }

    pub(crate) fn first(&self) -> Option<&Draft> {
        self.drafts.front()
    }

    pub(crate) fn pop(&mut self) -> Option<Draft> {
        self.drafts.pop_front()
    }

    /// Whether a truncation waits.
    pub(crate) fn holds_cut(&self) -> bool {
        let edits = self.drafts.iter().flat_map(|draft| &draft.edits);
        edits.into_iter().any(|edit| matches!(edit, Edit::CutAfter(_)))
    }

    pub(crate) fn stage(&mut self, change: &Change) {
        match change {
            Change::Append(entries) => self.append(entries),
            Change::Vote(vote) => {
                self.values.vote = Some(*vote);
                self.push(&Record::Vote(*vote), None);
            }
            // It only ever grows, and the home is checked against it.
            Change::Committed(id) if behind(Some(*id)) <= behind(self.values.committed) => {}
            Change::Committed(id) => {
                self.values.committed = Some(*id);
                self.push(&Record::Committed(*id), None);
            }
            Change::TruncateAfter(keep) => {
                self.values.truncate_after(*keep);
                self.push(&Record::TruncateAfter(*keep), Some(Edit::CutAfter(*keep)));
            }
            Change::Purge(upto) => {
                self.values.purge(*upto);
                self.push(&Record::Purge(*upto), Some(Edit::DropBelow { first: upto.index + 1 }));
            }
        }
    }

    pub(crate) fn stage_checkpoint(&mut self, checkpoint: Checkpoint) {
        self.values.checkpoint = checkpoint;
        self.push(&Record::Checkpoint(checkpoint), None);
    }

    fn push(&mut self, record: &Record<'_>, edit: Option<Edit>) {
        let values = self.values;
        let body_max = self.body_max;
        let draft = self.open_draft();
        record.encode(&mut draft.body);
        draft.open_entries = None;
        draft.edits.extend(edit);
        draft.values = values;
        draft.full = draft.body.len() >= body_max;
    }

    fn open_draft(&mut self) -> &mut Draft {
        if self.drafts.back().is_none_or(|draft| draft.full) {
            let (body, edits) = (Vec::with_capacity(BODY_BYTES), Vec::new());
            let draft = Draft { body, edits, values: self.values, full: false, open_entries: None };
            self.drafts.push_back(draft);
        }
        self.drafts.back_mut().expect("one was pushed if there was none")
    }

    fn append(&mut self, entries: &[Entry]) {
        let mut rest = entries;
        while let Some(first) = rest.first() {
            let index = first.log_id.index;
            let expected = self.values.next_index().unwrap_or(index);
            assert!(index == expected, "entry {index} is appended where {expected} must follow");
            let taken = self.append_some(rest);
            rest = &rest[taken..];
        }
    }

    /// Adds as many entries to the open draft as it takes; it takes one at least if it is empty.
    fn append_some(&mut self, entries: &[Entry]) -> usize {
        let (body_max, mut values) = (self.body_max, self.values);
        let draft = self.open_draft();
        let empty = draft.body.is_empty();
        let record_at = draft.body.len();
        let start = match draft.open_entries {
            Some(start) => start,
            None => record::begin(&mut draft.body, record::TYPE_ENTRIES),
        };
        let mut last = None;
        let mut taken = 0;
        for entry in entries {
            let before = draft.body.len();
            record::push_entry(&mut draft.body, entry);
            if draft.body.len() > body_max && (taken > 0 || !empty) {
                draft.body.truncate(before);
                draft.full = true;
                break;
            }
            taken += 1;
            last = Some(entry.log_id);
        }
        let Some(last) = last else {
            draft.body.truncate(record_at);
            return 0;
        };
        record::finish(&mut draft.body, start);
        match draft.edits.last_mut().filter(|_| draft.open_entries.is_some()) {
            Some(Edit::Add { last: end, .. }) => *end = last.index,
            _ => draft.edits.push(Edit::Add { first: entries[0].log_id.index, last: last.index, record_at }),
        }
        draft.open_entries = Some(start);
        values.last = Some(last);
        draft.values = values;
        self.values = values;
        taken
    }
}
