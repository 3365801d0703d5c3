//! F8 to F12 and F26: stores.

use tripod_proto::metadata;
use tripod_proto::ray as pb;
use tripod_state::ray::view::Availability;

use super::attentive;
use super::play::everywhere;
use crate::support::{Kind, by_id};

#[tokio::test(start_paused = true)]
async fn f8_what_was_on_its_way_from_a_store_that_died_comes_from_another_one() {
    everywhere(Kind::default, |play| {
        Box::pin(async move {
            let (near, mut one, two) =
                (play.cluster.store().await, play.cluster.store().await, play.cluster.store().await);
            let maker = play.cluster.worker(&one, &[("f", 1)]).await;
            let (driver, other) = (play.cluster.driver(&near).await, play.cluster.driver(&two).await);
            let result = play.submit(driver, "f", vec![]).await[0];
            play.runs(&maker, &one).await;
            play.get(other, result).await;
            play.fetches(&two, result, &one.address).await;
            play.get(driver, result).await;
            let mut maker = maker;
            play.store_dies(&mut one, &mut [&mut maker]).await;
            play.fetches(&near, result, &two.address).await;
            assert_eq!(play.cluster.totals().succeeded, 1);
            assert_eq!(play.cluster.totals().queued, 0, "nothing runs again");
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn f9_a_chain_whose_only_copies_are_lost_is_made_again_each_task_once() {
    everywhere(Kind::default, |play| {
        Box::pin(async move {
            let (near, mut far) = (play.cluster.store().await, play.cluster.store().await);
            let mut first = play.cluster.worker(&far, &[("f", 1)]).await;
            let driver = play.cluster.driver(&near).await;
            let mut last = play.submit(driver, "f", vec![]).await[0];
            play.runs(&first, &far).await;
            for _ in 0..2 {
                play.cluster.inc(&[last]).await;
                last = play.submit(driver, "f", vec![by_id(last)]).await[0];
                play.runs(&first, &far).await;
            }
            let second = play.cluster.worker(&near, &[("f", 1)]).await;
            play.get(driver, last).await;
            play.store_dies(&mut far, &mut [&mut first]).await;
            for operation in 0..3 {
                let told = play.runs(&second, &near).await;
                assert_eq!((told.operationid, told.attempt), (Some(operation), 2));
            }
            assert_eq!(play.cluster.availability(last), Some(Availability::Ready));
            play.cluster.settled().await;
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn f10_who_waits_for_what_a_driver_put_at_a_store_that_died_is_told_put_object() {
    everywhere(Kind::default, |play| {
        Box::pin(async move {
            let (near, mut far) = (play.cluster.store().await, play.cluster.store().await);
            let (driver, putter) = (play.cluster.driver(&near).await, play.cluster.driver(&far).await);
            let object = play.put(putter, &far).await;
            play.get(driver, object).await;
            play.store_dies(&mut far, &mut []).await;
            let node = play.cluster.address.clone();
            play.fetches_failed(&near, object, &node).await;
            let request = pb::RequestObjRequest { workerid: driver, objectid: object };
            let told = play.cluster.scheduler().request_obj(request).await.expect("OK all the same");
            assert_eq!(told.metadata().get(metadata::RAY_REASON).expect("a reason"), "PUT_OBJECT");
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn f11_a_task_whose_store_dies_between_its_report_and_its_result_is_run_again() {
    everywhere(Kind::default, |play| {
        Box::pin(async move {
            let (near, mut far) = (play.cluster.store().await, play.cluster.store().await);
            let mut first = play.cluster.worker(&far, &[("f", 1)]).await;
            let driver = play.cluster.driver(&near).await;
            let result = play.submit(driver, "f", vec![]).await[0];
            play.task(&first).await;
            play.done(&first).await;
            let second = play.cluster.worker(&near, &[("f", 1)]).await;
            play.store_dies(&mut far, &mut [&mut first]).await;
            assert_eq!(play.runs(&second, &near).await.attempt, 2);
            assert_eq!(play.cluster.availability(result), Some(Availability::Ready));
            play.cluster.settled().await;
        })
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn f12_of_a_result_that_means_another_the_task_that_makes_that_one_is_run_again() {
    everywhere(Kind::default, |play| {
        Box::pin(async move {
            let (near, mut far) = (play.cluster.store().await, play.cluster.store().await);
            let parents = play.cluster.worker(&near, &[("parent", 1)]).await;
            let mut children = play.cluster.worker(&far, &[("child", 1)]).await;
            let driver = play.cluster.driver(&near).await;
            let outer = play.submit(driver, "parent", vec![]).await[0];
            play.task(&parents).await;
            let inner = play.submit(parents.id, "child", vec![]).await[0];
            play.alias(outer, inner).await;
            play.done(&parents).await;
            play.runs(&children, &far).await;
            let other = play.cluster.worker(&near, &[("child", 1)]).await;
            play.store_dies(&mut far, &mut [&mut children]).await;
            let told = play.runs(&other, &near).await;
            assert_eq!((told.operationid, told.attempt), (Some(1), 2), "and not the parent");
            assert_eq!(play.cluster.availability(outer), Some(Availability::Ready));
            play.cluster.settled().await;
        })
    })
    .await;
}

/// A worker and a store of 2016 say a thing once. What they said to a node that died with it is noticed.
#[tokio::test(start_paused = true)]
async fn f26_reports_of_2016_that_were_lost_are_noticed_and_nobody_waits_for_ever() {
    everywhere(attentive, |play| {
        Box::pin(async move {
            let store = play.cluster.store().await;
            let worker = play.cluster.worker(&store, &[("f", 1)]).await;
            let driver = play.cluster.driver(&store).await;
            let result = play.submit(driver, "f", vec![]).await[0];
            play.task(&worker).await;
            // Both reports are lost: neither comes to the scheduler.
            store.hold(result);
            play.step().await;
            let next = play.submit(driver, "f", vec![by_id(result)]).await[0];
            let told = play.runs(&worker, &store).await;
            assert_eq!((told.operationid, told.attempt), (Some(1), 1), "it is idle again");
            assert_eq!(play.cluster.availability(next), Some(Availability::Ready));
            play.cluster.settled().await;
            assert_eq!(play.cluster.task_info().await.num_succeeded, 2);
        })
    })
    .await;
}

/// A store that gives up what it is to fetch is told again, of another place; what no place has is made again.
#[tokio::test(start_paused = true)]
async fn what_a_store_could_not_fetch_is_fetched_elsewhere_or_made_again() {
    everywhere(Kind::default, |play| {
        Box::pin(async move {
            let (near, far, third) =
                (play.cluster.store().await, play.cluster.store().await, play.cluster.store().await);
            let maker = play.cluster.worker(&far, &[("f", 1)]).await;
            let (driver, other) = (play.cluster.driver(&near).await, play.cluster.driver(&third).await);
            let result = play.submit(driver, "f", vec![]).await[0];
            play.runs(&maker, &far).await;
            far.hold(result);
            play.get(driver, result).await;
            play.is_to_fetch(&near, result, &far.address).await;
            play.get(other, result).await;
            play.fetches(&third, result, &far.address).await;
            third.hold(result);
            play.cannot_fetch(&near, result, "").await;
            play.is_to_fetch(&near, result, &third.address).await;
            third.lose(result);
            play.cannot_fetch(&near, result, &third.address).await;
            play.is_to_fetch(&near, result, &far.address).await;
            far.lose(result);
            play.cannot_fetch(&near, result, &far.address).await;
            assert_eq!(play.runs(&maker, &far).await.attempt, 2);
            far.hold(result);
            play.fetches(&near, result, &far.address).await;
            assert_eq!(play.cluster.availability(result), Some(Availability::Ready));
        })
    })
    .await;
}

/// Nobody tells that it was forgotten: that comes to light when the store is asked what it holds.
#[tokio::test(start_paused = true)]
async fn an_order_to_fetch_that_a_store_forgot_is_given_again() {
    everywhere(attentive, |play| {
        Box::pin(async move {
            let (near, far) = (play.cluster.store().await, play.cluster.store().await);
            let (driver, putter) = (play.cluster.driver(&near).await, play.cluster.driver(&far).await);
            let object = play.put(putter, &far).await;
            far.hold(object);
            play.get(driver, object).await;
            // Whoever leads gives it once more after it was noted as given; another one, sooner perhaps.
            play.is_to_fetch(&near, object, &far.address).await;
            play.fetches(&near, object, &far.address).await;
            near.hold(object);
            play.cluster.settled().await;
            assert_eq!(play.cluster.count(object).await, 1);
        })
    })
    .await;
}
