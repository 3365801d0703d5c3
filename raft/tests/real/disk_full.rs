//! Disks that are really full: every node on a small file system of its own, filled by somebody else. A node measures its
//! file system, and its threads wait for room: a simulated disk has neither.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tripod_raft::{Handle, Options, ProposeError};
use tripod_state::ids::NodeId;
use tripod_state::member::Change;
use tripod_state::{Answer, Command, Envelope, Scope, kv, session};
use tripod_wait::{until, until_async, within};

use crate::common::members::{announcement, done, done_when_caught_up, prepare, voters};
use crate::common::{Cluster, barrier, create_job, local, propose, put, write};

/// Bytes of a node's file system.
const DISK_BYTES: u64 = 128 << 20;

/// Small file systems in memory, one a node. They are unmounted at the end.
struct Disks {
    places: Vec<PathBuf>,
    _directory: TempDir,
}

impl Disks {
    /// `None`, with the reason on standard error, where this process may not mount.
    fn mount(count: usize) -> Option<Self> {
        let directory = TempDir::new().unwrap();
        let mut disks = Self { places: Vec::new(), _directory: directory };
        for number in 1..=count {
            let place = disks._directory.path().join(format!("disk-{number}"));
            fs::create_dir(&place).unwrap();
            let options = format!("size={DISK_BYTES}");
            let mounted =
                Process::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&place).output();
            match mounted {
                Ok(output) if output.status.success() => disks.places.push(place),
                Ok(output) => {
                    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                    eprintln!("SKIPPED: a full disk needs a small file system, which needs root: {why}");
                    return None;
                }
                Err(error) => {
                    eprintln!(
                        "SKIPPED: a full disk needs a small file system, and mount cannot be run: {error}"
                    );
                    return None;
                }
            }
        }
        Some(disks)
    }

    fn place(&self, node: u64) -> &Path {
        &self.places[usize::try_from(node - 1).unwrap()]
    }

    /// Fills a node's disk to the last byte.
    fn fill(&self, node: u64) {
        self.fill_but(node, 0);
    }

    /// Fills a node's disk, but leaves some bytes.
    fn fill_but(&self, node: u64, left_bytes: usize) {
        let mut ballast = fs::File::create(self.place(node).join("ballast")).unwrap();
        let room = self.place(node).join("room");
        fs::write(&room, vec![7; left_bytes]).unwrap();
        for size in [1 << 20, 4096] {
            let bytes = vec![7; size];
            while ballast.write_all(&bytes).is_ok() {}
        }
        fs::remove_file(room).unwrap();
    }

    /// Takes the ballast away.
    fn free(&self, node: u64) {
        fs::remove_file(self.place(node).join("ballast")).unwrap();
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        for place in &self.places {
            // Lazily: a node that a failed test left may still hold files.
            let unmounted = Process::new("umount").arg("-l").arg(place).status();
            if !unmounted.is_ok_and(|status| status.success()) {
                eprintln!("{} is left mounted", place.display());
            }
        }
    }
}

async fn cluster_on(disks: &Disks) -> Cluster {
    Cluster::start_real(3, |options: &mut Options| {
        options.data = disks.place(options.node.0).join("data");
    })
    .await
}

async fn attempt(node: &Handle, command: Command) -> Result<(), ProposeError> {
    node.propose(Envelope { stamp: None, command }).await.map(|_| ())
}

/// Proposes something that grows until it is refused for full disks; gives the refusal.
async fn refusal(node: &Handle, scope: Scope) -> String {
    let numbers = AtomicU32::new(0);
    until_async("a refusal for full disks", || async {
        let key = format!("grows-{}", numbers.fetch_add(1, Ordering::Relaxed));
        match attempt(node, put(scope, &key, b"x")).await {
            Err(ProposeError::DiskFull(text)) => Some(text),
            Ok(()) | Err(ProposeError::NoLeader(_) | ProposeError::Unknown(_)) => None,
            Err(error) => panic!("{error}"),
        }
    })
    .await
}

/// Proposes something that does not grow.
async fn delete(node: &Handle, scope: Scope, key: &str) {
    let command = Command::Kv(kv::Command::Delete { scope, key: key.into() });
    let applied = propose(node, &command).await;
    assert!(matches!(applied.reply, Ok(Answer::Deleted { .. })), "{:?}", applied.reply);
}

/// Waits until a node that is behind has applied nothing for longer than its disk is tried again.
async fn stands_still(node: &Handle) {
    let mut seen = (node.applied_index(), Instant::now());
    until("a node that stands still", || {
        let applied = node.applied_index();
        if applied != seen.0 {
            seen = (applied, Instant::now());
        }
        (seen.1.elapsed() > Duration::from_secs(4)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disks_refuse_growth_and_nothing_else_and_clear_by_themselves() {
    let Some(disks) = Disks::mount(3) else { return };
    let cluster = cluster_on(&disks).await;
    let leader = cluster.leader().await;
    let follower = cluster.follower().await;
    let scope = create_job(cluster.node(leader)).await;
    for number in 0..50 {
        write(cluster.node(follower), scope, &format!("kept-{number}"), &[b'x'; 10_000]).await;
    }
    (1..=3).for_each(|node| disks.fill(node));
    for node in [leader, follower] {
        // The leader may have heard that the others' disks are full before it looks at its own.
        until_async("a refusal that names the leader's directory", || async {
            let directory = disks.place(cluster.leader().await).join("data").display().to_string();
            let text = refusal(cluster.node(node), scope).await;
            assert!(text.starts_with("T3201 disk-full: node ") && text.contains("delete keys"), "{text}");
            text.contains(&directory).then_some(())
        })
        .await;
    }
    until("followers that know", || {
        let knows = (1..=3).all(|node| cluster.node(node).status().growth_refused.is_some());
        (knows && cluster.node(follower).status().disk.full).then_some(())
    })
    .await;

    // Reads, deletions, sessions, and elections go on, also with nothing left on the disk at all.
    let term = cluster.node(leader).status().term;
    for number in 0..20 {
        delete(cluster.node(follower), scope, &format!("kept-{number}")).await;
    }
    propose(cluster.node(follower), &Command::Session(session::Command::Open)).await;
    barrier(cluster.node(follower)).await;
    assert_eq!(local(cluster.node(follower), scope, "kept-0"), None);
    assert!(local(cluster.node(follower), scope, "kept-49").is_some());
    let new = loop {
        let now = cluster.leader().await;
        // It need not succeed: the heir's disk is full, too, and the machine may be busy.
        let _ = cluster.node(now).transfer_leadership(None).await;
        let new = cluster.leader().await;
        if cluster.node(new).status().term > term {
            break new;
        }
    };
    let text = refusal(cluster.node(new), scope).await;
    assert!(text.starts_with("T3201 disk-full"), "{text}");

    (1..=3).for_each(|node| disks.free(node));
    until("a cluster that takes everything in again", || {
        (1..=3).all(|node| cluster.node(node).status().growth_refused.is_none()).then_some(())
    })
    .await;
    write(cluster.node(follower), scope, "after", b"x").await;
    for number in 20..50 {
        let key = format!("kept-{number}");
        until(&key, || local(cluster.node(follower), scope, &key)).await;
    }
    cluster.stop().await;
}

/// A backup, read to its end, that leaves nothing on the node's disk.
async fn saved_bytes(node: &Handle) -> usize {
    let mut saving = node.save_snapshot().unwrap();
    let mut bytes = 0;
    while let Some(part) = saving.parts.recv().await {
        bytes += part.unwrap().len();
    }
    bytes
}

/// Deletes a run of keys, and waits until every node has made a snapshot that knows of it.
async fn delete_until_snapshots(cluster: &Cluster, scope: Scope, keys: std::ops::Range<u32>) {
    let node = cluster.node(cluster.follower().await);
    for number in keys {
        delete(node, scope, &format!("kept-{number}")).await;
    }
    let after = node.applied_index();
    // Entries bring the next snapshot, and how many come before a busy machine has made it is chance.
    until_async("a snapshot on every node", || async {
        let lacking = cluster.running().into_iter().any(|node| cluster.node(node).status().snapshot < after);
        if lacking {
            delete(node, scope, "never").await;
        }
        (!lacking).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_change_and_snapshots_and_backups_are_made_while_disks_are_full() {
    // Less than the 24 MiB that are kept for this, so the disks count as full, and a snapshot still fits.
    const LEFT_BYTES: usize = 8 << 20;
    let Some(disks) = Disks::mount(4) else { return };
    let mut cluster = Cluster::start_real(3, |options: &mut Options| {
        options.data = disks.place(options.node.0).join("data");
        options.snapshot_every_entries = 30;
        options.keep_entries = 5;
    })
    .await;
    let scope = create_job(cluster.node(cluster.leader().await)).await;
    for number in 0..60 {
        let writer = cluster.follower().await;
        write(cluster.node(writer), scope, &format!("kept-{number}"), &[b'x'; 10_000]).await;
    }
    (1..=3).for_each(|node| disks.fill_but(node, LEFT_BYTES));
    let leader = cluster.leader().await;
    refusal(cluster.node(leader), scope).await;
    delete_until_snapshots(&cluster, scope, 0..20).await;
    for node in 1..=3 {
        assert!(saved_bytes(cluster.node(node)).await > 40 * 10_000, "a backup from node {node}");
    }

    for node in 1..=3 {
        propose(cluster.node(node), &announcement(node)).await;
    }

    // The fourth gets a snapshot, votes, and takes the place of the leader.
    let peer = prepare(&mut cluster);
    cluster.options[3].data = disks.place(4).join("data");
    done(&cluster, Change::Add { peer }).await;
    cluster.start_node(4).await.unwrap();
    done_when_caught_up(&cluster, Change::Promote { node: NodeId(4) }).await;
    assert!(local(cluster.node(4), scope, "kept-59").is_some());
    refusal(cluster.node(cluster.leader().await), scope).await;

    // With nothing left at all, the journal's own room is enough for members that leave.
    for node in 1..=3 {
        disks.free(node);
        disks.fill(node);
    }
    let leader = cluster.leader().await;
    done(&cluster, Change::Remove { node: NodeId(leader) }).await;
    within("word of the removal", cluster.node(leader).removed()).await;
    cluster.stop_node(leader).await;
    let demoted = cluster.running().into_iter().find(|node| *node != 4).unwrap();
    done(&cluster, Change::Demote { node: NodeId(demoted) }).await;
    let left = voters(&cluster).await;
    assert!(left.len() == 2 && left.contains(&4) && !left.contains(&demoted), "{left:?}");

    (1..=3).for_each(|node| disks.free(node));
    until("room again", || cluster.node(4).status().growth_refused.is_none().then_some(())).await;
    write(cluster.node(4), scope, "after", b"x").await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_full_follower_refuses_nothing_does_not_end_and_catches_up() {
    let Some(disks) = Disks::mount(3) else { return };
    let cluster = cluster_on(&disks).await;
    cluster.leader().await;
    let follower = cluster.follower().await;
    let scope = create_job(cluster.node(follower)).await;
    disks.fill(follower);
    until("a full disk", || cluster.node(follower).status().disk.full.then_some(())).await;
    let failed = tokio::spawn({
        let node = cluster.node(follower).clone();
        async move { node.failed().await }
    });
    // More than the journal has room for at its end: the follower must wait for its disk.
    let leader = cluster.leader().await;
    let value = vec![b'x'; 1 << 20];
    for number in 0..24 {
        let key = format!("key-{number}");
        within(
            "a write that a full follower does not stop",
            write(cluster.node(leader), scope, &key, &value),
        )
        .await;
    }
    assert_eq!(cluster.node(leader).status().growth_refused, None);
    stands_still(cluster.node(follower)).await;
    assert!(!failed.is_finished(), "a full disk must not end a node");
    assert!(local(cluster.node(follower), scope, "key-23").is_none(), "it had no room for that");

    disks.free(follower);
    until("the last key on the follower", || local(cluster.node(follower), scope, "key-23")).await;
    assert!(!failed.is_finished());
    failed.abort();
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_finds_its_disk_full_at_the_start_says_so_and_starts_when_there_is_room() {
    let Some(disks) = Disks::mount(3) else { return };
    let mut cluster = cluster_on(&disks).await;
    let follower = cluster.follower().await;
    let scope = create_job(cluster.node(follower)).await;
    write(cluster.node(follower), scope, "before", b"x").await;
    cluster.stop_node(follower).await;
    disks.fill(follower);
    let refused = cluster.start_node(follower).await.expect_err("there is no room").to_string();
    assert!(refused.starts_with("T3107 data-full: ") && refused.contains("free space"), "{refused}");
    assert!(!refused.contains("writable"), "{refused}");
    disks.free(follower);
    cluster.start_node(follower).await.unwrap();
    until("the key", || local(cluster.node(follower), scope, "before")).await;
    cluster.stop().await;
}
