//! Deliveries, gets, aliases.

use tonic::Code;
use tripod_proto::ray as pb;

use crate::support::store::Call;
use crate::support::{Cluster, by_id, reason};

#[tokio::test(start_paused = true)]
async fn a_remote_argument_is_fetched_once_and_held_meanwhile() {
    let cluster = Cluster::start().await;
    let (near, far) = (cluster.store().await, cluster.store().await);
    let driver = cluster.driver(&far).await;
    let worker = cluster.worker(&near, &[("f", 0)]).await;
    let object = cluster.put(driver).await;
    cluster.inc(&[object]).await;
    cluster.ready(object, &far).await;
    assert_eq!(cluster.count(object).await, 1);
    cluster.inc(&[object]).await;
    cluster.submit(driver, "f", vec![by_id(object)]).await;
    assert_eq!(near.calls.next().await, Call::Deliver { from: far.address.clone(), object });
    assert_eq!(worker.executes().await, "f");
    assert_eq!(cluster.count(object).await, 3, "the driver's, the worker's and the delivery's");
    // Another get of it from the same store fetches nothing more.
    cluster.get(worker.id, object).await;
    cluster.settled().await;
    assert_eq!(near.calls.take(), []);
    cluster.ready(object, &near).await;
    assert_eq!(cluster.count(object).await, 2);
}

#[tokio::test(start_paused = true)]
async fn two_gets_of_one_object_are_one_delivery() {
    let cluster = Cluster::start().await;
    let (near, far) = (cluster.store().await, cluster.store().await);
    let (driver, other) = (cluster.driver(&near).await, cluster.driver(&near).await);
    let object = cluster.put(driver).await;
    cluster.inc(&[object]).await;
    cluster.get(driver, object).await;
    cluster.get(other, object).await;
    cluster.ready(object, &far).await;
    assert_eq!(near.fetches().await, object);
    cluster.settled().await;
    assert_eq!(near.calls.take(), []);
    assert_eq!(far.calls.take(), []);
}

#[tokio::test(start_paused = true)]
async fn the_get_of_an_alias_fetches_what_it_means_and_names_it_afterwards() {
    let cluster = Cluster::start().await;
    let (near, far) = (cluster.store().await, cluster.store().await);
    let driver = cluster.driver(&near).await;
    let (object, alias) = (cluster.put(driver).await, cluster.put(driver).await);
    cluster.inc(&[object, alias]).await;
    cluster.alias(alias, object).await.unwrap();
    cluster.ready(object, &far).await;
    cluster.get(driver, alias).await;
    assert_eq!(near.fetches().await, object);
    cluster.settled().await;
    assert_eq!(near.calls.take(), [], "it does not hold the object yet");
    cluster.ready(object, &near).await;
    assert_eq!(near.calls.next().await, Call::Alias { alias, canonical: object });
}

#[tokio::test(start_paused = true)]
async fn aliases_and_values_may_be_told_in_any_order() {
    // A chain: h means g, g means f, and f has a value.
    let orders: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for order in orders {
        let cluster = Cluster::start().await;
        let store = cluster.store().await;
        let driver = cluster.driver(&store).await;
        let [h, g, f] = [cluster.put(driver).await, cluster.put(driver).await, cluster.put(driver).await];
        cluster.inc(&[h, g, f]).await;
        for step in order {
            match step {
                0 => cluster.alias(h, g).await.unwrap(),
                1 => cluster.alias(g, f).await.unwrap(),
                _ => cluster.ready(f, &store).await,
            }
        }
        let info = cluster.info().await;
        assert_eq!(info.target_objectid, [g, f, f], "{order:?}");
        assert_eq!(info.reference_count, [1, 1, 1], "{order:?}");
        cluster.get(driver, h).await;
        assert_eq!(store.calls.next().await, Call::Alias { alias: h, canonical: f }, "{order:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn ready_and_done_may_come_in_any_order() {
    for ready_first in [true, false] {
        let cluster = Cluster::start().await;
        let store = cluster.store().await;
        let worker = cluster.worker(&store, &[("f", 1)]).await;
        let driver = cluster.driver(&store).await;
        let results = cluster.submit(driver, "f", vec![]).await;
        assert_eq!(worker.executes().await, "f");
        if ready_first {
            cluster.ready(results[0], &store).await;
        }
        cluster.done(worker.id).await;
        if !ready_first {
            cluster.ready(results[0], &store).await;
        }
        assert_eq!(cluster.counts().await, [2]);
        let tasks = cluster.task_info().await;
        assert_eq!((tasks.num_succeeded, tasks.running_task.len()), (1, 0));
        assert_eq!(cluster.info().await.avail_worker, [worker.id]);
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_aliases_are_refused_and_nothing_dies() {
    let cluster = Cluster::at_rest().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let [a, b] = [cluster.put(driver).await, cluster.put(driver).await];
    cluster.inc(&[a, b]).await;
    cluster.alias(a, b).await.unwrap();
    let before = cluster.seen();
    let code = |refused: Result<(), tonic::Status>| refused.unwrap_err().code();
    let c = 99;
    assert_eq!(code(cluster.alias(a, a).await), Code::InvalidArgument);
    assert_eq!(code(cluster.alias(b, a).await), Code::InvalidArgument, "a cycle");
    assert_eq!(code(cluster.alias(b, c).await), Code::NotFound);
    assert_eq!(code(cluster.alias(c, b).await), Code::NotFound);
    assert!(cluster.seen() == before);
    let third = cluster.put(driver).await;
    assert_eq!(code(cluster.alias(a, third).await), Code::FailedPrecondition, "aliased already");
}

#[tokio::test(start_paused = true)]
async fn a_node_streams_no_object_that_has_not_failed() {
    let cluster = Cluster::start().await;
    let store = cluster.store().await;
    let driver = cluster.driver(&store).await;
    let object = cluster.put(driver).await;
    let channel = cluster.connect().await;
    let mut node = pb::obj_store_client::ObjStoreClient::new(channel);
    let asked = pb::StreamObjToRequest { objectid: object, ..Default::default() };
    let refused = node.stream_obj_to(asked).await.unwrap_err();
    assert_eq!((refused.code(), reason(&refused)), (Code::FailedPrecondition, "not-failed"));
    let info = node.obj_store_info(pb::ObjStoreInfoRequest::default()).await.unwrap_err();
    assert_eq!(info.code(), Code::Unimplemented);
}
