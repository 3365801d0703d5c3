//! Nodes that do not answer, or are gone: they delay nobody.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tripod_lines::Log;
use tripod_state::mindspore::Decision;
use tripod_state::mindspore::cluster::{ClusterState, Request};

use crate::played::{Manner, Played};
use crate::support::{Cluster, heard};

/// What no node of MindSpore answers.
const GARBAGE: [&[u8]; 5] = [
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    // A message of 4 GiB, and the longest that a header can claim.
    b"\x01\0\0\0\x04\0\0\0\0\0\0\0\x01\0\0\0",
    b"\x01\0\0\0\x04\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff",
    // A meta that is longer than all, and one that cannot be read.
    b"\x01\0\0\0\x05\0\0\0\x04\0\0\0\0\0\0\0",
    b"\x01\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\x80",
];

/// What takes no time but that of the network, which is none here.
const AT_ONCE: Duration = Duration::from_millis(200);

#[tokio::test(start_paused = true)]
async fn a_node_that_never_answers_delays_no_other() {
    let mut cluster = Cluster::of(1, 2).await;
    let nodes = cluster.start_all(&["w0", "s0", "s1"]).await;
    nodes[1].behave(Manner::Silent);
    let began = Instant::now();
    for event in 1..=5 {
        cluster.event("w0", event).await;
    }
    let others = || (cluster.untold().len() == 1).then_some(());
    tripod_wait::until("the others are told", others).await;
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    let told = ["event 1", "event 2", "event 3", "event 4", "event 5"].map(str::to_owned).to_vec();
    assert_eq!(heard(&nodes), [told.clone(), vec!["event 1".to_owned()], told]);
    sleep(Duration::from_secs(20)).await;
    assert_eq!(nodes[1].heard_so_far(), 0, "what was sent is not sent again while its answer may come");
    nodes[1].behave(Manner::Answers);
    cluster.settled().await;
    assert_eq!(nodes[1].heard(), ["event 1", "event 2", "event 3", "event 4", "event 5"], "in the end anew");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_answers_with_what_is_no_frame_is_logged_and_delays_nobody_and_is_told_in_the_end() {
    let log = Log::listen();
    let mut cluster = Cluster::of(1, 2).await;
    let nodes = cluster.start_all(&["w0", "s0", "s1"]).await;
    for (event, bytes) in (1..).zip(GARBAGE) {
        nodes[1].behave(Manner::Says(bytes));
        drop(log.lines());
        let began = Instant::now();
        cluster.event("w0", event).await;
        let others = || (cluster.untold().len() == 1).then_some(());
        tripod_wait::until("the others are told", others).await;
        assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
        let lines =
            tripod_wait::until("the log says so", || Some(log.lines()).filter(|lines| !lines.is_empty()));
        let lines = lines.await;
        let words = "T6404 node-untold: node `s0` is not told of an event: ";
        assert!(lines.len() == 1 && lines[0].contains(words), "{bytes:02x?}: {lines:?}");
        nodes[1].behave(Manner::Answers);
        cluster.settled().await;
        let told = vec![format!("event {event}")];
        assert_eq!([nodes[0].heard(), nodes[2].heard()], [told.clone(), told.clone()]);
        let mut again = nodes[1].heard();
        again.dedup();
        assert_eq!(again, told, "until it has answered");
    }
}

#[tokio::test(start_paused = true)]
async fn many_nodes_hear_of_an_event_at_once_whoever_of_them_is_gone() {
    let mut cluster = Cluster::of(0, 300).await;
    let names: Vec<String> = (0..300).map(|number| format!("s{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let nodes = cluster.start_all(&names).await;
    for (place, node) in (1_u32..).zip(&nodes) {
        match place % 10 {
            0 => cluster.lines.close(&format!("10.0.0.1:{place}")),
            1 => node.behave(Manner::Silent),
            _ => {}
        }
    }
    let began = Instant::now();
    cluster.event("s5", 9).await;
    tripod_wait::until("the others are told", || (cluster.untold().len() == 60).then_some(())).await;
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    let told = nodes.iter().filter(|node| node.heard() == ["event 9"]).count();
    assert_eq!(told, 270, "those that are silent have heard it, too");
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_connection_breaks_at_each_step_is_told_all_the_same() {
    let mut cluster = Cluster::of(0, 1).await;
    let nodes = cluster.start_all(&["s0"]).await;
    for event in [1, 2, 3] {
        nodes[0].behave(Manner::HangsUp);
        cluster.event("s0", event).await;
        // It hangs up at once, and twice more after a pause.
        tripod_wait::until("it has heard", || (nodes[0].heard_so_far() >= 3).then_some(())).await;
        nodes[0].behave(Manner::Answers);
        cluster.settled().await;
        let told = nodes[0].heard();
        assert!(told.iter().all(|words| *words == format!("event {event}")), "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_broke_while_nothing_was_said_is_made_anew() {
    let mut cluster = Cluster::of(0, 1).await;
    let nodes = cluster.start_all(&["s0"]).await;
    cluster.lines.close("10.0.0.1:1");
    drop(nodes);
    let again = Played::at("10.0.0.1:1", &cluster.lines);
    let began = Instant::now();
    cluster.event("s0", 4).await;
    cluster.settled().await;
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    assert_eq!(again.heard(), ["event 4"]);
}

#[tokio::test(start_paused = true)]
async fn answers_that_nobody_asked_for_are_nobodys() {
    let mut cluster = Cluster::of(0, 1).await;
    let nodes = cluster.start_all(&["s0"]).await;
    nodes[0].behave(Manner::Babbles);
    for event in 1..=100 {
        cluster.event("s0", event).await;
    }
    cluster.settled().await;
    let told: Vec<String> = (1..=100).map(|event| format!("event {event}")).collect();
    assert_eq!(nodes[0].heard(), told);
}

#[tokio::test(start_paused = true)]
async fn all_who_live_hear_that_all_have_finished_also_with_a_dead_node() {
    let mut cluster = Cluster::of(1, 2).await;
    let nodes = cluster.start_all(&["w0", "s0", "s1"]).await;
    cluster.lines.close("10.0.0.1:3");
    let dead = cluster.node("s1");
    cluster.decide(Decision::ClusterSilent { nodes: vec![(dead.member, dead.incarnation)] }).await;
    for node in ["w0", "s0"] {
        cluster.finish(node).await;
    }
    cluster.settled().await;
    assert_eq!(heard(&nodes), [vec!["finish"], vec!["finish"], vec![]]);
    assert_eq!(cluster.view().state, ClusterState::Exit);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_hangs_while_all_finish_keeps_nobody() {
    let mut cluster = Cluster::of(0, 2).await;
    let nodes = cluster.start_all(&["s0", "s1"]).await;
    nodes[1].behave(Manner::Silent);
    cluster.finish("s1").await;
    cluster.finish("s0").await;
    let one = || (cluster.untold().len() == 1).then_some(());
    tripod_wait::until("the other is told", one).await;
    assert_eq!(heard(&nodes), [["finish"]; 2]);
}

#[tokio::test(start_paused = true)]
async fn what_is_over_is_not_waited_for() {
    let mut cluster = Cluster::of(0, 2).await;
    let nodes = cluster.start_all(&["s0", "s1"]).await;
    nodes[0].behave(Manner::Silent);
    cluster.ask(Request::ScaleOut { workers: 0, servers: 1 }).await;
    tripod_wait::until("it is told", || (nodes[0].heard_so_far() == 1).then_some(())).await;
    // Its answer is lost, and it does what it was told.
    nodes[0].behave(Manner::Answers);
    let began = Instant::now();
    cluster.register("s0", 1).await;
    cluster.register("s1", 2).await;
    let _third = cluster.start("s2").await;
    cluster.settled().await;
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    let told = vec!["scale-out 0+3", "metadata CLUSTER_SCALE_OUT rank=0 0+3: s0 s1 s2"];
    assert_eq!(nodes[0].heard(), told, "on the same connection, and once");
}
