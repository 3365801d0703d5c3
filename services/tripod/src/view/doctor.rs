//! What is in a data directory, as it is printed.

use serde_json::Value;
use tripod_raft::doctor::{EntryId, Report};

use crate::output::Table;
use crate::view::{count, counted};

/// The report for people.
pub(crate) fn render(report: &Report) -> String {
    let mut facts = Table::new(&["WHAT", "FOUND"]);
    for (name, fact) in summary(report) {
        facts.row(vec![name.to_owned(), fact]);
    }
    let mut parts = vec![facts.render()];
    if !report.journal.is_empty() {
        parts.push(journal(report));
    }
    if !report.snapshots.is_empty() {
        parts.push(snapshots(report));
    }
    parts.join("\n\n")
}

fn summary(report: &Report) -> Vec<(&'static str, String)> {
    let log = &report.log;
    let range = match (log.first, log.last) {
        (Some(first), Some(last)) => {
            let entries = counted(log.entries, "entry", "entries");
            format!("{entries}, {} to {}, {} bytes", first.index, last.index, log.bytes)
        }
        _ => "no entries".to_owned(),
    };
    let vote = report.vote.map_or_else(
        || "none".to_owned(),
        |vote| {
            let led = if vote.committed { ", which led" } else { "" };
            format!("term {} for node {}{led}", vote.term, vote.node)
        },
    );
    vec![
        ("directory", report.data.clone()),
        ("identity", identity(report.identity.as_ref())),
        ("identity in log", identity(report.log_identity.as_ref())),
        ("vote", vote),
        ("log", range),
        ("committed", id(log.committed)),
        ("purged up to", id(log.purged)),
        ("applied at start", report.applied_at_start.to_string()),
        ("notes", if report.notes.is_empty() { "none".into() } else { report.notes.join(", ") }),
        ("verdict", verdict(report)),
    ]
}

fn verdict(report: &Report) -> String {
    match report.problems.len() {
        0 => "the node would start".to_owned(),
        found => count(found, "problem"),
    }
}

fn journal(report: &Report) -> String {
    let mut table = Table::new(&["SEGMENT", "BYTES", "FRAMES", "END", "ENTRIES", "STATE"]);
    for segment in &report.journal {
        let entries = match (segment.first_index, segment.last_index) {
            (Some(first), Some(last)) => format!("{first} to {last}"),
            _ => "-".to_owned(),
        };
        let state = match (segment.damaged, segment.frames) {
            (true, _) => "damaged",
            (false, 0) => "ready",
            (false, _) => "ok",
        };
        table.row(vec![
            segment.file.clone(),
            segment.file_bytes.to_string(),
            segment.frames.to_string(),
            segment.frames_end_bytes.to_string(),
            entries,
            state.to_owned(),
        ]);
    }
    table.render()
}

fn snapshots(report: &Report) -> String {
    let mut table = Table::new(&["SNAPSHOT", "LAST", "BYTES", "KEYS", "STATE"]);
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    for snapshot in &report.snapshots {
        table.row(vec![
            snapshot.file.clone(),
            id(snapshot.last),
            number(snapshot.bytes),
            number(snapshot.keys),
            if snapshot.whole { "ok" } else { "damaged" }.to_owned(),
        ]);
    }
    table.render()
}

fn id(id: Option<EntryId>) -> String {
    id.map_or_else(|| "-".to_owned(), |id| format!("{} of term {}", id.index, id.term))
}

/// The fields, whatever a version of the program wrote there.
fn identity(found: Option<&Value>) -> String {
    let Some(fields) = found.and_then(Value::as_object) else { return "none that can be read".to_owned() };
    let field = |(name, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        format!("{name} {value}")
    };
    fields.iter().map(field).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tripod_raft::doctor::{LogFacts, SegmentFacts, SnapshotFacts, VoteFacts};

    use super::*;

    #[test]
    fn a_report_fits_a_screen() {
        let entry = |index| Some(EntryId { index, term: 3 });
        let report = Report {
            data: "/d".into(),
            identity: Some(json!({ "cluster_id": "c", "node": 1 })),
            log_identity: None,
            vote: Some(VoteFacts { term: 3, node: 2, committed: true }),
            log_whole: true,
            log: LogFacts {
                entries: 5,
                bytes: 500,
                first: entry(6),
                last: entry(10),
                committed: entry(9),
                purged: entry(5),
            },
            journal: vec![SegmentFacts {
                file: "1.segment".into(),
                file_bytes: 4096,
                frames: 0,
                frames_end_bytes: 64,
                first_index: None,
                last_index: None,
                damaged: true,
            }],
            snapshots: vec![SnapshotFacts {
                file: "s.snap".into(),
                whole: false,
                cluster_id: None,
                last: None,
                bytes: None,
                keys: None,
            }],
            notes: vec!["restored".into()],
            applied_at_start: 9,
            problems: vec!["one".into()],
        };
        let text = render(&report);
        for line in [
            "identity          cluster_id c, node 1",
            "identity in log   none that can be read",
            "vote              term 3 for node 2, which led",
            "log               5 entries, 6 to 10, 500 bytes",
            "purged up to      5 of term 3",
            "verdict           1 problem",
            "1.segment  4096   0       64   -        damaged",
            "s.snap    -     -      -     damaged",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
