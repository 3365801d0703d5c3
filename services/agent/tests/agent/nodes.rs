//! Nodes that do not serve any more are left, and come back.

use std::time::Duration;

use tokio::time::Instant;
use tonic::Code;
use tripod_agent::{AgentConfig, Timing};
use tripod_proto::metadata;
use tripod_proto::xla::coordination as n;

use crate::fake::{BeatConduct, Cluster, Node};
use crate::support::{LONG, Served, config, soon, until};

#[tokio::test(start_paused = true)]
async fn a_node_that_accepts_and_does_nothing_is_left_within_seconds() {
    let cluster = Cluster::new();
    let (first, second) = (Node::start(&cluster, 1), Node::start(&cluster, 2));
    let timing = Timing { answer_limit: Duration::from_secs(1), ..config(&[]).timing };
    let served = Served::start(AgentConfig { timing, ..config(&[&first, &second]) });
    let mut client = served.client().await;
    let barrier = tokio::spawn(async move { client.barrier(n::BarrierRequest::default()).await });
    until("the call is held", || cluster.attempts("Barrier").len() == 1).await;
    assert_eq!(served.upstream(), Some(first.address.clone()));

    let frozen = Instant::now();
    let thaw = first.freeze();
    until("it is sent to the other node", || cluster.attempts("Barrier").len() == 2).await;
    assert!(frozen.elapsed() < Duration::from_secs(5), "{:?}", frozen.elapsed());
    cluster.change(|state| state.open = true);
    soon(barrier).await.expect("no panic").expect("it passes");
    assert_eq!(served.upstream(), Some(second.address.clone()));
    assert_eq!(cluster.executions("Barrier"), 1);
    drop(thaw);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_announces_its_stop_is_left_before_it_goes() {
    let cluster = Cluster::new();
    let (first, second) = (Node::start(&cluster, 1), Node::start(&cluster, 2));
    let served = Served::of(&[&first, &second]);
    let mut client = served.client().await;
    let get = tokio::spawn(async move { client.get_key_value(n::GetKeyValueRequest::default()).await });
    until("the call is held", || cluster.attempts("GetKeyValue").len() == 1).await;
    first.announce_stop();
    until("it is sent to the other node", || cluster.attempts("GetKeyValue").len() == 2).await;
    cluster.change(|state| state.open = true);
    soon(get).await.expect("no panic").expect("the key exists");
    assert_eq!(served.upstream(), Some(second.address.clone()));
    assert_eq!(served.status().outages, 0, "there was a link all the time");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_has_no_leader_is_left_for_one_that_has() {
    let cluster = Cluster::new();
    let (first, second) = (Node::start(&cluster, 1), Node::start(&cluster, 2));
    let served = Served::of(&[&first, &second]);
    let mut client = served.client().await;
    until("there is a link", || served.upstream().is_some()).await;
    first.behave(|conduct| conduct.outage = Some(metadata::OUTAGE_NO_LEADER));
    let request = n::InsertKeyValueRequest::default();
    soon(client.insert_key_value(request)).await.expect("taken by the other node");
    assert_eq!(served.upstream(), Some(second.address.clone()));
}

#[tokio::test(start_paused = true)]
async fn members_that_were_told_are_used_when_the_configured_ones_are_gone() {
    let cluster = Cluster::new();
    let (mut first, second) = (Node::start(&cluster, 1), Node::start(&cluster, 2));
    cluster.change(|state| state.members = vec![second.address.clone()]);
    let served = Served::of(&[&first]);
    let mut client = served.client().await;
    soon(client.insert_key_value(n::InsertKeyValueRequest::default())).await.expect("taken");
    first.kill();
    soon(client.insert_key_value(n::InsertKeyValueRequest::default())).await.expect("taken");
    assert_eq!(served.upstream(), Some(second.address.clone()));
}

#[tokio::test(start_paused = true)]
async fn a_list_of_removed_members_leads_to_the_present_ones_as_long_as_one_of_it_answers() {
    let cluster = Cluster::new();
    let (mut gone, mut removed) = (Node::start(&cluster, 1), Node::start(&cluster, 2));
    let (first, second) = (Node::start(&cluster, 3), Node::start(&cluster, 4));
    gone.kill();
    cluster.change(|state| state.members = vec![first.address.clone(), second.address.clone()]);
    let served = Served::of(&[&gone, &removed]);
    let mut client = served.client().await;
    let mut holder = client.clone();
    soon(client.insert_key_value(n::InsertKeyValueRequest::default())).await.expect("taken");
    assert_eq!(served.upstream(), Some(removed.address.clone()));
    let barrier = tokio::spawn(async move { holder.barrier(n::BarrierRequest::default()).await });
    until("the call is held", || cluster.attempts("Barrier").len() == 1).await;
    // A node that has been removed finds no leader, and is switched off in the end.
    removed.behave(|conduct| conduct.beats = BeatConduct::Silence);
    until("a member is used", || served.upstream() == Some(first.address.clone())).await;
    removed.kill();
    cluster.change(|state| state.open = true);
    soon(barrier).await.expect("no panic").expect("it passes");
}

#[tokio::test(start_paused = true)]
async fn a_list_of_which_no_node_is_left_is_named_node_by_node() {
    let cluster = Cluster::new();
    let (mut first, mut second) = (Node::start(&cluster, 1), Node::start(&cluster, 2));
    first.kill();
    second.kill();
    let timing = Timing { max_outage: Duration::from_millis(500), ..config(&[]).timing };
    let served = Served::start(AgentConfig { timing, ..config(&[&first, &second]) });
    let mut client = served.client().await;
    let refused =
        soon(client.insert_key_value(n::InsertKeyValueRequest::default())).await.expect_err("given up");
    assert_eq!(refused.code(), Code::Unavailable);
    let text = refused.message();
    for node in [&first, &second] {
        assert!(text.contains(&format!("{}: ", node.address)) && text.contains("refused"), "{text}");
    }
    let next = format!("; next: `tripod status --endpoints {},{}`", first.address, second.address);
    assert!(text.ends_with(&next), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_frozen_node_is_left_before_it_counts_as_one_that_cannot_serve() {
    let cluster = Cluster::new();
    let (first, second) = (Node::start(&cluster, 1), Node::start(&cluster, 2));
    let timing = Timing { answer_limit: Duration::from_secs(600), ..config(&[]).timing };
    let served = Served::start(AgentConfig { timing, ..config(&[&first, &second]) });
    until("there is a link", || served.upstream() == Some(first.address.clone())).await;
    // It answers pings, so that only the probe can tell.
    first.behave(|conduct| conduct.beats = BeatConduct::Silence);
    until("the other one is used", || served.upstream() == Some(second.address.clone())).await;
    assert_eq!(served.status().outages, 0, "somebody could serve all the time");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_slow_as_all_are_is_kept() {
    let cluster = Cluster::new();
    let (first, second) = (Node::start(&cluster, 1), Node::start(&cluster, 2));
    let timing = Timing {
        doubt_after: Duration::from_millis(50),
        preference: LONG,
        answer_limit: LONG,
        ..config(&[]).timing
    };
    let served = Served::start(AgentConfig { timing, ..config(&[&first, &second]) });
    until("there is a link", || served.upstream() == Some(first.address.clone())).await;
    first.behave(|conduct| conduct.beats = BeatConduct::Late(Duration::from_millis(300)));
    let asked =
        |node: usize| cluster.look(|state| state.probes.iter().filter(|asked| **asked == node).count());
    until("both were asked several times", || asked(1) >= 4 && asked(2) >= 2).await;
    assert_eq!(served.upstream(), Some(first.address.clone()));
    assert_eq!(served.status().outages, 0);
}

#[tokio::test(start_paused = true)]
async fn calls_go_on_after_the_whole_cluster_was_away() {
    let cluster = Cluster::new();
    let (mut first, mut second) = (Node::start(&cluster, 1), Node::start(&cluster, 2));
    let served = Served::of(&[&first, &second]);
    let mut client = served.client().await;
    let mut barrier_client = client.clone();
    let barrier = tokio::spawn(async move { barrier_client.barrier(n::BarrierRequest::default()).await });
    until("the call is held", || cluster.attempts("Barrier").len() == 1).await;
    first.kill();
    second.kill();
    until("there is an outage", || served.status().outage.is_some()).await;
    let insert =
        tokio::spawn(async move { client.insert_key_value(n::InsertKeyValueRequest::default()).await });

    second.revive();
    soon(insert).await.expect("no panic").expect("taken");
    cluster.change(|state| state.open = true);
    soon(barrier).await.expect("no panic").expect("it passes");
    assert_eq!(cluster.executions("Barrier"), 1);
    let status = served.status();
    assert_eq!((status.outage, status.outages), (None, 1));
}

#[tokio::test(start_paused = true)]
async fn after_the_longest_outage_calls_are_told_plainly() {
    let cluster = Cluster::new();
    let mut node = Node::start(&cluster, 1);
    let timing = Timing { max_outage: Duration::from_secs(3), ..config(&[]).timing };
    let served = Served::start(AgentConfig { timing, ..config(&[&node]) });
    let mut client = served.client().await;
    let mut poller = client.clone();
    let poll = tokio::spawn(async move { poller.poll_for_error(n::PollForErrorRequest::default()).await });
    until("the call is held", || cluster.attempts("PollForError").len() == 1).await;
    node.kill();
    let refused = soon(poll).await.expect("no panic").expect_err("given up");
    assert_eq!(refused.code(), Code::Unavailable);
    let text = refused.message();
    let (before, after) = text.split_once(" s: ").expect("how long");
    let seconds = before.strip_prefix("no node of the cluster could serve for ").expect("what");
    assert!(seconds.parse::<u64>().is_ok_and(|seconds| seconds >= 3), "{text}");
    assert!(after.starts_with(&format!("{}: ", node.address)), "{text}");
    assert!(text.ends_with(&format!("; next: `tripod status --endpoints {}`", node.address)), "{text}");
    let at_once = soon(client.barrier(n::BarrierRequest::default())).await.expect_err("given up");
    assert_eq!(at_once.code(), Code::Unavailable);

    node.revive();
    until("the outage is over", || served.status().outage.is_none()).await;
    soon(client.insert_key_value(n::InsertKeyValueRequest::default())).await.expect("taken again");
}

#[tokio::test(start_paused = true)]
async fn where_nobody_has_a_leader_the_agent_stays_and_waits() {
    let cluster = Cluster::new();
    let (first, second) = (Node::start(&cluster, 1), Node::start(&cluster, 2));
    let timing = Timing { answer_limit: Duration::from_secs(1), ..config(&[]).timing };
    let served = Served::start(AgentConfig { timing, ..config(&[&first, &second]) });
    until("there is a link", || served.upstream() == Some(first.address.clone())).await;
    for node in [&first, &second] {
        node.behave(|conduct| conduct.beats = BeatConduct::Silence);
    }
    until("there is an outage", || served.status().outage.is_some()).await;
    assert_eq!(served.upstream(), Some(first.address.clone()), "no other node is better");
    second.behave(|conduct| conduct.beats = BeatConduct::Answer);
    until("the one with a leader is found", || served.upstream() == Some(second.address.clone())).await;
    assert_eq!(served.status().outage, None);
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_cluster_never_was_there_says_so() {
    let cluster = Cluster::new();
    let mut node = Node::start(&cluster, 1);
    node.kill();
    let timing = Timing { max_outage: Duration::from_millis(300), ..config(&[]).timing };
    let served = Served::start(AgentConfig { timing, ..config(&[&node]) });
    let mut client = served.client().await;
    let refused = soon(client.barrier(n::BarrierRequest::default())).await.expect_err("given up");
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(refused.message().contains(&node.address), "{}", refused.message());
}
