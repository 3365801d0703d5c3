//! The suite of the preemption sync manager.
//!
//! A task that will be preempted tells all; each stores how far it is, meets the others at a barrier, and they
//! agree to stop together one step after the furthest.
//!
//! Source: openxla/xla `xla/pjrt/distributed/preemption/preemption_sync_manager.cc`.

mod manager;

use std::time::Duration;

use tonic::{Code, Status};
use tripod_state::job;
use tripod_state::task::Phase;

use crate::client::{Agent, Cluster, Config, spec};
use crate::support::until;
use manager::{DIRECTORY, Manager, Outcome};

/// A notice that takes effect at once.
const NOW: Duration = Duration::ZERO;

/// Two tasks whose managers listen for notices.
struct Pair {
    cluster: Cluster,
    first: Manager,
    second: Manager,
}

impl Pair {
    /// As upstream's suite has it: nobody polls for errors.
    async fn start() -> Self {
        let mut cluster = Cluster::start(job::Spec { poll: job::Poll::Release, ..spec(2) }).await;
        cluster.config = Config { polls: false, ..cluster.config };
        let [first, second] = cluster.connected().await.map(Manager::start);
        until("both listen", || cluster.served.gateway.waiting_calls() == 2).await;
        Self { cluster, first, second }
    }

    /// The outcome for both, once both know it.
    async fn outcomes(&self) -> (Outcome, Outcome) {
        tokio::join!(self.first.outcome(), self.second.outcome())
    }
}

/// Makes so many steps, none of which is the one to stop at.
async fn make_steps(manager: &Manager, steps: std::ops::Range<i64>) {
    for step in steps {
        assert!(!manager.reached_sync_point(step).await, "step {step}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_preemption_no_sync_point() {
    let pair = Pair::start().await;
    make_steps(&pair.first, 0..3).await;
    assert_eq!(pair.cluster.served.gateway.waiting_calls(), 2, "both still listen");
}

#[tokio::test(start_paused = true)]
async fn preemption_single_sync_point() {
    let pair = Pair::start().await;
    make_steps(&pair.first, 0..2).await;
    pair.first.notify(NOW).await.expect("the first notice");
    assert_eq!(pair.outcomes().await, (Outcome::StopAt(2), Outcome::StopAt(2)));
    assert!(pair.first.reached_sync_point(2).await);
    assert!(!pair.first.reached_sync_point(3).await, "it is behind us");
}

#[tokio::test(start_paused = true)]
async fn delayed_preemption_no_sync_point_yet() {
    let pair = Pair::start().await;
    make_steps(&pair.first, 0..2).await;
    pair.first.notify(Duration::from_secs(3600)).await.expect("the first notice");
    pair.first.noticed().await;
    pair.second.noticed().await;
    make_steps(&pair.first, 2..3).await;
    let counters = pair.first.agent().directory(DIRECTORY).await.expect("a list");
    assert_eq!(counters, [], "nobody has begun to agree");
}

#[tokio::test(start_paused = true)]
async fn preempt_slow_task() {
    let pair = Pair::start().await;
    make_steps(&pair.first, 0..1).await;
    make_steps(&pair.second, 0..3).await;
    pair.first.notify(NOW).await.expect("the first notice");
    assert_eq!(pair.outcomes().await, (Outcome::StopAt(3), Outcome::StopAt(3)));
    make_steps(&pair.first, 1..3).await;
    assert!(pair.first.reached_sync_point(3).await);
    assert!(pair.second.reached_sync_point(3).await);
}

#[tokio::test(start_paused = true)]
async fn preempt_fast_task() {
    let pair = Pair::start().await;
    make_steps(&pair.first, 0..1).await;
    make_steps(&pair.second, 0..3).await;
    pair.second.notify(NOW).await.expect("the first notice");
    assert_eq!(pair.outcomes().await, (Outcome::StopAt(3), Outcome::StopAt(3)));
    make_steps(&pair.first, 1..3).await;
    assert!(pair.first.reached_sync_point(3).await);
    assert!(pair.second.reached_sync_point(3).await);
    let refused = pair.first.notify(NOW).await.expect_err("there is one notice a job");
    assert_eq!(refused.code(), Code::AlreadyExists);
}

#[tokio::test(start_paused = true)]
async fn unhealthy_task_no_sync_point() {
    let pair = Pair::start().await;
    make_steps(&pair.first, 0..2).await;
    pair.second.agent().report(&Status::internal("test_error")).await.expect("taken in");
    assert_eq!(pair.cluster.phase(1), Phase::Error);
    pair.first.notify(NOW).await.expect("keys work for a task in error");
    let (first, second) = pair.outcomes().await;
    for outcome in [first, second] {
        assert_eq!(outcome, Outcome::Failed(Code::Internal), "no barrier passes with a task in error");
    }
    make_steps(&pair.first, 2..3).await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_tasks_without_preemption() {
    let pair = Pair::start().await;
    make_steps(&pair.first, 0..2).await;
    let (left, right) = tokio::join!(pair.first.agent().shut_down(), pair.second.agent().shut_down());
    left.and(right).expect("both leave");
    assert_eq!(pair.outcomes().await, (Outcome::Ended, Outcome::Ended));
    make_steps(&pair.first, 2..3).await;
    until("nobody listens", || pair.cluster.served.gateway.waiting_calls() == 0).await;
    for manager in [&pair.first, &pair.second] {
        assert!(manager.agent().error().is_none(), "{:?}", manager.agent().error());
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_without_preemption() {
    let pair = Pair::start().await;
    pair.first.shut_down();
    assert_eq!(pair.first.outcome().await, Outcome::Ended);
    until("only the other one listens", || pair.cluster.served.gateway.waiting_calls() == 1).await;
    healthy(pair.first.agent()).await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_with_preemption() {
    let pair = Pair::start().await;
    pair.first.notify(NOW).await.expect("the first notice");
    pair.first.shut_down();
    // It may have agreed before.
    assert!(matches!(pair.first.outcome().await, Outcome::Ended | Outcome::StopAt(_)));
    healthy(pair.first.agent()).await;
}

/// The agent goes on after its manager has ended.
async fn healthy(agent: &Agent) {
    assert!(agent.error().is_none(), "{:?}", agent.error());
    assert_eq!(agent.increment("steps", 1).await.expect("the service answers it"), 1);
}
