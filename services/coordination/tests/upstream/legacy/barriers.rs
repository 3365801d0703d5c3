//! Barriers.

use std::time::Duration;

use tonic::Code;

use super::{Protocol, Stage, with_both};
use crate::client::Call;

/// A barrier that is to pass.
const LONG: Duration = Duration::from_secs(20);
/// A barrier that is to time out.
const SHORT: Duration = Duration::from_millis(200);

#[tokio::test(start_paused = true)]
async fn wait_at_barrier_succeed() {
    with_both(async |protocol: Protocol| {
        let stage = Stage::start(protocol, 2).await;
        let [first, second] = stage.connected().await;
        for id in ["barrier_1", "barrier_2"] {
            let mut waiting = Call::new(first.wait_at_barrier(id, LONG));
            waiting.waits().await;
            second.wait_at_barrier(id, LONG).await.expect("both are there");
            waiting.end().await.expect("both are there");
        }
        let (left, right) = tokio::join!(first.shut_down(), second.shut_down());
        left.and(right).expect("both leave");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn wait_at_barrier_timeout() {
    with_both(async |protocol: Protocol| {
        let stage = Stage::start(protocol, 2).await;
        let [first, second] = stage.connected().await;
        let early = first.wait_at_barrier("barrier_1", SHORT).await.expect_err("nobody else came");
        assert_eq!(early.code(), Code::DeadlineExceeded, "{protocol:?}");
        let late = second.wait_at_barrier("barrier_1", LONG).await.expect_err("it is over");
        let code = match protocol {
            Protocol::L => Code::FailedPrecondition,
            Protocol::T => Code::DeadlineExceeded,
        };
        assert_eq!(late.code(), code, "{protocol:?}: {late:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn wait_at_barrier_timeout_with_different_barrier_id() {
    with_both(async |protocol: Protocol| {
        let stage = Stage::start(protocol, 2).await;
        let [first, second] = stage.connected().await;
        let (left, right) = tokio::join!(
            first.wait_at_barrier("barrier_0", SHORT),
            second.wait_at_barrier("barrier_1", SHORT)
        );
        for outcome in [left, right] {
            let refused = outcome.expect_err("they wait for each other elsewhere");
            assert_eq!(refused.code(), Code::DeadlineExceeded, "{protocol:?}");
        }
    })
    .await;
}

/// In the other protocol it is the client that uses no id twice.
#[tokio::test(start_paused = true)]
async fn wait_at_barrier_fail_with_same_barrier_id() {
    let stage = Stage::start(Protocol::L, 2).await;
    let [first, second] = stage.connected().await;
    let both = async || {
        tokio::join!(first.wait_at_barrier("barrier_1", LONG), second.wait_at_barrier("barrier_1", LONG))
    };
    let (left, right) = both().await;
    left.and(right).expect("both are there");
    let (left, right) = both().await;
    for outcome in [left, right] {
        let refused = outcome.expect_err("the id is used up");
        assert_eq!(refused.code(), Code::FailedPrecondition);
        assert!(refused.message().contains("Please use unique barrier ids"), "{refused:?}");
    }
}
