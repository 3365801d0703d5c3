//! Snapshot files as they are printed.

use std::path::Path;

use serde::Serialize;
use tripod_raft::backup::{Contents, Plan, Restored};
use tripod_state::restore::Jobs;
use tripod_state::snapshot::Counts;

use crate::args::initial::InitialMembers;
use crate::sealed::Outer;
use crate::view::{count, time};

/// What is in a file. Hashes are hexadecimal text: JSON's numbers are too small for them.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ContentsView {
    file: String,
    format: u32,
    cluster_id: String,
    /// The last log entry in it.
    index: u64,
    term: u64,
    /// The log's time at that entry, in milliseconds since the epoch.
    time_ms: u64,
    bytes: u64,
    hash: String,
    digest: String,
    voters: Vec<VoterView>,
    counts: Counts,
    /// Of a sealed file alone: `bytes` and `hash` are of what is in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed: Option<OuterView>,
}

/// A sealed file as it lies there.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct OuterView {
    bytes: u64,
    hash: String,
}

impl OuterView {
    fn of(outer: Outer) -> Self {
        Self { bytes: outer.bytes, hash: hex(outer.hash) }
    }

    fn line(&self) -> String {
        format!("{} bytes, hash {}", self.bytes, self.hash)
    }
}

/// A sealed file that nobody opened, and that is the one that was saved.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SealedFileView {
    file: String,
    sealed: OuterView,
}

impl SealedFileView {
    pub(crate) fn of(file: &Path, outer: Outer) -> Self {
        Self { file: file.display().to_string(), sealed: OuterView::of(outer) }
    }

    pub(crate) fn render(&self) -> String {
        lines(&[
            ("unchanged", self.file.clone()),
            ("sealed", self.sealed.line()),
            ("holds", "unknown: without --identity nothing of it was read".to_owned()),
        ])
    }
}

/// A voter of the cluster in which the file was saved.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct VoterView {
    id: u64,
    peer: String,
}

impl ContentsView {
    pub(crate) fn of(file: &Path, contents: &Contents) -> Self {
        let voters = contents.voters.iter().map(|(node, peer)| VoterView { id: node.0, peer: peer.clone() });
        Self {
            file: file.display().to_string(),
            format: contents.format,
            cluster_id: contents.cluster_id.clone(),
            index: contents.index.0,
            term: contents.term.0,
            time_ms: contents.now_ms.0,
            bytes: contents.file_bytes,
            hash: hex(contents.file_hash),
            digest: hex(contents.digest),
            voters: voters.collect(),
            counts: contents.counts,
            sealed: None,
        }
    }

    /// The same of a file that is sealed.
    pub(crate) fn sealed(self, outer: Option<Outer>) -> Self {
        Self { sealed: outer.map(OuterView::of), ..self }
    }

    pub(crate) fn render(&self, verdict: &str) -> String {
        let voters = self.voters.iter().map(|voter| format!("{}={}", voter.id, voter.peer));
        let age = time::since(self.time_ms, time::now_ms());
        let mut facts = vec![
            (verdict, self.file.clone()),
            ("cluster", format!("{}, voters {}", self.cluster_id, voters.collect::<Vec<_>>().join(","))),
            ("index", format!("{} of term {}, {age} ago by the log's time", self.index, self.term)),
            ("holds", counts(&self.counts)),
            ("file", format!("{} bytes, format {}, hash {}", self.bytes, self.format, self.hash)),
        ];
        facts.extend(self.sealed.as_ref().map(|sealed| ("sealed", sealed.line())));
        lines(&facts)
    }
}

/// A directory that is ready for its first start.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RestoredView {
    data: String,
    node: u64,
    cluster_id: String,
    members: String,
    /// `ended` or `kept`.
    jobs: &'static str,
    /// Where the new cluster's log begins.
    index: u64,
    term: u64,
    /// Of the file.
    saved_cluster_id: String,
    saved_index: u64,
    counts: Counts,
}

impl RestoredView {
    pub(crate) fn of(plan: &Plan, restored: &Restored, members: &InitialMembers) -> Self {
        Self {
            data: plan.data.display().to_string(),
            node: plan.node.0,
            cluster_id: restored.cluster_id.clone(),
            members: members.to_flag(),
            jobs: match plan.jobs {
                Jobs::Ended => "ended",
                Jobs::Kept => "kept",
            },
            index: restored.index.0,
            term: restored.term.0,
            saved_cluster_id: restored.contents.cluster_id.clone(),
            saved_index: restored.contents.index.0,
            counts: restored.contents.counts,
        }
    }

    pub(crate) fn render(&self) -> String {
        let told = lines(&[
            ("restored", format!("{} for node {}", self.data, self.node)),
            ("from", format!("cluster {} at index {}", self.saved_cluster_id, self.saved_index)),
            ("cluster", self.cluster_id.clone()),
            ("jobs", self.jobs.to_owned()),
            ("held", counts(&self.counts)),
        ]);
        format!(
            "{told}\nstart it, with its addresses and job flags, as:\n  tripod server --node {} --data {} --cluster-id {} \
             --initial {}",
            self.node, self.data, self.cluster_id, self.members
        )
    }
}

fn counts(counts: &Counts) -> String {
    format!(
        "{}, {}, {}, {} of {}, {}; {}",
        count(counts.jobs, "job"),
        count(counts.tasks, "task"),
        count(counts.barriers, "barrier"),
        count(counts.keys, "key"),
        count(counts.key_bytes, "byte"),
        count(counts.sessions, "session"),
        count(counts.records, "record")
    )
}

fn hex(hash: u64) -> String {
    format!("{hash:016x}")
}

/// One fact a line, the names aligned.
fn lines(facts: &[(&str, String)]) -> String {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = facts.iter().map(|(name, fact)| format!("{name:<width$}  {fact}"));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use tripod_state::ids::{LogIndex, NodeId, Term, TimeMs};

    use super::*;

    fn contents() -> Contents {
        Contents {
            format: 2,
            cluster_id: "prod-1".into(),
            index: LogIndex(41),
            term: Term(3),
            voters: vec![(NodeId(1), "a:1".into())],
            now_ms: TimeMs(5),
            file_bytes: 100,
            file_hash: u64::MAX,
            digest: 1,
            counts: Counts { records: 4, keys: 2, key_bytes: 20, jobs: 1, ..Counts::default() },
        }
    }

    #[test]
    fn hashes_survive_json() {
        let view = ContentsView::of(Path::new("b.snap"), &contents());
        let json = serde_json::to_value(&view).expect("JSON");
        assert_eq!((&json["hash"], &json["index"]), (&"ffffffffffffffff".into(), &41.into()));
        assert_eq!(json["counts"]["key_bytes"], 20);
        assert_eq!(json["voters"][0]["peer"], "a:1");
        let text = view.render("saved");
        assert!(
            text.starts_with("saved    b.snap\ncluster  prod-1, voters 1=a:1\nindex    41 of term 3"),
            "{text}"
        );
    }

    #[test]
    fn a_sealed_file_is_told_besides_what_is_in_it() {
        let outer = Outer { bytes: 300, hash: 0xab };
        let view = ContentsView::of(Path::new("b.snap.age"), &contents()).sealed(Some(outer));
        let text = view.render("whole");
        assert!(text.contains("\nfile     100 bytes, format 2, hash ffffffffffffffff\n"), "{text}");
        assert!(text.ends_with("\nsealed   300 bytes, hash 00000000000000ab"), "{text}");
        let json = serde_json::to_value(&view).expect("JSON");
        assert_eq!(json["sealed"]["hash"], "00000000000000ab");
        let plain = serde_json::to_value(view.sealed(None)).expect("JSON");
        assert!(plain.get("sealed").is_none(), "{plain}");

        let text = SealedFileView::of(Path::new("b.snap.age"), outer).render();
        assert!(
            text.starts_with("unchanged  b.snap.age\nsealed     300 bytes, hash 00000000000000ab"),
            "{text}"
        );
    }

    #[test]
    fn a_restored_directory_comes_with_the_next_command() {
        let members: InitialMembers = "1=a:1,2=b:1".parse().expect("legal");
        let plan = Plan {
            file: "b.snap".into(),
            node: NodeId(2),
            data: "/d".into(),
            members: members.as_slice().to_vec(),
            name: "new".into(),
            jobs: Jobs::Ended,
        };
        let restored = Restored {
            cluster_id: "new-00".into(),
            index: LogIndex(100),
            term: Term(4),
            contents: contents(),
        };
        let text = RestoredView::of(&plan, &restored, &members).render();
        let next = "  tripod server --node 2 --data /d --cluster-id new-00 --initial 1=a:1,2=b:1";
        assert!(text.ends_with(next), "{text}");
    }
}
