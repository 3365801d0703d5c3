//! What only those know who can look inside a node.

use crate::test_cluster::{Cluster, PATIENCE, copy_directory, create_job, eventually, write};

/// The leader of now has never heard of what the node acknowledged; the one before it has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_copy_of_a_directory_is_found_by_a_leader_of_earlier() {
    let mut cluster = Cluster::start(3).await;
    let leader = cluster.leader().await;
    let scope = create_job(cluster.node(leader)).await;
    let older = cluster.follower().await;
    let third = (1..=3).find(|node| ![leader, older].contains(node)).unwrap();
    cluster.stop_node(older).await;
    let data = cluster.data(older);
    let kept = data.with_extension("kept");
    copy_directory(&data, &kept);
    cluster.start_node(older).await.unwrap();
    for number in 0..20 {
        write(cluster.node(leader), scope, &format!("key-{number}"), b"x").await;
    }
    let last = cluster.node(leader).applied_index();
    eventually("a leader that remembers what the follower has", || {
        let remembered = cluster.node(leader).node().acknowledged().remembered(older);
        (remembered >= Some(last.0)).then_some(())
    })
    .await;
    cluster.stop_node(older).await;
    let third_id = tripod_state::ids::NodeId(third);
    cluster.node(leader).transfer_leadership(Some(third_id)).await.unwrap();
    assert_eq!(cluster.leader().await, third);
    std::fs::remove_dir_all(&data).unwrap();
    copy_directory(&kept, &data);

    cluster.start_node(older).await.unwrap();
    let told = tokio::time::timeout(PATIENCE, cluster.node(older).failed()).await.unwrap();
    assert!(told.starts_with("T3115 data-older: "), "{told}");
    assert!(told.contains(&format!("to node {leader}")), "{told}");
    cluster.stop_node(older).await;

    // What the text says helps.
    std::fs::remove_dir_all(&data).unwrap();
    cluster.start_node(older).await.unwrap();
    cluster.leader().await;
    cluster.node(older).wait_applied(last).await.unwrap();
    cluster.stop().await;
}
