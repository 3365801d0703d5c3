//! F6 at the ports of MindSpore, whose clients may say nothing for a quarter of an hour.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tripod_load::mindspore::{Dialect, Job, Size, Worker};
use tripod_processes::cluster::Cluster;
use tripod_processes::open_files;
use tripod_wait::{scaled, until};

use crate::connections::{FILES_RESERVED, open_files as files_of, options_with_files, stranger};

/// Connections that say nothing.
const IDLE: usize = 10_000;
/// What a process has everywhere.
const FILES: usize = 1_024;
/// How long a worker waits for an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

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
    let folder = tempfile::tempdir().unwrap();
    // This process has the other ends of all of them, until the last has come.
    open_files::raise_for(IDLE as u64 + 512).unwrap();
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
    assert!(first.beat().await.unwrap() && second.beat().await.unwrap(), "all are there");
    assert_eq!((first.rank().await.unwrap(), second.rank().await.unwrap()), (Some(0), Some(1)));

    drop(idle);
    until("the files of the strangers", || (files_of(pid) < FILES_RESERVED).then_some(())).await;
    assert!(first.beat().await.unwrap() && second.beat().await.unwrap());
    job.delete().await.unwrap();
}
