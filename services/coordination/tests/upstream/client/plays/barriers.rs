//! Barriers.

use std::time::Duration;

use tonic::Code;

use super::life::leave;
use crate::client::Cluster;
use crate::support::payloads::barrier_error;

/// A barrier that is to pass.
pub(crate) const LONG: Duration = Duration::from_secs(20);
/// A barrier that is to time out.
pub(crate) const SHORT: Duration = Duration::from_millis(200);

/// In a job of two.
pub(crate) async fn wait_at_barrier_succeed(cluster: &Cluster) {
    let [first, second] = cluster.connected().await;
    for id in ["barrier_1", "barrier_2"] {
        let mut waiting = cluster.at_barrier(&first, id).await;
        waiting.waits().await;
        second.wait_at_barrier(id, LONG, &[]).await.expect("both are there");
        waiting.end().await.expect("both are there");
    }
}

/// In a job of two, whoever comes too late is told what the first one was told.
pub(crate) async fn wait_at_barrier_timeout(cluster: &Cluster) {
    let [first, second] = cluster.connected().await;
    let early = first.wait_at_barrier("barrier_1", SHORT, &[]).await.expect_err("nobody else came");
    assert_eq!(early.code(), Code::DeadlineExceeded);
    let late = second.wait_at_barrier("barrier_1", LONG, &[]).await.expect_err("it is over");
    assert_eq!((late.code(), late.message()), (early.code(), early.message()));
}

/// In a job of two, ids do not mix.
pub(crate) async fn wait_at_barrier_timeout_with_different_barrier_id(cluster: &Cluster) {
    let [first, second] = cluster.connected().await;
    let (left, right) = tokio::join!(
        first.wait_at_barrier("barrier_0", SHORT, &[]),
        second.wait_at_barrier("barrier_1", SHORT, &[])
    );
    for (outcome, id) in [(left, "barrier_0"), (right, "barrier_1")] {
        let refused = outcome.expect_err("they wait for each other elsewhere");
        assert_eq!(refused.code(), Code::DeadlineExceeded, "{id}");
        assert_eq!(barrier_error(&refused), Some((id.into(), 0)));
    }
}

/// In a job of three, two pass without the third.
pub(crate) async fn wait_at_barrier_subset_succeeds(cluster: &Cluster) {
    let agents = cluster.connected().await;
    let [first, second, _] = &agents;
    let mut waiting = cluster.at_barrier_of(first, "barrier_1", &[0, 1]).await;
    waiting.waits().await;
    second.wait_at_barrier("barrier_1", LONG, &[0, 1]).await.expect("both are there");
    waiting.end().await.expect("both are there");
    leave(&agents).await.expect("all leave");
}

/// In a job of three, a call by the third one fails the barrier of the others.
pub(crate) async fn wait_at_barrier_subset_non_participating_process_attempts_fails(cluster: &Cluster) {
    let [late, member, stranger] = cluster.connected().await;
    let waiting = cluster.at_barrier_of(&member, "barrier_1", &[0, 1]).await;
    let not_invited = stranger.wait_at_barrier("barrier_1", LONG, &[0, 1]).await;
    let outcomes = [not_invited, waiting.end().await, late.wait_at_barrier("barrier_1", LONG, &[0, 1]).await];
    for (who, outcome) in ["stranger", "member", "late member"].into_iter().zip(outcomes) {
        let refused = outcome.expect_err("a stranger fails the barrier for all");
        assert_eq!(refused.code(), Code::InvalidArgument, "{who}: {refused:?}");
        assert_eq!(barrier_error(&refused), Some(("barrier_1".into(), 0)), "{who}");
    }
}
