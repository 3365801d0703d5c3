//! What a client is told of when it changes.

use crate::support::{CLUSTER, ENDPOINTS, LISTENER, Served, addresses};

#[tokio::test]
async fn a_client_of_a_job_that_does_not_exist_waits_for_its_endpoints() {
    let served = Served::start().await;
    let mut stream = served.stream().await;
    assert_eq!(stream.get(LISTENER, &["later:1"]).await.resources.len(), 1);
    assert_eq!(stream.get(CLUSTER, &["later"]).await.resources.len(), 1);
    let missing = stream.get(ENDPOINTS, &["later"]).await;
    assert!(missing.resources.is_empty());

    served.create("later").await;

    let answer = stream.answer(ENDPOINTS).await;
    assert_eq!(addresses(&answer), ["10.0.0.1:8001", "10.0.0.2:8001"]);
    assert_ne!(answer.version_info, missing.version_info);
    assert_ne!(answer.nonce, missing.nonce);
}

#[tokio::test]
async fn the_endpoints_of_a_job_that_is_deleted_are_left_out() {
    let served = Served::start().await;
    let mut stream = served.stream().await;
    assert_eq!(stream.get(ENDPOINTS, &["default", "train"]).await.resources.len(), 2);

    served.delete("train").await;

    assert_eq!(addresses(&stream.answer(ENDPOINTS).await), ["10.0.0.1:7700", "10.0.0.2:7700"]);
}

#[tokio::test]
async fn a_new_and_a_moved_member_are_told() {
    let served = Served::start().await;
    let mut stream = served.stream().await;
    let two = stream.get(ENDPOINTS, &["train"]).await;

    served.announce(3, "10.0.0.3", 8000).await;
    let three = stream.answer(ENDPOINTS).await;
    assert_eq!(addresses(&three), ["10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000"]);
    assert_ne!(three.version_info, two.version_info);
    stream.accept(&three, &["train"]).await;

    served.announce(1, "10.0.0.4", 9000).await;
    let moved = stream.answer(ENDPOINTS).await;
    assert_eq!(addresses(&moved), ["10.0.0.4:9000", "10.0.0.2:8000", "10.0.0.3:8000"]);
}

#[tokio::test]
async fn a_removed_member_is_told_no_more() {
    let served = Served::start().await;
    let mut stream = served.stream().await;
    let two = stream.get(ENDPOINTS, &["train"]).await;
    assert_eq!(addresses(&two).len(), 2);

    served.remove_the_second();
    let one = stream.answer(ENDPOINTS).await;
    assert_eq!(addresses(&one).len(), 1);
    assert!(addresses(&one)[0].starts_with("10.0.0.1:"), "{one:?}");
}

#[tokio::test]
async fn what_does_not_concern_a_client_is_not_told() {
    let served = Served::start().await;
    let mut stream = served.stream().await;
    stream.get(LISTENER, &["train:1"]).await;
    stream.get(CLUSTER, &["train"]).await;
    stream.get(ENDPOINTS, &["train"]).await;

    served.create("other").await;
    served.announce(3, "10.0.0.3", 8000).await;

    // Only the endpoints have changed. Had the other kinds been told, they would have come before.
    assert_eq!(addresses(&stream.answer(ENDPOINTS).await).len(), 3);
    let other = stream.get(CLUSTER, &["train", "other"]).await;
    assert_eq!(other.resources.len(), 2);
}

#[tokio::test]
async fn a_node_that_may_have_missed_something_tells_no_addresses() {
    let served = Served::start().await;
    served.create("later").await;
    let acknowledged = served.backend.state();
    served.delete("later").await;
    served.backend.depose();
    let mut stream = served.start_another().await.stream().await;
    stream.ask(ENDPOINTS, &["later"]).await;
    // What is the same in every state is told at once. An answer to the earlier question would come first.
    stream.get(LISTENER, &["later:1"]).await;

    served.backend.replace(acknowledged);
    served.backend.elect();

    assert_eq!(addresses(&stream.answer(ENDPOINTS).await), ["10.0.0.1:8001", "10.0.0.2:8001"]);
}
