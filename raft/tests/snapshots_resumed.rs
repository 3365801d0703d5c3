//! A transfer of a snapshot that breaks goes on where it was.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::{Cluster, assert_same_states, barrier, create_job, eventually, free_port, local, write};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tripod_raft::Options;
use tripod_state::Scope;
use tripod_state::ids::{LogIndex, NodeId};

/// The state is this many keys of a MiB each, and some small ones.
const LARGE_KEYS: u64 = 20;
const MEBIBYTE: u64 = 1 << 20;
/// How much of the file passes before the line is cut.
const CUT_AFTER_BYTES: u64 = 12 * MEBIBYTE;
/// What may be under way and is lost with a line: a window of the connection, a chunk that is not complete,
/// one that is not written, and all that is not snapshot.
const LOST_BYTES_MAX: u64 = 7 * MEBIBYTE;
/// More than snapshots are apart, so that the log behind the newest one begins further on than it began.
const SMALL_KEYS: u64 = 100;

/// Stands in front of one node's peer port, counts what passes to it, and cuts one connection. Its tasks end
/// with the runtime.
#[derive(Default)]
struct Relay {
    /// All connections together.
    passed_bytes: AtomicU64,
    /// The first connection that brings more is cut. 0: none is.
    cut_after_bytes: AtomicU64,
    cuts: AtomicU64,
    /// Whether nobody is let in after a cut.
    closes: AtomicBool,
    closed: AtomicBool,
}

impl Relay {
    async fn start(listen: String, target: String) -> Arc<Self> {
        let relay = Arc::new(Self::default());
        let listener = TcpListener::bind(&listen).await.unwrap();
        let shared = relay.clone();
        tokio::spawn(async move {
            loop {
                let Ok((near, _)) = listener.accept().await else { continue };
                if shared.closed.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(far) = TcpStream::connect(&target).await else { continue };
                let relay = shared.clone();
                tokio::spawn(async move {
                    let (near_read, near_write) = near.into_split();
                    let (far_read, far_write) = far.into_split();
                    // Whichever ends first, both directions end.
                    tokio::select! {
                        () = relay.bring(near_read, far_write) => {}
                        () = copy(far_read, near_write, |_| true) => {}
                    }
                });
            }
        });
        relay
    }

    async fn bring(&self, from: impl AsyncRead + Unpin, to: impl AsyncWrite + Unpin) {
        let mut brought = 0;
        copy(from, to, |bytes| {
            brought += bytes;
            self.passed_bytes.fetch_add(bytes, Ordering::SeqCst);
            let limit = self.cut_after_bytes.load(Ordering::SeqCst);
            let is_cut = limit > 0 && brought > limit;
            if is_cut {
                self.cut_after_bytes.store(0, Ordering::SeqCst);
                self.closed.store(self.closes.load(Ordering::SeqCst), Ordering::SeqCst);
                self.cuts.fetch_add(1, Ordering::SeqCst);
            }
            !is_cut
        })
        .await;
    }

    fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::SeqCst)
    }
}

/// Copies until either end closes, or `goes_on`, which is told how much was copied, says no.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut goes_on: impl FnMut(u64) -> bool,
) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if to.write_all(&bytes[..count]).await.is_err() || !goes_on(count as u64) {
            return;
        }
    }
}

/// Three nodes, one of which is stopped and lacks what the others have purged.
struct Behind {
    cluster: Cluster,
    scope: Scope,
    leader: u64,
    other: u64,
    behind: u64,
    /// In front of the node that is behind.
    relay: Arc<Relay>,
}

impl Behind {
    async fn prepare() -> Self {
        let real: Vec<String> = (0..3).map(|_| format!("127.0.0.1:{}", free_port())).collect();
        let mut cluster = Cluster::start_with(3, |options: &mut Options| {
            options.peer_listen.clone_from(&real[usize::try_from(options.node.0 - 1).unwrap()]);
            options.snapshot_every_entries = 50;
            options.keep_entries = 5;
        })
        .await;
        let mut relays = Vec::new();
        for (member, target) in cluster.options[0].initial.clone().into_iter().zip(real) {
            relays.push(Relay::start(member.peer, target).await);
        }
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        let behind = cluster.follower().await;
        cluster.stop_node(behind).await;
        let leader = cluster.leader().await;
        for number in 0..LARGE_KEYS {
            let value = vec![u8::try_from(number).unwrap(); usize::try_from(MEBIBYTE).unwrap()];
            write(cluster.node(leader), scope, &format!("large-{number}"), &value).await;
        }
        for number in 0..SMALL_KEYS {
            write(cluster.node(leader), scope, &format!("small-{number}"), b"x").await;
        }
        let leader = cluster.leader().await;
        let other = cluster.running().into_iter().find(|node| *node != leader).unwrap();
        for node in [leader, other] {
            eventually("a log that begins behind what the stopped node has", || {
                (cluster.node(node).status().purged > LogIndex(LARGE_KEYS + 30)).then_some(())
            })
            .await;
        }
        let relay = relays.swap_remove(usize::try_from(behind - 1).unwrap());
        relay.cut_after_bytes.store(CUT_AFTER_BYTES, Ordering::SeqCst);
        Self { cluster, scope, leader, other, behind, relay }
    }

    /// Waits until the node that was behind holds what the others hold, and stops all of them.
    async fn converge(self) {
        for node in [self.leader, self.other, self.behind] {
            barrier(self.cluster.node(node)).await;
        }
        let nodes = [self.leader, self.other, self.behind].map(|node| self.cluster.node(node));
        assert_same_states(&nodes).await;
        let value = local(self.cluster.node(self.behind), self.scope, "large-7").unwrap();
        assert_eq!(value.len() as u64, MEBIBYTE);
        let replaced = &self.cluster.heard[usize::try_from(self.behind - 1).unwrap()].replaced;
        assert!(replaced.load(Ordering::Relaxed) > 0, "it caught up, but not by snapshot");
        let snapshots = self.cluster.data(self.behind).join("snapshots");
        eventually("an end of what is unfinished", || (unfinished(&snapshots) == 0).then_some(())).await;
        self.cluster.stop().await;
    }
}

fn unfinished(snapshots: &Path) -> usize {
    let names = std::fs::read_dir(snapshots).unwrap().map(|file| file.unwrap().path());
    names.filter(|path| path.extension().is_some_and(|extension| extension == "part")).count()
}

fn newest_snapshot_bytes(snapshots: &Path) -> u64 {
    let files = std::fs::read_dir(snapshots).unwrap().map(|file| file.unwrap().path());
    let newest = files.filter(|path| path.extension().is_some_and(|extension| extension == "snap")).max();
    newest.unwrap().metadata().unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_arrived_before_a_cut_is_not_sent_again() {
    let mut test = Behind::prepare().await;
    let passed_before = test.relay.passed_bytes.load(Ordering::SeqCst);
    test.cluster.start_node(test.behind).await.unwrap();
    eventually("a cut", || (test.relay.cuts() == 1).then_some(())).await;
    barrier(test.cluster.node(test.behind)).await;

    let passed = test.relay.passed_bytes.load(Ordering::SeqCst) - passed_before;
    let file = newest_snapshot_bytes(&test.cluster.data(test.leader).join("snapshots"));
    assert!(file > LARGE_KEYS * MEBIBYTE, "{file} bytes are no snapshot of the whole state");
    assert!(passed >= file, "{passed} bytes passed for a file of {file}");
    assert!(
        passed <= file + LOST_BYTES_MAX,
        "{passed} bytes passed for a file of {file}, cut after {CUT_AFTER_BYTES}"
    );
    test.converge().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_leaders_in_the_middle_of_a_transfer_converges() {
    let mut test = Behind::prepare().await;
    test.relay.closes.store(true, Ordering::SeqCst);
    test.cluster.start_node(test.behind).await.unwrap();
    eventually("a cut", || (test.relay.cuts() == 1).then_some(())).await;
    let snapshots = test.cluster.data(test.behind).join("snapshots");
    assert_eq!(unfinished(&snapshots), 1, "the transfer is not over");

    test.cluster.node(test.leader).transfer_leadership(Some(NodeId(test.other))).await.unwrap();
    eventually("another leader", || {
        test.cluster.node(test.other).leadership().borrow().ready_here.then_some(())
    })
    .await;
    write(test.cluster.node(test.other), test.scope, "meanwhile", b"x").await;
    assert!(
        test.cluster.heard[usize::try_from(test.behind - 1).unwrap()].replaced.load(Ordering::Relaxed) == 0
    );
    test.relay.closed.store(false, Ordering::SeqCst);
    test.converge().await;
}
