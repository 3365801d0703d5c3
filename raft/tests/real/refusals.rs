//! Starts that must be refused because of what is in a directory or who has a port, and what the refusal says.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use tripod_raft::{Handle, Options, StartError};
use tripod_state::ids::NodeId;
use tripod_state::level::FIRST;

use crate::common::cluster::options;
use crate::common::{Cluster, Ground, LeaderSigns, hooks};

async fn refusal(options: Options) -> StartError {
    let node = options.node;
    match Handle::start(options, hooks(node, &Arc::<LeaderSigns>::default())).await {
        Ok(_) => panic!("the node started"),
        Err(error) => error,
    }
}

/// The ground of a node that was stopped, and its options.
async fn stopped_node() -> (Ground, Options) {
    let mut cluster = Cluster::prepared(Ground::real(), 1, |_| {});
    // However long it runs, its directory does not come to say that it needs a higher level.
    cluster.start_as(1, FIRST).await.unwrap();
    cluster.leader().await;
    cluster.stop_node(1).await;
    (cluster.ground, cluster.options.remove(0))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_of_another_cluster() {
    let (_ground, mut options) = stopped_node().await;
    options.cluster_id = "another".into();
    let error = refusal(options).await;
    assert!(matches!(error, StartError::Identity(_)));
    let text = error.to_string();
    assert!(text.contains("T4103 identity-cluster"), "{text}");
    assert!(text.contains("test-cluster") && text.contains("another"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_of_another_node() {
    let (_ground, mut options) = stopped_node().await;
    options.node = NodeId(9);
    let text = refusal(options).await.to_string();
    assert!(text.contains("T4104 identity-node"), "{text}");
    assert!(text.contains("node 1") && text.contains("node 9"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_of_another_node_whose_identity_file_was_replaced() {
    let (_ground, mut options) = stopped_node().await;
    let file = options.data.join("identity.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"node\": 1", "\"node\": 9")).unwrap();
    options.node = NodeId(9);
    let text = refusal(options).await.to_string();
    assert!(text.contains("T4104 identity-node") && text.contains("/log"), "{text}");
}

/// One bit turned over makes another node's file of it; what the refusal says brings the node back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flipped_bit_in_the_identity_file_is_refused_with_the_way_back() {
    let (_ground, options) = stopped_node().await;
    let file = options.data.join("identity.json");
    let whole = std::fs::read_to_string(&file).unwrap();
    for (from, to, code) in [
        ("\"node\": 1", "\"node\": 3", "T4104 identity-node"),
        ("test-cluster", "vest-cluster", "T4103 identity-cluster"),
        ("\"format\": 2", "\"format\": 6", "T4102 identity-format"),
    ] {
        let damaged = whole.replace(from, to);
        assert_ne!(damaged, whole);
        std::fs::write(&file, &damaged).unwrap();
        let text = refusal(options.clone()).await.to_string();
        let command = format!("`rm {}`", file.display());
        assert!(text.contains(code) && text.contains(&command), "{text}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), damaged, "a refusal changed the file");
        std::fs::remove_file(&file).unwrap();
        let node = options.node;
        let started =
            Handle::start(options.clone(), hooks(node, &Arc::<LeaderSigns>::default())).await.unwrap();
        started.shutdown().await;
        assert_eq!(std::fs::read_to_string(&file).unwrap(), whole);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_of_a_newer_program() {
    let (_ground, options) = stopped_node().await;
    let file = options.data.join("identity.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"format\": 2", "\"format\": 7")).unwrap();
    let text = refusal(options).await.to_string();
    assert!(text.contains("has format 7") && text.contains("newer program"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_of_an_older_format_are_raised_to_the_present_one() {
    let (_ground, options) = stopped_node().await;
    let file = options.data.join("identity.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"format\": 2", "\"format\": 1")).unwrap();
    let node = Handle::start(options.clone(), hooks(options.node, &Arc::default())).await.unwrap();
    node.shutdown().await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_identity_without_its_log() {
    let (_ground, options) = stopped_node().await;
    std::fs::remove_dir_all(options.data.join("log")).unwrap();
    let text = refusal(options).await.to_string();
    assert!(text.contains("T3103 log-missing") && text.contains("run `mv "), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_identity_with_an_empty_log() {
    let (_ground, options) = stopped_node().await;
    std::fs::remove_dir_all(options.data.join("log")).unwrap();
    std::fs::create_dir(options.data.join("log")).unwrap();
    let text = refusal(options).await.to_string();
    assert!(text.contains("T3103 log-missing"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_on_one_directory() {
    let cluster = Cluster::start_real(1, |_| {}).await;
    let mut options = cluster.options[0].clone();
    options.peer_listen = "127.0.0.1:0".into();
    let text = refusal(options).await.to_string();
    assert!(text.contains("T3104 log-locked"), "{text}");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_port_in_use() {
    let ground = Ground::real();
    let mut options = options(&ground, 1).remove(0);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    options.peer_listen = taken.local_addr().unwrap().to_string();
    let error = refusal(options.clone()).await;
    assert!(matches!(error, StartError::Network(_)));
    assert!(error.to_string().contains("in use"), "{error}");
    assert!(error.to_string().contains(&options.peer_listen), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_directory_whose_parent_is_missing() {
    let ground = Ground::real();
    let mut options = options(&ground, 1).remove(0);
    options.data = options.data.join("no").join("such");
    let text = refusal(options).await.to_string();
    assert!(text.contains("T3109 data-parent"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_directory_that_cannot_be_written() {
    let ground = Ground::real();
    let mut options = options(&ground, 1).remove(0);
    std::fs::create_dir(&options.data).unwrap();
    std::fs::set_permissions(&options.data, std::fs::Permissions::from_mode(0o555)).unwrap();
    if std::fs::write(options.data.join("may-write"), b"").is_ok() {
        // This user may write anywhere (root): the kernel's own files refuse even that.
        options.data = "/proc/self/task".into();
    }
    let text = refusal(options).await.to_string();
    assert!(text.contains("T3108 data-readonly"), "{text}");
}
