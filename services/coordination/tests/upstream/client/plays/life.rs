//! Connecting, leaving, and being missed.

use std::time::Duration;

use tonic::{Code, Status};
use tripod_state::task::Phase;

use crate::client::{Agent, Call, Cluster, Config};
use crate::support::payloads::service_error;

/// All leave, at the same time.
pub(crate) async fn leave(agents: &[Agent; 3]) -> Result<(), Status> {
    let [first, second, third] = agents;
    let (left, middle, right) = tokio::join!(first.shut_down(), second.shut_down(), third.shut_down());
    left.and(middle).and(right)
}

/// In a job of three, nobody gets through before all have come.
pub(crate) async fn connect_and_shutdown_are_barriers(cluster: &Cluster) {
    let agents: [_; 3] = cluster.agents().await;
    let mut connecting = Vec::new();
    for agent in &agents {
        for earlier in &mut connecting {
            Call::waits(earlier).await;
        }
        connecting.push(cluster.connecting(agent).await);
    }
    for call in connecting {
        call.end().await.expect("all have entered");
    }

    let mut leaving = Vec::new();
    for agent in &agents {
        for earlier in &mut leaving {
            Call::waits(earlier).await;
        }
        leaving.push(cluster.shutting_down(agent).await);
    }
    for call in leaving {
        call.end().await.expect("all have entered");
    }
}

/// In a job of three, all leave together, and nothing is wrong.
pub(crate) async fn clients_shutdown_successfully(cluster: &Cluster) {
    let agents = cluster.connected().await;
    let poll = cluster.polling(&agents[0]).await;
    leave(&agents).await.expect("all leave");
    let ended = poll.end().await.expect_err("upstream's agent would end its process");
    assert_eq!(ended.code(), Code::Cancelled, "every other code says that something is wrong: {ended:?}");
    for agent in agents {
        assert!(agent.error().is_none(), "its poll has only ended: {:?}", agent.error());
        assert_eq!(cluster.phase(agent.task()), Phase::Disconnected);
    }
}

/// In a job of three, the two that are left when one falls silent are told, and why.
pub(crate) async fn missed_heartbeat_callback_is_executed_if_any_client_goes_away(cluster: &Cluster) {
    let [dying, second, third] = cluster.connected().await;
    drop(dying);
    for survivor in [second, third] {
        let told = survivor.failed().await;
        assert_eq!(told.code(), Code::Unavailable);
        assert!(service_error(&told).is_some(), "the service's word, not a lost connection: {told:?}");
        assert!(told.message().contains("(stopped sending heartbeats):\n0\n"), "{told:?}");
    }
}

/// In a job of three, the last one is waited for.
pub(crate) async fn late_clients_are_ok(cluster: &Cluster) {
    let agents = cluster.agents().await;
    let [first, second, late] = &agents;
    let mut early = [cluster.connecting(first).await, cluster.connecting(second).await];
    for call in &mut early {
        call.waits().await;
    }
    late.connect().await.expect("the last one is waited for");
    for call in early {
        call.end().await.expect("all have come");
    }
    leave(&agents).await.expect("all leave");
}

/// In a job of three that does not wait long for its tasks to register, one does not come.
pub(crate) async fn connect_eventually_times_out_if_a_client_does_not_show_up(cluster: &Cluster) {
    let [first, second, _absent] = cluster.agents().await;
    let (first, second) = tokio::join!(first.connect(), second.connect());
    for outcome in [first, second] {
        let refused = outcome.expect_err("one is missing");
        assert_eq!(refused.code(), Code::DeadlineExceeded);
        assert!(service_error(&refused).is_some(), "the service's own word: {refused:?}");
    }
}

/// In a job of three, one restarts after the begin.
pub(crate) async fn client_restart_after_connect_fails(cluster: &Cluster) {
    let [first, second, third] = cluster.connected().await;
    drop(third);
    let short = Duration::from_secs(1);
    let config = Config { init_timeout: short, spare: short, ..cluster.config };
    let restarted = cluster.agent_with(2, config).await;
    let refused = restarted.connect().await.expect_err("the job has begun without it");
    assert_eq!(refused.code(), Code::Aborted);
    assert!(service_error(&refused).is_some(), "the service's own word: {refused:?}");
    for other in [first, second] {
        let told = other.failed().await;
        assert_eq!(told.code(), Code::Aborted);
        assert!(told.message().contains("2 unexpectedly tried to connect"), "{told:?}");
        let late = other.shut_down().await.expect_err("the agent is in error");
        assert_eq!(late.code(), Code::FailedPrecondition);
    }
}

/// In a job of three, one restarts before all have come.
pub(crate) async fn client_restart_during_connect_succeeds(cluster: &Cluster) {
    let [first, second, third] = cluster.agents().await;
    let early = cluster.connecting(&first).await;
    let stale = cluster.connecting(&third).await;
    let restarted = cluster.agent(2).await;
    let newer = cluster.connecting(&restarted).await;
    let refused = stale.end().await.expect_err("a newer life of the task is there");
    assert_eq!(refused.code(), Code::AlreadyExists);
    assert!(service_error(&refused).is_some(), "or the client would try again: {refused:?}");

    second.connect().await.expect("now all are there");
    early.end().await.expect("all have come");
    newer.end().await.expect("it took the place of the earlier one");
    leave(&[first, second, restarted]).await.expect("all leave");
}
