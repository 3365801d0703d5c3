//! F6 and F15: open files, and connections that never begin or never end.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use bytes::Bytes;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tonic::transport::Channel;
use tripod_client::{Client, Condition, Config, Consistency};
use tripod_load::connect;
use tripod_processes::cluster::{Cluster, ClusterOptions, Kind, find_tripod};
use tripod_proto::tripod::v1::GetRequest;
use tripod_proto::tripod::v1::kv_client::KvClient;
use tripod_wait::{deadline, until, within};

/// Of its open files a node keeps so many from its clients, and an address has three quarters of the others.
pub(crate) const FILES_RESERVED: usize = 256;
/// The preface, settings that set nothing, and a call's headers, of which the rest is to come.
const BEGUN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x01\x01\0\0\0\0\x01\x82";
/// Ten segments of a journal.
const WRITTEN: usize = 40;
const VALUE_BYTES: usize = 1 << 20;

/// Three nodes that may have so many open files, and no more by any means.
async fn cluster_with_files(files: usize, folder: &Path) -> Cluster {
    Cluster::start(options_with_files(files, folder)).await.unwrap()
}

/// How they are started.
pub(crate) fn options_with_files(files: usize, folder: &Path) -> ClusterOptions {
    // This process has the other ends of all those connections.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
    let (script, binary) = (folder.join("tripod"), find_tripod().unwrap());
    let text = format!("#!/bin/sh\nulimit -n {files}\nexec '{}' \"$@\"\n", binary.display());
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    ClusterOptions { kind: Kind::Tripod { binary: script }, ..ClusterOptions::tripod().unwrap() }
}

/// A connection from an address of this machine that no test uses else.
pub(crate) async fn stranger(node: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.9:0".parse().unwrap()).unwrap();
    within("a connection", socket.connect(node)).await.unwrap()
}

pub(crate) fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// What the audit did: 600 idle connections to a node with 512 files. It ended with the next segment of its journal.
#[tokio::test]
async fn f6_idle_connections_leave_a_node_the_files_that_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let files = 512;
    let mut cluster = cluster_with_files(files, folder.path()).await;
    let of_one_address = (files - FILES_RESERVED) * 3 / 4;
    let mut strangers = Vec::new();
    for endpoint in cluster.endpoints() {
        let node: SocketAddr = endpoint.parse().unwrap();
        for _ in 0..600 {
            strangers.push(stranger(node).await);
        }
    }
    let ended = strangers.iter_mut().map(async |line| {
        let mut heard = Vec::new();
        // A reset is an end, too.
        let end = within("the end of an idle connection", line.read_to_end(&mut heard)).await;
        drop(end);
        String::from_utf8_lossy(&heard).contains("T2206 connections-full")
    });
    let refused = futures::future::join_all(ended).await.into_iter().filter(|told| *told).count();
    assert!(refused >= 3 * (600 - of_one_address) / 2, "{refused} were told why");

    // Once more, and these begin to speak and stay for as long as they may.
    drop(strangers);
    let mut strangers = Vec::new();
    for endpoint in cluster.endpoints() {
        let node: SocketAddr = endpoint.parse().unwrap();
        for _ in 0..2 * of_one_address {
            let mut line = stranger(node).await;
            // It may be closed already.
            let _ = line.write_all(BEGUN).await;
            strangers.push(line);
        }
    }
    // Others write meanwhile, through each node, until journals have turned over.
    for (number, endpoint) in cluster.endpoints().into_iter().cycle().take(WRITTEN).enumerate() {
        let client = Client::new(&Config { endpoints: vec![endpoint], timeout: deadline() }).unwrap();
        let (key, value) = (format!("k{}", number % 3), Bytes::from(vec![b'x'; VALUE_BYTES]));
        client.kv("").put(&key, value, Condition::Always).await.unwrap();
    }
    for node in cluster.ids() {
        assert!(cluster.running().contains(&node), "node {node} has ended");
        let pid = cluster.process(node).unwrap().pid();
        assert!(open_files(pid) < files, "node {node}");
    }
    // Who does not make the call that it began is told to go.
    let ends = strangers.iter_mut().map(async |line| {
        let end = within("the end", line.read_to_end(&mut Vec::new())).await;
        drop(end);
    });
    futures::future::join_all(ends).await;
    let leader = cluster.process(1).unwrap().pid();
    until("the files of the strangers", || (open_files(leader) < FILES_RESERVED).then_some(())).await;
}

/// A job of a thousand tasks without agents, on a cluster whose nodes have what a process has everywhere.
#[tokio::test]
async fn f6_a_thousand_clients_are_served_by_nodes_with_1024_files() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = cluster_with_files(1_024, folder.path()).await;
    let endpoints = cluster.endpoints();
    let client = Client::new(&Config { endpoints: endpoints.clone(), timeout: deadline() }).unwrap();
    client.kv("").put("k", Bytes::from_static(b"v"), Condition::Always).await.unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..1_000 {
        let endpoints = endpoints.clone();
        // All know the nodes in the same order, as they do in a job.
        tasks.spawn(async move { within("an answer", first_answer(&endpoints)).await });
    }
    let mut by_node = vec![0_usize; endpoints.len()];
    // Kept, so that all are there at once.
    let mut channels = Vec::new();
    while let Some(answered) = tasks.join_next().await {
        let (node, channel) = answered.unwrap();
        by_node[node] += 1;
        channels.push(channel);
    }
    // Which node that is depends on the machine: one that loses contact for a moment sends its clients on.
    let most = by_node.iter().max().is_some_and(|most| *most > 400);
    assert!(most && by_node.iter().sum::<usize>() == 1_000, "one node serves hundreds: {by_node:?}");
    for channel in channels {
        get(channel).await.expect("all are served once more");
    }
    let read = client.kv("").get("k", Consistency::Linearizable).await.unwrap();
    assert_eq!(read.unwrap().value, "v");
}

/// Asks one node after the other, as gRPC does with a list of addresses, until one takes the connection.
async fn first_answer(endpoints: &[String]) -> (usize, Channel) {
    for (node, endpoint) in endpoints.iter().enumerate().cycle() {
        let channel = connect::lazy(endpoint).unwrap();
        if get(channel.clone()).await.is_ok() {
            return (node, channel);
        }
    }
    unreachable!("a cycle has no end")
}

async fn get(channel: Channel) -> Result<(), tonic::Status> {
    let request = GetRequest { key: "k".to_owned(), ..GetRequest::default() };
    KvClient::new(channel).get(request).await.map(|_| ())
}
