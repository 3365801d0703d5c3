//! A data directory that was copied in part: the node starts with everything that it had, or it does not start and
//! says why. Never with less. The files are those of sled and the file system, of which a simulation says nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tripod_proto::code::Code;
use tripod_raft::{Handle, Options};
use tripod_state::State;
use tripod_state::ids::{LogIndex, NodeId};
use tripod_wait::{scaled, until};

use crate::common::{Cluster, barrier, create_job, hooks, level_raised, write_keys};

/// A node that leads and has applied its log does so within this on a machine of usual speed. One that does not serves
/// nobody.
const SERVES_WITHIN: Duration = Duration::from_secs(30);

/// A stopped node with snapshots and a log behind them, and the digest of its state.
async fn stopped() -> (Cluster, u64) {
    let mut cluster = Cluster::start_real(1, |options| {
        options.snapshot_every_entries = 50;
        options.keep_entries = 0;
    })
    .await;
    cluster.leader().await;
    let scope = create_job(cluster.node(1)).await;
    write_keys(cluster.node(1), scope, 130).await;
    let purged = || (cluster.node(1).status().purged > LogIndex(60)).then_some(());
    until("a purge behind the older snapshot", purged).await;
    level_raised(&cluster).await;
    let digest = cluster.node(1).read(State::digest);
    cluster.stop_node(1).await;
    (cluster, digest)
}

/// All files below a directory, by their names from there.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![PathBuf::new()];
    while let Some(below) = left.pop() {
        for entry in fs::read_dir(directory.join(&below)).unwrap() {
            let entry = entry.unwrap();
            let name = below.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() { left.push(name) } else { found.push(name) }
        }
    }
    found.sort();
    found
}

/// What is missing of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// The file.
    All,
    /// Its second half.
    Half,
    /// The file, its directory, and whatever else is in that.
    Directory,
}

/// Copies a data directory but for what is missing of one file.
fn copy(from: &Path, to: &Path, without: &Path, missing: Missing) {
    for name in files(from) {
        let (source, target) = (from.join(&name), to.join(&name));
        if missing == Missing::Directory && name.parent() == without.parent() {
            continue;
        }
        if missing == Missing::All && name == without {
            continue;
        }
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(source, &target).unwrap();
        if missing == Missing::Half && name == without {
            let file = fs::File::options().write(true).open(&target).unwrap();
            file.set_len(file.metadata().unwrap().len() / 2).unwrap();
        }
    }
}

/// What a node makes of a directory.
#[derive(Debug, PartialEq, Eq)]
enum Made {
    Refused(Code),
    /// It serves the state of this digest.
    Serves(u64),
    /// It answers nobody.
    Waits,
}

async fn start(options: &Options) -> Made {
    let node = match Handle::start(options.clone(), hooks(NodeId(1), &Arc::default())).await {
        Ok(node) => node,
        Err(error) => {
            let text = error.to_string();
            return Made::Refused(Code::find(&text).unwrap_or_else(|| panic!("no code: {text}")));
        }
    };
    let served = tokio::time::timeout(scaled(SERVES_WITHIN), barrier(&node)).await;
    let made = served.map_or(Made::Waits, |_| Made::Serves(node.read(State::digest)));
    node.shutdown().await;
    made
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_was_copied_in_part_serves_all_or_nothing() {
    let (cluster, digest) = stopped().await;
    let data = cluster.data(1);
    let (mut less, mut refused) = (Vec::new(), 0);
    for name in files(&data) {
        for missing in [Missing::All, Missing::Half, Missing::Directory] {
            let place = TempDir::new().unwrap();
            let copied = place.path().join("node-1");
            copy(&data, &copied, &name, missing);
            let options = Options { data: copied, ..cluster.options[0].clone() };
            let made = start(&options).await;
            match made {
                Made::Refused(_) => refused += 1,
                Made::Serves(served) if served == digest => {}
                Made::Serves(_) | Made::Waits => {
                    less.push(format!("{missing:?} of {} missing: {made:?}", name.display()));
                }
            }
        }
    }
    assert!(less.is_empty(), "{less:#?}");
    assert!(refused > 10, "{refused}");
}
