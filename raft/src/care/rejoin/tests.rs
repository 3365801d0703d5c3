//! What only those know who can look inside a node.

use tripod_wait::{until, within};

use crate::test_cluster::{Cluster, create_job, each_seed, write_keys};

/// The leader of now has never heard of what the node acknowledged; the one before it has.
#[test]
fn an_older_copy_of_a_directory_is_found_by_a_leader_of_earlier() {
    each_seed(0..5, async || {
        let mut cluster = Cluster::start(3).await;
        let leader = cluster.leader().await;
        let scope = create_job(cluster.node(leader)).await;
        let older = cluster.follower().await;
        let third = (1..=3).find(|node| ![leader, older].contains(node)).unwrap();
        cluster.stop_node(older).await;
        let kept = cluster.disk(older).copy();
        cluster.start_node(older).await.unwrap();
        write_keys(cluster.node(leader), scope, 20).await;
        let last = cluster.node(leader).applied_index();
        until("a leader that remembers what the follower has", || {
            let remembered = cluster.node(leader).node().acknowledged().remembered(older);
            (remembered >= Some(last.0)).then_some(())
        })
        .await;
        cluster.stop_node(older).await;
        let third_id = tripod_state::ids::NodeId(third);
        cluster.node(leader).transfer_leadership(Some(third_id)).await.unwrap();
        assert_eq!(cluster.leader().await, third);
        cluster.disk(older).restore(&kept);

        cluster.start_node(older).await.unwrap();
        let told = within("a failure", cluster.node(older).failed()).await;
        assert!(told.starts_with("T3115 data-older: "), "{told}");
        assert!(told.contains(&format!("to node {leader}")), "{told}");
        cluster.stop_node(older).await;

        // What the text says helps.
        cluster.disk(older).wipe();
        cluster.start_node(older).await.unwrap();
        cluster.leader().await;
        cluster.node(older).wait_applied(last).await.unwrap();
        cluster.stop().await;
    });
}
