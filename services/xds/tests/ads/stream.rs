//! The protocol of one stream.

use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use tonic::Code;

use crate::support::{CLUSTER, ENDPOINTS, LISTENER, Served, addresses, unpack};

#[tokio::test]
async fn an_accepted_and_a_refused_answer_are_not_repeated() {
    let served = Served::start().await;
    let mut stream = served.stream().await;
    let accepted = stream.get(LISTENER, &["train:1"]).await;
    stream.accept(&accepted, &["train:1"]).await;
    stream.ask(CLUSTER, &["train"]).await;
    let refused = stream.answer(CLUSTER).await;
    stream.refuse(&refused, &["train"]).await;

    // Answers come in the order of the questions, so this one would come after any repetition.
    stream.get(ENDPOINTS, &["train"]).await;
}

#[tokio::test]
async fn a_client_that_refused_is_told_of_the_next_change() {
    let served = Served::start().await;
    let mut stream = served.stream().await;
    stream.ask(ENDPOINTS, &["train"]).await;
    let refused = stream.answer(ENDPOINTS).await;
    stream.refuse(&refused, &["train"]).await;

    served.announce(3, "10.0.0.3", 8000).await;

    assert_eq!(addresses(&stream.answer(ENDPOINTS).await).len(), 3);
}

#[tokio::test]
async fn a_client_may_ask_for_more_and_for_less() {
    let mut stream = Served::start().await.stream().await;
    assert_eq!(stream.get(ENDPOINTS, &["train"]).await.resources.len(), 1);
    let both = stream.get(ENDPOINTS, &["default", "train"]).await;
    let told = unpack::<ClusterLoadAssignment>(&both).into_iter().map(|endpoints| endpoints.cluster_name);
    assert_eq!(told.collect::<Vec<_>>(), ["default", "train"], "every answer has all that is asked for");
    let more = stream.get(ENDPOINTS, &["default", "nobody", "train"]).await;
    assert_eq!(more.version_info, both.version_info, "told, though there is nothing more to tell");

    // None at all: there is nothing to be told. Asked for again, it is told again.
    stream.ask(ENDPOINTS, &[]).await;
    let again = stream.get(ENDPOINTS, &["default", "train"]).await;
    assert_eq!(again.version_info, both.version_info);
    assert_ne!(again.nonce, both.nonce);
}

#[tokio::test]
async fn every_node_and_every_stream_tell_the_same_under_the_same_versions() {
    let served = Served::start().await;
    let another = served.start_another().await;
    for (type_url, name) in [(LISTENER, "train:1"), (CLUSTER, "train"), (ENDPOINTS, "train")] {
        let first = served.stream().await.get(type_url, &[name]).await;
        for node in [&served, &another] {
            let answer = node.stream().await.get(type_url, &[name]).await;
            assert_eq!(answer.version_info, first.version_info);
            assert_eq!(answer.resources, first.resources);
        }
    }
}

#[tokio::test]
async fn a_slow_client_is_told_the_newest_state_and_not_every_one_between() {
    const CHANGES: u16 = 100;
    let served = Served::start().await;
    // So many that the answers do not fit into what a connection holds.
    for node in 3..250 {
        served.announce(node, "10.0.0.3", 8000).await;
    }
    let (mut slow, mut quick) = (served.stream().await, served.stream().await);
    for stream in [&mut slow, &mut quick] {
        stream.ask(ENDPOINTS, &["train"]).await;
    }
    quick.answer(ENDPOINTS).await;
    for change in 1..=CHANGES {
        served.announce(1, "10.0.0.1", 10_000 + change).await;
        quick.answer(ENDPOINTS).await;
    }
    let newest = format!("10.0.0.1:{}", 10_000 + CHANGES);
    let mut answers = 1;
    while addresses(&slow.answer(ENDPOINTS).await)[0] != newest {
        answers += 1;
    }
    assert!(answers < CHANGES / 2, "{answers} answers to {CHANGES} changes");
}

#[tokio::test]
async fn other_types_are_ignored() {
    let mut stream = Served::start().await.stream().await;
    stream.ask("type.googleapis.com/envoy.config.route.v3.RouteConfiguration", &["train"]).await;
    stream.get(CLUSTER, &["train"]).await;
}

#[tokio::test]
async fn a_client_that_asks_for_too_much_is_refused() {
    let served = Served::start().await;
    let mut stream = served.stream().await;
    let names: Vec<_> = (0..257).map(|number| format!("job-{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    assert!(stream.get(ENDPOINTS, &names[..256]).await.resources.is_empty());
    stream.ask(ENDPOINTS, &names).await;
    let refusal = stream.outcome().await.expect_err("too much");
    assert_eq!(refusal.code(), Code::ResourceExhausted);
    assert!(refusal.message().starts_with("257 resources"), "{}", refusal.message());
    served.stream().await.get(LISTENER, &["train:1"]).await;
}

#[tokio::test]
async fn changes_by_themselves_are_not_served() {
    let mut client = Served::start().await.client().await;
    let refusal = client.delta_aggregated_resources(tokio_stream::empty()).await.expect_err("not served");
    assert_eq!(refusal.code(), Code::Unimplemented);
}
