//! Starts that cannot succeed: one clear text, exit status 1, nothing damaged; and a disk that fills
//! up under a running node.

// The lint's own exception for tests ends at `#[test]`; all of this file is one.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use tonic::Code;
use tripod_client::{Client, Condition, Consistency, Error, Kv};
use tripod_processes::cluster::{Cluster, ClusterOptions, PortBlock};
use tripod_tests::folders::{self, Mounted};
use tripod_tests::jobs;
use tripod_tests::server::Flags;
use tripod_wait::until_async;

/// Starts the node, writes or checks a key, and kills it: its data are those of a node that was in use.
async fn run_once(flags: &Flags, log: &Path, use_it: impl AsyncFnOnce(Client)) {
    let mut process = flags.start(log).unwrap();
    use_it(jobs::client(&[flags.endpoint()]).unwrap()).await;
    process.kill().unwrap();
}

/// The leader creates job `default` when it begins to lead, which may be a moment after its port answers.
async fn default_job(client: &Client) {
    until_async("job `default`", || async { client.jobs().get("default").await.unwrap() }).await;
}

async fn write_key(client: Client) {
    default_job(&client).await;
    client.kv("").put("kept", "yes".into(), Condition::CreateOnly).await.unwrap();
}

async fn find_key(client: Client) {
    let found = client.kv("").get("kept", Consistency::Linearizable).await.unwrap();
    assert_eq!(found.expect("an acknowledged key").value, "yes");
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let block = PortBlock::reserve().unwrap();
    let ports = block.node(1).unwrap();
    for (name, port) in [("client", ports.client), ("peer", ports.peer), ("http", ports.http)] {
        let _taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let flags = Flags::alone(&folder.path().join(name), ports);
        let said = flags.refused(&folder.path().join("log")).await.unwrap();
        assert!(said.contains(&port.to_string()), "{name}: {said}");
        assert!(said.contains("in use"), "{name}: {said}");
    }
}

#[tokio::test]
async fn the_data_of_another_node_are_refused_and_stay_good() {
    let folder = tempfile::tempdir().unwrap();
    let block = PortBlock::reserve().unwrap();
    let right = Flags::alone(&folder.path().join("data"), block.node(1).unwrap());
    let log = folder.path().join("log");
    run_once(&right, &log, write_key).await;

    let mut wrong = Flags { node: 2, ..right.clone() };
    wrong.initial = vec![(2, right.ports.peer)];
    let said = wrong.refused(&log).await.unwrap();
    assert!(said.contains(right.data.to_str().unwrap()), "{said}");

    run_once(&right, &log, find_key).await;
}

#[tokio::test]
async fn the_data_of_another_cluster_are_refused_and_stay_good() {
    let folder = tempfile::tempdir().unwrap();
    let block = PortBlock::reserve().unwrap();
    let right = Flags::alone(&folder.path().join("data"), block.node(1).unwrap());
    let log = folder.path().join("log");
    run_once(&right, &log, write_key).await;

    // The cluster's name follows from the list of its first members.
    let mut wrong = right.clone();
    wrong.initial.push((2, block.node(2).unwrap().peer));
    let said = wrong.refused(&log).await.unwrap();
    assert!(said.contains(right.data.to_str().unwrap()), "{said}");
    assert!(said.contains("cluster"), "{said}");

    run_once(&right, &log, find_key).await;
}

#[tokio::test]
async fn a_read_only_data_directory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let Some(_guard) = folders::read_only(&data).unwrap() else {
        eprintln!("left out: this user may write everywhere and may not mount");
        return;
    };
    let block = PortBlock::reserve().unwrap();
    let flags = Flags::alone(&data, block.node(1).unwrap());
    let said = flags.refused(&folder.path().join("log")).await.unwrap();
    assert!(said.contains(data.to_str().unwrap()), "{said}");
}

#[tokio::test]
async fn a_data_directory_that_is_a_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::write(&data, "not a directory").unwrap();
    let block = PortBlock::reserve().unwrap();
    let flags = Flags::alone(&data, block.node(1).unwrap());
    let said = flags.refused(&folder.path().join("log")).await.unwrap();
    assert!(said.contains(data.to_str().unwrap()), "{said}");
    assert_eq!(fs::read_to_string(&data).unwrap(), "not a directory");
}

/// Creates a key. Where the node without room has been elected meanwhile, leadership moves first.
async fn put(kv: &Kv, full: &str, key: &str, value: Bytes) {
    until_async(format!("{key} to be written"), || async {
        match kv.put(key, value.clone(), Condition::CreateOnly).await {
            Ok(_) => Some(()),
            Err(Error::Refused { code: Code::ResourceExhausted, .. }) => {
                // It need not succeed at once.
                let _ = Client::transfer_leader(full, None, Duration::from_secs(10)).await;
                None
            }
            Err(error) => panic!("{key}: {error}"),
        }
    })
    .await;
}

#[tokio::test]
async fn a_full_disk_ends_no_node_and_loses_nothing() {
    let mut cluster = Cluster::prepare(ClusterOptions::tripod().unwrap()).unwrap();
    let small = cluster.root().join("node-3");
    fs::create_dir_all(&small).unwrap();
    let Some(_mounted) = Mounted::try_at(&small, "size=24m") else {
        eprintln!("left out: this user may not mount a small file system");
        return;
    };
    // One of the others founds the cluster: while the node without room leads it refuses what would grow.
    for nodes in [1..=2, 3..=3] {
        for node in nodes {
            cluster.restart(node).unwrap();
        }
        cluster.wait_until_ready().await.unwrap();
    }

    let client = jobs::client(&cluster.endpoints()[..2]).unwrap();
    let kv = client.kv("");
    // Twice what the small disk holds.
    let written = 48_u32;
    for number in 0..written {
        let value = vec![u8::try_from(number).unwrap(); 1 << 20];
        put(&kv, &cluster.endpoint(3), &format!("full/{number}"), value.into()).await;
    }
    assert_eq!(cluster.running(), [1, 2, 3], "no node ends for want of space");
    let said = fs::read_to_string(cluster.root().join("node-3.log")).unwrap();
    assert!(!said.contains("panicked"), "{said}");
    assert!(said.contains("disk space"), "{said}");
    for number in 0..written {
        let found = kv.get(&format!("full/{number}"), Consistency::Linearizable).await.unwrap();
        let value = found.expect("an acknowledged key").value;
        assert_eq!((value.len(), u32::from(value[0])), (1 << 20, number));
    }
}
