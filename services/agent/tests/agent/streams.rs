//! Calls of clients by one stream to a node that has streams.

use std::time::Duration;

use tonic::{Code, Request};
use tripod_proto::metadata;
use tripod_proto::xla::coordination as n;

use crate::fake::{Cluster, Node};
use crate::support::{Client, Served, soon, until};

async fn increment(client: &mut Client) -> Result<String, tonic::Status> {
    let reply = soon(client.increment_key_value(n::IncrementKeyValueRequest::default())).await?;
    let value = reply.into_inner().kv.expect("an entry").value;
    Ok(String::from_utf8(value.to_vec()).expect("digits"))
}

/// Makes calls until one goes by a stream, as the first ones go before there is any; gives how many there were.
async fn until_streamed(cluster: &Cluster, client: &mut Client) -> usize {
    loop {
        increment(client).await.expect("answered");
        let attempts = cluster.attempts("IncrementKeyValue");
        if attempts.last().is_some_and(|attempt| attempt.by_stream) {
            return attempts.len();
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn calls_go_by_the_stream_once_the_node_has_granted_some() {
    let cluster = Cluster::new();
    let node = Node::with_streams(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut client = served.client().await;
    let calls = soon(until_streamed(&cluster, &mut client)).await;
    for _ in 0..10 {
        increment(&mut client).await.expect("answered");
    }
    let attempts = cluster.attempts("IncrementKeyValue");
    assert!(!attempts[0].by_stream, "the first waits for no stream");
    assert!(attempts[calls..].iter().all(|attempt| attempt.by_stream), "{attempts:?}");
    assert!(attempts.iter().all(|attempt| attempt.job == "train" && attempt.lasting));
    for (number, attempt) in (1..).zip(&attempts) {
        assert_eq!(attempt.stamp, Some(format!("1.{number}.{number}")));
    }
    assert_eq!(served.status().sessions, 1);
}

#[tokio::test(start_paused = true)]
async fn an_older_node_is_sent_calls_by_themselves() {
    let cluster = Cluster::new();
    let node = Node::start(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut client = served.client().await;
    for expected in 1..=20 {
        assert_eq!(increment(&mut client).await.expect("answered"), expected.to_string());
    }
    assert!(cluster.attempts("IncrementKeyValue").iter().all(|attempt| !attempt.by_stream));
    assert_eq!(cluster.attempts("IncrementKeyValue").len(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_by_a_stream_passes_unchanged() {
    let cluster = Cluster::new();
    let node = Node::with_streams(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut client = served.client().await;
    soon(until_streamed(&cluster, &mut client)).await;
    let request = n::TryGetKeyValueRequest { key: "ü%2F".into(), ..Default::default() };
    let refused = soon(client.try_get_key_value(request)).await.expect_err("refused");
    assert!(cluster.attempts("TryGetKeyValue")[0].by_stream);
    assert_eq!((refused.code(), refused.message()), (Code::NotFound, "Config key ü%2F not found."));
    assert_eq!(refused.details(), b"\x0a\xff\0");
    assert_eq!(refused.metadata().get("x-upstream").expect("kept"), "kept");
    for ours in ["x-tripod-note", "grpc-retry-pushback-ms"] {
        assert!(!refused.metadata().contains_key(ours), "{ours}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_too_long_for_an_op_goes_by_itself() {
    let cluster = Cluster::new();
    let node = Node::with_streams(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut client = served.client().await;
    soon(until_streamed(&cluster, &mut client)).await;
    for (length, by_stream) in [(60_000, true), (70_000, false)] {
        let kv = n::KeyValueEntry { key: "k".into(), value: vec![b'v'; length].into() };
        let request = n::InsertKeyValueRequest { kv: Some(kv), ..Default::default() };
        soon(client.insert_key_value(request)).await.expect("taken");
        let attempts = cluster.attempts("InsertKeyValue");
        assert_eq!(attempts.last().expect("one").by_stream, by_stream, "{length}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_held_call_of_a_stream_survives_its_node_and_keeps_its_stamp() {
    let cluster = Cluster::new();
    let (mut first, second) = (Node::with_streams(&cluster, 1), Node::with_streams(&cluster, 2));
    let served = Served::of(&[&first, &second]);
    let mut client = served.client().await;
    soon(until_streamed(&cluster, &mut client)).await;
    let mut holder = client.clone();
    let barrier = tokio::spawn(async move { holder.barrier(n::BarrierRequest::default()).await });
    until("the call is held", || cluster.attempts("Barrier").len() == 1).await;
    first.kill();
    until("it is sent again", || cluster.attempts("Barrier").len() == 2).await;
    cluster.change(|state| state.open = true);
    soon(barrier).await.expect("no panic").expect("it passes");
    let attempts = cluster.attempts("Barrier");
    assert_eq!((attempts[0].node, attempts[0].by_stream, attempts[1].node), (1, true, 2));
    assert_eq!(attempts[0].stamp, attempts[1].stamp);
    assert_eq!(cluster.executions("Barrier"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_with_its_stream_is_not_applied_twice() {
    let cluster = Cluster::new();
    let node = Node::with_streams(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut client = served.client().await;
    let calls = soon(until_streamed(&cluster, &mut client)).await;
    node.behave(|conduct| conduct.swallow = Some("IncrementKeyValue"));
    let mut caller = client.clone();
    let call = tokio::spawn(async move { increment(&mut caller).await });
    until("it is executed", || cluster.executions("IncrementKeyValue") == calls + 1).await;
    node.behave(|conduct| conduct.swallow = None);
    node.break_streams();
    let value = soon(call).await.expect("no panic").expect("answered");
    assert_eq!(value, (calls + 1).to_string());
    assert_eq!(cluster.executions("IncrementKeyValue"), calls + 1);
    let attempts = cluster.attempts("IncrementKeyValue");
    assert_eq!(attempts[calls].stamp, attempts[calls + 1].stamp);
    assert!(attempts[calls].by_stream && !attempts[calls + 1].by_stream, "the connection is there");
    assert_eq!(served.status().outages, 0);
    // After a while there is another stream.
    tokio::time::sleep(Duration::from_secs(20)).await;
    soon(until_streamed(&cluster, &mut client)).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_says_goodbye_by_the_stream_is_left_for_another_one() {
    let cluster = Cluster::new();
    let (first, second) = (Node::with_streams(&cluster, 1), Node::with_streams(&cluster, 2));
    let served = Served::of(&[&first, &second]);
    let mut client = served.client().await;
    soon(until_streamed(&cluster, &mut client)).await;
    assert_eq!(served.upstream(), Some(first.address.clone()));
    first.say_goodbye();
    soon(async {
        while served.upstream() != Some(second.address.clone()) {
            increment(&mut client).await.expect("answered");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    assert_eq!(served.status().outages, 0, "there was a link all the time");
    let value = increment(&mut client).await.expect("answered");
    assert_eq!(value, cluster.executions("IncrementKeyValue").to_string());
}

#[tokio::test(start_paused = true)]
async fn an_ops_trouble_of_the_node_is_not_told_to_the_client() {
    let cluster = Cluster::new();
    let (first, second) = (Node::with_streams(&cluster, 1), Node::with_streams(&cluster, 2));
    let served = Served::of(&[&first, &second]);
    let mut client = served.client().await;
    soon(until_streamed(&cluster, &mut client)).await;
    first.behave(|conduct| conduct.outage = Some(metadata::OUTAGE_STOPPING));
    increment(&mut client).await.expect("taken by the other node");
    assert_eq!(served.upstream(), Some(second.address.clone()));
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_stream_ends_when_its_clients_time_is_over() {
    let cluster = Cluster::new();
    let node = Node::with_streams(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut client = served.client().await;
    let calls = soon(until_streamed(&cluster, &mut client)).await;
    let mut request = Request::new(n::BarrierRequest::default());
    request.metadata_mut().insert("grpc-timeout", "200m".parse().expect("text"));
    let refused = soon(client.barrier(request)).await.expect_err("over");
    assert!(matches!(refused.code(), Code::DeadlineExceeded | Code::Cancelled), "{refused:?}");
    assert!(cluster.attempts("Barrier")[0].by_stream);
    until("nothing is held", || served.status().held.is_empty()).await;
    assert_eq!(increment(&mut client).await.expect("answered"), (calls + 1).to_string());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_gone_is_replaced_and_the_stream_goes_on() {
    let cluster = Cluster::new();
    let node = Node::with_streams(&cluster, 1);
    let served = Served::of(&[&node]);
    let mut client = served.client().await;
    let calls = soon(until_streamed(&cluster, &mut client)).await;
    cluster.expire_sessions();
    assert_eq!(increment(&mut client).await.expect("answered"), (calls + 1).to_string());
    let last = cluster.attempts("IncrementKeyValue").pop().expect("one");
    assert_eq!((last.stamp.as_deref(), last.by_stream), (Some("2.1.1"), true));
    assert_eq!(served.status().sessions, 1);
}

/// As while nodes are upgraded, and when they go back to the build of before.
#[tokio::test(start_paused = true)]
async fn a_held_call_passes_between_nodes_with_and_without_streams_and_keeps_its_stamp() {
    for has_streams in [[false, true], [true, false]] {
        let cluster = Cluster::new();
        let start = |number: usize| match has_streams[number - 1] {
            true => Node::with_streams(&cluster, number),
            false => Node::start(&cluster, number),
        };
        let (mut first, mut second) = (start(1), start(2));
        let served = Served::of(&[&first, &second]);
        let mut client = served.client().await;
        for _ in 0..20 {
            soon(increment(&mut client)).await.expect("answered");
        }
        if has_streams[0] {
            soon(until_streamed(&cluster, &mut client)).await;
        }
        let mut holder = client.clone();
        let barrier = tokio::spawn(async move { holder.barrier(n::BarrierRequest::default()).await });
        until("the call is held", || cluster.attempts("Barrier").len() == 1).await;
        first.kill();
        until("it is sent again", || cluster.attempts("Barrier").len() == 2).await;
        cluster.change(|state| state.open = true);
        soon(barrier).await.expect("no panic").expect("it passes");
        let attempts = cluster.attempts("Barrier");
        assert_eq!((attempts[0].node, attempts[1].node), (1, 2));
        assert_eq!(attempts[0].by_stream, has_streams[0]);
        assert_eq!(attempts[0].stamp, attempts[1].stamp);
        assert_eq!(cluster.executions("Barrier"), 1);
        if has_streams[1] {
            soon(until_streamed(&cluster, &mut client)).await;
        }
        let before = cluster.attempts("IncrementKeyValue").len();
        for _ in 0..10 {
            soon(increment(&mut client)).await.expect("answered");
        }
        let after = cluster.attempts("IncrementKeyValue").split_off(before);
        assert!(after.iter().all(|attempt| attempt.node == 2 && attempt.by_stream == has_streams[1]));
        let executions = cluster.executions("IncrementKeyValue");
        assert_eq!(executions, before + 10, "each once");
        second.kill();
    }
}
