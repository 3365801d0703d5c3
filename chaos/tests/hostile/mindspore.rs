//! F6 and F11 at the ports of MindSpore, whose clients may say nothing for a quarter of an hour, and then much.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tripod_load::mindspore::{Dialect, Job, Size, Worker};
use tripod_processes::attack::{NODE_ARGS, RESIDENT_BYTES_MAX};
use tripod_processes::cluster::{Cluster, ClusterOptions};
use tripod_processes::open_files;
use tripod_wait::{scaled, until, within};

use crate::connections::{FILES_RESERVED, open_files as files_of, options_with_files, stranger};

/// Connections that say nothing.
const IDLE: usize = 10_000;
/// What a process has everywhere.
const FILES: usize = 1_024;
/// What no frame of either protocol begins with.
const NO_FRAMES: [&[u8]; 5] = [
    b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
    b"RPC1\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x01",
    // A body, and a message, of 4 GiB.
    b"RPC0\0\0\0\x01\0\0\0\x01\0\0\0\x01\xff\xff\xff\xff",
    b"\x01\0\0\0\x04\0\0\0\0\0\0\0\x01\0\0\0",
    // A meta that is longer than its message.
    b"\x01\0\0\0\x05\0\0\0\x04\0\0\0\0\0\0\0",
];
/// A write of an entry of 16 MiB, as long as one may be.
const LONG_FRAME: &[u8] = b"RPC0\0\0\0\x01\0\0\0\x01\0\0\0\x01\x01\0\0\x006@@";
/// Clients that begin such a frame, and how much of it comes: more than a node may take for everything.
const LONG_FRAMES: usize = 300;
const SENT_BYTES: usize = 4 << 20;
const _: () = assert!((LONG_FRAMES * SENT_BYTES) as u64 > RESIDENT_BYTES_MAX);
/// How long a worker waits for an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Between two heartbeats of who waits for the others.
const BEAT_PAUSE: Duration = Duration::from_millis(50);

/// Waits until a worker hears that all are there. Its node may have heard of the last registration from the leader before it
/// has applied it itself, by which it answers heartbeats.
async fn hears_that_all_are_there(worker: &mut Worker) {
    within("the last one to be known", async {
        while !worker.beat().await.unwrap() {
            sleep(BEAT_PAUSE).await;
        }
    })
    .await;
}

/// How many of them the node has not ended.
fn open(streams: &[TcpStream]) -> usize {
    let is_open = |stream: &&TcpStream| {
        let read = stream.try_read(&mut [0]);
        read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    };
    streams.iter().filter(is_open).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f6_ten_thousand_idle_connections_to_a_port_of_mindspore_keep_no_worker_out() {
    // This process has the other ends of all of them, until the last has come.
    if let Err(why) = open_files::raise_for(IDLE as u64 + 512) {
        eprintln!("SKIPPED: this process has the other end of each connection: {why:#}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut cluster =
        Cluster::start(options_with_files(FILES, folder.path()).with_mindspore()).await.unwrap();
    let size = Size { workers: 2, servers: 0 };
    let job = Job::create(cluster.endpoints(), "idle", size).await.unwrap();
    let node = cluster.ids().next().unwrap();
    let pid = cluster.process(node).unwrap().pid();
    // Both know this node and no other.
    let address: Arc<[String]> = Arc::from([job.addresses[0].clone()]);
    let worker = |id: &str| {
        Worker::new(id.to_owned(), Dialect::V2_10, (Arc::clone(&address), 0), scaled(ANSWER_LIMIT))
    };
    let mut first = worker("0");
    first.connect().await.unwrap();
    first.register().await.unwrap();

    let port: SocketAddr = address[0].parse().unwrap();
    let mut idle = Vec::with_capacity(IDLE);
    for _ in 0..IDLE {
        idle.push(stranger(port).await);
    }
    assert!(cluster.take_ended().is_empty(), "no node ends of it");
    until("most of them have given way", || (open(&idle) < FILES).then_some(())).await;
    assert!(open(&idle) > 0, "as long as nobody else needs their places they stay");
    assert!(files_of(pid) < FILES);

    // Who was there before is served on the connection that it has, and who comes finds a place.
    assert!(!first.beat().await.unwrap(), "one is missing");
    let mut second = worker("1");
    second.connect().await.unwrap();
    second.register().await.unwrap();
    hears_that_all_are_there(&mut first).await;
    hears_that_all_are_there(&mut second).await;
    assert_eq!((first.rank().await.unwrap(), second.rank().await.unwrap()), (Some(0), Some(1)));

    drop(idle);
    until("the files of the strangers", || (files_of(pid) < FILES_RESERVED).then_some(())).await;
    assert!(first.beat().await.unwrap() && second.beat().await.unwrap());
    job.delete().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f11_what_is_no_frame_ends_its_connection_and_frames_that_never_end_stay_within_the_budget() {
    let options = ClusterOptions::tripod().unwrap().with_mindspore().with_args(NODE_ARGS);
    let mut cluster = Cluster::start(options).await.unwrap();
    let job = Job::create(cluster.endpoints(), "frames", Size { workers: 1, servers: 0 }).await.unwrap();
    let node = cluster.ids().next().unwrap();
    let address: Arc<[String]> = Arc::from([job.addresses[0].clone()]);
    let port: SocketAddr = address[0].parse().unwrap();
    for bytes in NO_FRAMES {
        let mut line = stranger(port).await;
        line.write_all(bytes).await.unwrap();
        let mut heard = Vec::new();
        // A reset is an end, too.
        let end = within("the end of what is no frame", line.read_to_end(&mut heard)).await;
        drop(end);
        assert_eq!(heard, b"", "{bytes:02x?}");
    }

    cluster.process(node).unwrap().forget_resident_max().unwrap();
    let sent = Bytes::from(vec![b'x'; SENT_BYTES]);
    let mut lines = JoinSet::new();
    for _ in 0..LONG_FRAMES {
        let sent = sent.clone();
        lines.spawn(async move {
            let mut line = stranger(port).await;
            // Whoever has no room for it ends the connection, which takes no more of it.
            let _ = line.write_all(LONG_FRAME).await;
            let _ = line.write_all(&sent).await;
            // The rest never comes.
            line
        });
    }
    let mut worker = Worker::new("0".to_owned(), Dialect::V2_10, (address, 0), scaled(ANSWER_LIMIT));
    worker.connect().await.unwrap();
    worker.register().await.unwrap();
    let lines = within("all that they send", lines.join_all()).await;
    // All of it is more than there is room for: so the node has held as much as it may by then.
    until("some to be given up for want of room", || (open(&lines) < LONG_FRAMES).then_some(())).await;
    assert!(worker.beat().await.unwrap(), "it was served beside them");
    assert!(cluster.take_ended().is_empty(), "no node ends of it");
    let most = cluster.process(node).unwrap().resident_max_bytes().unwrap();
    assert!(most <= RESIDENT_BYTES_MAX, "{} MiB", most >> 20);
    job.delete().await.unwrap();
}
