//! Calls are held, sent again, and take effect once.

use std::time::Duration;

use tokio::time::Instant;
use tonic::codec::CompressionEncoding;
use tonic::{Code, Request};
use tripod_agent::{AgentConfig, Kind, Poll};
use tripod_proto::metadata;
use tripod_proto::xla;
use tripod_proto::xla::coordination as n;
use tripod_proto::xla::distributed_runtime_service_client::DistributedRuntimeServiceClient;

use crate::fake::{Cluster, Node};
use crate::support::{Client, Served, config, soon, until};

async fn increment(client: &mut Client) -> Result<String, tonic::Status> {
    let reply = soon(client.increment_key_value(n::IncrementKeyValueRequest::default())).await?;
    let value = reply.into_inner().kv.expect("an entry").value;
    Ok(String::from_utf8(value.to_vec()).expect("digits"))
}

#[tokio::test(start_paused = true)]
async fn a_held_call_survives_its_node_and_keeps_its_stamp() {
    let cluster = Cluster::new();
    let (mut first, second) = (Node::start(&cluster, 1), Node::start(&cluster, 2));
    let served = Served::of(&[&first, &second]);
    let mut client = served.client().await;
    let barrier = tokio::spawn(async move { client.barrier(n::BarrierRequest::default()).await });
    until("the call is held", || cluster.attempts("Barrier").len() == 1).await;
    assert_eq!(served.status().held.get(&Kind::Barrier), Some(&1));

    first.kill();
    until("it is sent again", || cluster.attempts("Barrier").len() == 2).await;
    cluster.change(|state| state.open = true);
    soon(barrier).await.expect("no panic").expect("it passes");

    let attempts = cluster.attempts("Barrier");
    assert_eq!((attempts[0].node, attempts[1].node), (1, 2));
    assert_eq!(attempts[0].stamp, attempts[1].stamp);
    assert_eq!(attempts[0].stamp.as_deref(), Some("1.1.1"));
    assert_eq!(attempts[0].job, "train");
    assert_eq!(cluster.executions("Barrier"), 1);
    assert_eq!(served.status().held.get(&Kind::Barrier), None);
}

#[tokio::test(start_paused = true)]
async fn calls_that_only_look_are_sent_again_without_a_stamp_and_polls_with_theirs() {
    let cluster = Cluster::new();
    let (mut first, second) = (Node::start(&cluster, 1), Node::start(&cluster, 2));
    let served = Served::of(&[&first, &second]);
    let (mut getter, mut poller) = (served.client().await, served.client().await);
    let get = tokio::spawn(async move { getter.get_key_value(n::GetKeyValueRequest::default()).await });
    let poll = tokio::spawn(async move { poller.poll_for_error(n::PollForErrorRequest::default()).await });
    let sent = |times: usize| {
        move |cluster: &Cluster| {
            cluster.attempts("GetKeyValue").len() == times && cluster.attempts("PollForError").len() == times
        }
    };
    until("both are held", || sent(1)(&cluster)).await;
    first.kill();
    until("both are sent again", || sent(2)(&cluster)).await;
    cluster.change(|state| state.open = true);
    soon(get).await.expect("no panic").expect("the key exists");

    let polls = cluster.attempts("PollForError");
    assert!(polls.iter().all(|poll| poll.stamp.as_deref() == Some("1.1.1") && poll.lasting), "{polls:?}");
    assert!(cluster.attempts("GetKeyValue").iter().all(|get| get.stamp.is_none()));
    assert!(!poll.is_finished());
    poll.abort();
    until("nothing is held", || served.status().held.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_after_execution_is_not_applied_twice() {
    let cluster = Cluster::new();
    let (mut first, second) = (Node::start(&cluster, 1), Node::start(&cluster, 2));
    first.behave(|conduct| conduct.swallow = Some("IncrementKeyValue"));
    let served = Served::of(&[&first, &second]);
    let mut client = served.client().await;
    let call = tokio::spawn(async move { (increment(&mut client).await, client) });
    until("it is executed", || cluster.executions("IncrementKeyValue") == 1).await;

    first.kill();
    let (value, mut client) = soon(call).await.expect("no panic");
    assert_eq!(value.expect("answered"), "1");
    assert_eq!(cluster.executions("IncrementKeyValue"), 1);
    assert_eq!(increment(&mut client).await.expect("answered"), "2");
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_a_node_does_not_know_is_asked_for_again() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    node.behave(|conduct| conduct.outage = Some(metadata::OUTAGE_UNKNOWN));
    let served = Served::of(&[&node]);
    let mut client = served.client().await;
    let call = tokio::spawn(async move { increment(&mut client).await });
    until("it is sent again and again", || cluster.attempts("IncrementKeyValue").len() >= 3).await;
    node.behave(|conduct| conduct.outage = None);
    assert_eq!(soon(call).await.expect("no panic").expect("answered"), "1");
    let stamps: Vec<_> =
        cluster.attempts("IncrementKeyValue").into_iter().map(|attempt| attempt.stamp).collect();
    assert!(stamps.windows(2).all(|pair| pair[0] == pair[1]), "{stamps:?}");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_gone_is_replaced_if_nothing_was_executed() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut client = served.client().await;
    increment(&mut client).await.expect("answered");
    assert_eq!(served.status().sessions, 1);
    cluster.expire_sessions();
    assert_eq!(increment(&mut client).await.expect("answered"), "2");
    assert_eq!(served.status().sessions, 1);
    let stamps: Vec<_> =
        cluster.attempts("IncrementKeyValue").into_iter().filter_map(|attempt| attempt.stamp).collect();
    assert_eq!(stamps, ["1.1.1", "1.2.2", "2.1.1"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_gone_after_a_lost_answer_leaves_the_outcome_unknown() {
    let cluster = Cluster::new();
    let (mut first, second) = (Node::start(&cluster, 1), Node::start(&cluster, 2));
    first.behave(|conduct| conduct.swallow = Some("IncrementKeyValue"));
    let served = Served::of(&[&first, &second]);
    let mut client = served.client().await;
    let call = tokio::spawn(async move { increment(&mut client).await });
    until("it is executed", || cluster.executions("IncrementKeyValue") == 1).await;
    cluster.expire_sessions();
    first.kill();
    let refused = soon(call).await.expect("no panic").expect_err("unknown");
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(refused.message().starts_with("outcome unknown: "), "{}", refused.message());
    assert_eq!(cluster.executions("IncrementKeyValue"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_cluster_recognises_outlives_its_session() {
    let cluster = Cluster::new();
    let (mut first, second) = (Node::start(&cluster, 1), Node::start(&cluster, 2));
    let served = Served::of(&[&first, &second]);
    let mut client = served.client().await;
    let barrier = tokio::spawn(async move { client.barrier(n::BarrierRequest::default()).await });
    until("the call is held", || cluster.attempts("Barrier").len() == 1).await;
    cluster.expire_sessions();
    first.kill();
    until("it is held again", || cluster.executions("Barrier") == 2).await;
    cluster.change(|state| state.open = true);
    soon(barrier).await.expect("no panic").expect("it passes");
    let stamps: Vec<_> =
        cluster.attempts("Barrier").into_iter().filter_map(|attempt| attempt.stamp).collect();
    assert_eq!(stamps, ["1.1.1", "1.1.1", "2.1.1"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_its_client_gave_up_uses_its_number_up() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    node.behave(|conduct| conduct.swallow = Some("IncrementKeyValue"));
    let served = Served::of(&[&node]);
    let mut client = served.client().await;
    let mut given_up = client.clone();
    let call = tokio::spawn(async move { increment(&mut given_up).await });
    until("it is executed", || cluster.executions("IncrementKeyValue") == 1).await;
    call.abort();
    until("nothing is held", || served.status().held.is_empty()).await;

    node.behave(|conduct| conduct.swallow = None);
    assert_eq!(increment(&mut client).await.expect("answered"), "2");
    assert_eq!(served.status().sessions, 1);
    assert_eq!(cluster.attempts("IncrementKeyValue")[1].stamp.as_deref(), Some("1.2.2"));
}

#[tokio::test(start_paused = true)]
async fn calls_share_a_session_and_those_that_are_held_another_one() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut client = served.client().await;
    for _ in 0..20 {
        increment(&mut client).await.expect("answered");
    }
    assert_eq!(served.status().sessions, 1);

    let held: Vec<_> = (0..3)
        .map(|_| {
            let mut client = client.clone();
            tokio::spawn(async move { client.barrier(n::BarrierRequest::default()).await })
        })
        .collect();
    until("three are held", || cluster.attempts("Barrier").len() == 3).await;
    increment(&mut client).await.expect("answered");
    let stamp = |cluster: &Cluster| cluster.attempts("IncrementKeyValue").pop().and_then(|last| last.stamp);
    assert_eq!(stamp(&cluster).as_deref(), Some("1.21.21"), "those that are held are of the other one");
    assert_eq!(served.status().sessions, 2);
    let barriers = cluster.attempts("Barrier").into_iter().filter_map(|attempt| attempt.stamp);
    assert_eq!(barriers.collect::<Vec<_>>(), ["2.1.1", "2.2.1", "2.3.1"]);
    cluster.change(|state| state.open = true);
    for barrier in held {
        soon(barrier).await.expect("no panic").expect("it passes");
    }
    increment(&mut client).await.expect("answered");
    assert_eq!(stamp(&cluster).as_deref(), Some("1.22.22"));
    assert_eq!(served.status().sessions, 2);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_passes_unchanged() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut client = served.client().await;
    let request = n::TryGetKeyValueRequest { key: "ü%2F".into(), ..Default::default() };
    let refused = soon(client.try_get_key_value(request)).await.expect_err("refused");
    assert_eq!((refused.code(), refused.message()), (Code::NotFound, "Config key ü%2F not found."));
    assert_eq!(refused.details(), b"\x0a\xff\0");
    assert_eq!(refused.metadata().get("x-upstream").expect("kept"), "kept");
    for ours in ["x-tripod-note", "grpc-retry-pushback-ms"] {
        assert!(!refused.metadata().contains_key(ours), "{ours}");
    }
    assert_eq!(cluster.attempts("TryGetKeyValue").len(), 1, "a refusal is final");
}

#[tokio::test(start_paused = true)]
async fn compressed_requests_pass_as_they_are() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut client = served.client().await.send_compressed(CompressionEncoding::Gzip);
    let kv = n::KeyValueEntry { key: "k".into(), value: vec![b'v'; 100_000].into() };
    let request = n::InsertKeyValueRequest { kv: Some(kv), ..Default::default() };
    soon(client.insert_key_value(request.clone())).await.expect("taken");
    let attempt = cluster.attempts("InsertKeyValue").remove(0);
    assert_eq!(attempt.encoding.as_deref(), Some("gzip"));
    assert_eq!(prost::Message::decode(attempt.message).ok(), Some(request));
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_when_its_client_s_time_is_over() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut client = served.client().await;
    let mut request = Request::new(n::BarrierRequest::default());
    // Only the header: the client's own clock must not be the one that ends the call.
    request.metadata_mut().insert("grpc-timeout", "200m".parse().expect("text"));
    let begun = Instant::now();
    let refused = soon(client.barrier(request)).await.expect_err("over");
    assert_eq!(begun.elapsed(), Duration::from_millis(198), "just before the client gives it up by itself");
    assert!(matches!(refused.code(), Code::DeadlineExceeded | Code::Cancelled), "{refused:?}");
    until("nothing is held", || served.status().held.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn polls_are_left_to_the_job_when_asked_for() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let served = Served::start(AgentConfig { poll: Poll::Release, ..config(&[&node]) });
    let mut client = served.client().await;
    increment(&mut client).await.expect("answered");
    assert!(!cluster.attempts("IncrementKeyValue")[0].lasting);
}

#[tokio::test(start_paused = true)]
async fn services_that_are_not_of_clients_are_refused() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut sessions = tripod_proto::tripod::v1::sessions_client::SessionsClient::new(served.channel().await);
    let request = tripod_proto::tripod::v1::OpenSessionRequest { wide: true };
    let refused = soon(sessions.open(request)).await.expect_err("refused");
    assert_eq!(refused.code(), Code::Unimplemented);
    assert!(refused.message().contains("/tripod.v1.Sessions/Open"), "{}", refused.message());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_names_no_answers_gives_devices_to_each_client_as_ever() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut client = DistributedRuntimeServiceClient::new(served.channel().await);
    for times in 1..=2 {
        let request = xla::EnumerateDevicesRequest::default();
        soon(client.enumerate_devices(request)).await.expect("answered");
        assert_eq!(cluster.attempts("EnumerateDevices").len(), times);
    }
}
