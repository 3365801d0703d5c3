//! What must be true of a node's log: the journal, the log store before it, and snapshots that come in.

use super::Mutant;

/// The tests beside the journal: crashes at every operation, damage to every byte.
const JOURNAL: &str = "-p tripod-raft --lib journal::";
/// The tests beside the log store.
const LOG: &str = "-p tripod-raft --lib log::";

pub(super) const ROWS: &[Mutant] = &[
    Mutant {
        name: "claim-of-the-next-segment",
        promise: "INV-9: a frame that was durable once and cannot be read is damage, also if only the header of the \
                  next segment says that it was durable.",
        file: "raft/src/disk/journal/recovery.rs",
        original: &["let claim = end.claim().max(beyond.map(|(_, claim)| claim));"],
        replacement: &["let claim = end.claim();"],
        tests: JOURNAL,
    },
    Mutant {
        name: "found-and-not-flushed",
        promise: "INV-7: what a start finds in the log is durable before the node builds on it, though a crash may \
                  have left it to the system's memory.",
        file: "raft/src/disk/journal/recovery.rs",
        original: &["last.sync_data()?;", "if !end.is_sealed(next) {"],
        replacement: &["if !end.is_sealed(next) {"],
        tests: JOURNAL,
    },
    Mutant {
        name: "moved-before-committed",
        promise: "Only committed entries leave the journal for the log's home: what a new leader cuts off must not \
                  come back from there.",
        file: "raft/src/disk/journal/moves.rs",
        original: &[
            "let last = overdue.zip(log.committed).map(|(overdue, committed)| overdue.min(committed.index));",
        ],
        replacement: &["let last = overdue.filter(|_| log.committed.is_some());"],
        tests: JOURNAL,
    },
    Mutant {
        name: "read-behind-a-cut",
        promise: "INV-8: an entry that was cut off the log is never read again, also if its record stands in the \
                  journal still.",
        file: "raft/src/disk/journal/reader.rs",
        original: &["return Source::Journal { file, place: run.place, end: end.min(run.last + 1) };"],
        replacement: &["return Source::Journal { file, place: run.place, end };"],
        tests: JOURNAL,
    },
    Mutant {
        name: "flushed-by-the-last-change",
        promise: "INV-7: an append is durable before it is acknowledged, whatever stands behind it in its group.",
        file: "raft/src/log/writer.rs",
        original: &[
            "let durable = changes.iter().any(Change::must_be_durable) && !is_planted(Bug::EarlyAcknowledgement);",
        ],
        replacement: &[
            "let durable =",
            "changes.last().is_some_and(Change::must_be_durable) && !is_planted(Bug::EarlyAcknowledgement);",
        ],
        tests: LOG,
    },
    Mutant {
        name: "written-before-the-cut",
        promise: "INV-8: what storage reports of an end of the log that was cut says nothing of the entries that stand \
                  there now: they leave memory only when they are stored.",
        file: "raft/src/log/tail.rs",
        original: &["if self.cuts == cuts {"],
        replacement: &["if self.cuts >= cuts {"],
        tests: LOG,
    },
    Mutant {
        name: "resumed-for-another-file",
        promise: "INV-26: what came of a snapshot is continued only for a file of the same entries, length and seal.",
        file: "raft/src/snapshot/part.rs",
        original: &["self.id.as_ref() == Some(id) && !self.file().inner.spoiled.load(Ordering::SeqCst)"],
        replacement: &[
            "self.id.as_ref().is_some_and(|own| own.last_log_id == id.last_log_id)",
            "&& !self.file().inner.spoiled.load(Ordering::SeqCst)",
        ],
        tests: "-p tripod-raft --lib peers::transfer::",
    },
];
