//! F3 and F4: what no node would send, at the peer port.

use tripod_processes::attack::peers;

use crate::scene::Scene;

/// Two nodes of three ended as soon as they stood for election, and again at each start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f3_a_vote_of_the_last_term_is_refused_and_elections_go_on() {
    let mut scene = Scene::start().await;
    let name = "votes of the last term";
    let tally = scene.attack(name, peers::votes_of_the_last_term).await;
    assert_eq!(tally.of("T3116"), tally.total(), "{tally}");
    // Who votes next computes the term after the one that it holds.
    let leader = scene.cluster.wait_for_leader().await.unwrap();
    scene.cluster.kill(leader).unwrap();
    scene.cluster.wait_for_leader().await.unwrap();
    scene.restart_all(name).await;
    scene.end().await;
}

/// Whoever applied them stopped, and again at each start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f4_a_proposal_that_nobody_can_read_is_not_committed() {
    let mut scene = Scene::start().await;
    let name = "garbage at the peer port";
    let tally = scene.attack(name, peers::garbage).await;
    assert!(tally.total() > 0, "{tally}");
    scene.restart_all(name).await;
    scene.end().await;
}
