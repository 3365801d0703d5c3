//! The doctor sees what a node would see, says what is wrong, and changes nothing.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tripod_state::ids::LogIndex;
use tripod_wait::until;

use super::*;
use crate::test_cluster::{Cluster, Ground, create_job, propose, put, write};
use crate::test_support::tree;

/// Enough for two snapshots and a purge.
const KEYS: u64 = 250;

/// What a node of a cluster of one leaves behind, with a snapshot and a log behind it.
async fn stopped() -> (Ground, PathBuf) {
    let mut cluster = Cluster::start_real(1, |options| {
        options.snapshot_every_entries = 100;
        options.keep_entries = 10;
    })
    .await;
    cluster.leader().await;
    let scope = create_job(cluster.node(1)).await;
    for number in 0..KEYS {
        write(cluster.node(1), scope, &format!("key-{number}"), b"value").await;
    }
    propose(cluster.node(1), &put(scope, "bytes", &[0xff, 0x01])).await;
    until("a snapshot, and a log without its beginning", || {
        let status = cluster.node(1).status();
        (status.snapshot >= LogIndex(100) && status.purged > LogIndex(0)).then_some(())
    })
    .await;
    cluster.stop_node(1).await;
    let data = cluster.data(1);
    (cluster.ground, data)
}

/// [`examine`], and that it left everything as it was.
fn examined(data: &Path) -> (Report, Vec<EntryRow>) {
    let scratch = TempDir::new().unwrap();
    let before = tree(data);
    let mut lines = Vec::new();
    let report = examine(data, scratch.path(), &mut |line| lines.push(line)).unwrap();
    assert!(tree(data) == before, "something was changed");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "the copy is still there");
    (report, lines)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sound_directory_is_described_and_left_as_it_is() {
    let (_ground, data) = stopped().await;
    let (report, lines) = examined(&data);
    assert_eq!(report.problems, Vec::<String>::new());
    let identity = report.identity.as_ref().unwrap();
    assert_eq!((&identity["cluster_id"], &identity["node"]), (&"test-cluster".into(), &1.into()));
    let of_log = report.log_identity.as_ref().unwrap();
    assert_eq!((&identity["cluster_id"], &identity["node"]), (&of_log["cluster_id"], &of_log["node"]));
    let vote = report.vote.unwrap();
    assert_eq!((vote.node, vote.committed), (1, true));
    let (first, last, purged) =
        (report.log.first.unwrap(), report.log.last.unwrap(), report.log.purged.unwrap());
    assert_eq!(first.index, purged.index + 1);
    assert_eq!(report.log.entries, last.index - purged.index);
    assert_eq!(lines.len() as u64, report.log.entries);
    assert!(lines.windows(2).all(|pair| pair[0].index + 1 == pair[1].index));
    assert!(report.snapshots.iter().all(|snapshot| snapshot.whole) && !report.snapshots.is_empty());
    assert!(report.applied_at_start >= 100, "{}", report.applied_at_start);
    assert!(
        report.journal.iter().any(|segment| segment.frames > 0 && segment.last_index == Some(last.index))
    );
    assert!(report.journal.iter().all(|segment| !segment.damaged), "{:?}", report.journal);

    let line = lines.iter().find(|line| line.content.to_string().contains("key-249")).unwrap();
    let text = serde_json::to_string(line).unwrap();
    assert!(text.contains(r#""value":"value""#) && text.contains(r#""kind":"command""#), "{text}");
    assert!(line.time_ms.is_some());
    assert!(lines.iter().any(|line| line.content.to_string().contains(r#""value":"0xff01""#)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_node_s_directory_and_one_that_is_none_are_refused() {
    let cluster = Cluster::start_real(1, |_| {}).await;
    cluster.leader().await;
    let scratch = TempDir::new().unwrap();
    let refused = examine(&cluster.data(1), scratch.path(), &mut |_| {}).unwrap_err();
    assert!(matches!(refused, Error::Running(_)), "{refused}");
    assert!(refused.to_string().contains("T5301 doctor-running"));
    let refused = examine(scratch.path(), scratch.path(), &mut |_| {}).unwrap_err();
    assert!(matches!(refused, Error::NoData(_)), "{refused}");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    cluster.stop().await;
}

/// Flips a bit of each byte from a place on: more than the padding between two frames.
fn damage(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at..].iter_mut().take(128).for_each(|byte| *byte ^= 0x20);
    fs::write(path, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_journal_is_described_as_the_node_would() {
    let (_ground, data) = stopped().await;
    let (report, whole) = examined(&data);
    let used = report.journal.iter().rfind(|segment| segment.frames > 2).unwrap();
    let path = data.join("journal").join(&used.file);
    damage(&path, usize::try_from(used.frames_end_bytes / 2).unwrap());
    let (report, lines) = examined(&data);
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
    let told = &report.problems[0];
    assert!(told.contains("T3101 log-damaged") && told.contains("is damaged at byte"), "{told}");
    assert!(told.contains(&path.display().to_string()), "the copy is named in {told}");
    assert!(report.journal.iter().any(|segment| segment.damaged && segment.file == used.file));
    assert!(lines.len() < whole.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_snapshot_and_identity_are_described() {
    let (_ground, data) = stopped().await;
    for entry in fs::read_dir(data.join("snapshots")).unwrap() {
        damage(&entry.unwrap().path(), 200);
    }
    fs::write(data.join("identity.json"), b"{").unwrap();
    let (report, lines) = examined(&data);
    let all = report.problems.join("\n");
    for code in ["T5101 backup-damaged", "T3105 snapshot-damaged", "T4101 identity-unreadable"] {
        assert!(all.contains(code), "{code} is not in {all}");
    }
    assert!(report.snapshots.iter().all(|snapshot| !snapshot.whole));
    assert!(!lines.is_empty(), "the log is still read");
}

/// Whatever stands in the files, it is described.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_damage_of_the_log_makes_it_panic() {
    let (_ground, data) = stopped().await;
    let path = data.join("log").join("db");
    let whole = fs::read(&path).unwrap();
    for part in 1..8 {
        damage(&path, whole.len() * part / 8);
        examined(&data);
        fs::write(&path, &whole).unwrap();
    }
    for length in [0, 1, 100, whole.len() / 2] {
        fs::write(&path, &whole[..length]).unwrap();
        examined(&data);
    }
    fs::write(&path, &whole).unwrap();
    fs::remove_dir_all(data.join("journal")).unwrap();
    let (report, _) = examined(&data);
    assert!(!report.problems.is_empty());
}
