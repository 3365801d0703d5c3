//! Chunks with two owners.

use tonic::Code;

use crate::mutable::{batch, put, read};
use crate::support::{Scheduler, Served, tensor};

#[tokio::test]
async fn what_is_answered_is_on_both_owners_and_what_is_not_is_not_read() {
    let scheduler = Scheduler::default();
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut first = Served::with_mutable(&scheduler, here.path(), 1 << 20).await;
    let mut second = Served::with_mutable(&scheduler, there.path(), 1 << 20).await;
    let info = tensor("m", &[&first.address, &second.address]);
    scheduler.lock().unwrap().mutables.insert("m".to_owned(), info);
    put(&mut first, vec![batch(1, 5, 0, 1.0), batch(2, 5, 0, 2.0)]).await.expect("written");
    assert_eq!(
        read(&mut second, None, false).await,
        Err(Code::FailedPrecondition.into()),
        "it is read at the first"
    );
    let refused = put(&mut second, vec![batch(3, 5, 0, 3.0)]).await.expect_err("it is written at the first");
    assert_eq!(refused.code(), Code::FailedPrecondition);
    let at = second.stop().await;
    let alone = put(&mut first, vec![batch(3, 5, 0, 3.0)]).await.expect_err("there is no second copy");
    assert_eq!(alone.code(), Code::Unavailable);
    assert!(alone.message().contains("with their numbers"), "{alone}");
    assert_eq!(
        read(&mut first, None, false).await.expect("read")[0],
        2.0,
        "it may be lost, so nobody reads it"
    );
    second = Served::start_at(at, &scheduler, Some(there.path()), 1 << 20).await;
    let again = put(&mut first, vec![batch(3, 5, 0, 3.0)]).await.expect("sent again");
    assert_eq!((again.accepted_batches, again.duplicate_batches), (0, 1), "it counts once");
    assert_eq!(read(&mut first, None, false).await.expect("read")[0], 3.0);
    // The first owner is lost for good: the scheduler names the other one.
    first.stop().await;
    let info = tensor("m", &[&second.address]);
    scheduler.lock().unwrap().mutables.insert("m".to_owned(), info);
    second = {
        let at = second.stop().await;
        Served::start_at(at, &scheduler, Some(there.path()), 1 << 20).await
    };
    assert_eq!(read(&mut second, None, false).await.expect("read")[0], 3.0);
}

#[tokio::test]
async fn a_copy_that_lost_its_disk_is_sent_all_of_it() {
    let scheduler = Scheduler::default();
    let (here, there, anew) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut first = Served::with_mutable(&scheduler, here.path(), 1 << 20).await;
    let second = Served::with_mutable(&scheduler, there.path(), 1 << 20).await;
    let info = tensor("m", &[&first.address, &second.address]);
    scheduler.lock().unwrap().mutables.insert("m".to_owned(), info);
    put(&mut first, vec![batch(1, 5, 0, 1.0)]).await.expect("written");
    let at = second.stop().await;
    let mut second = Served::start_at(at, &scheduler, Some(anew.path()), 1 << 20).await;
    put(&mut first, vec![batch(2, 5, 1, 2.0)]).await.expect("written");
    let info = tensor("m", &[&second.address]);
    scheduler.lock().unwrap().mutables.insert("m".to_owned(), info);
    let at = second.stop().await;
    second = Served::start_at(at, &scheduler, Some(anew.path()), 1 << 20).await;
    assert_eq!(read(&mut second, None, false).await, Ok(vec![1.0, 2.0, 0.5, 0.5, 0.5, 0.5]));
}
