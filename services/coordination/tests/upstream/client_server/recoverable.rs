//! Jobs whose tasks may restart.

use std::time::Duration;

use tonic::Code;
use tripod_proto::xla::coordination as pb;
use tripod_state::job;
use tripod_state::task::Phase;

use crate::client::{Agent, Call, Cluster, Config, impatient, incarnations, ms, spec};
use crate::support::payloads::barrier_error;
use crate::support::{LONG, until};

const BARRIER: &str = "barrier_id";
/// How long a process that has left is remembered where it is to be forgotten. Eight jobs play at the same time,
/// and in none of them may a busy machine miss who is there.
const GRACE: Duration = Duration::from_secs(5);
/// At the end the job is healthy.
const LAST: &str = "before_shutdown";

fn recoverable(spec: job::Spec) -> job::Spec {
    job::Spec { recoverable: true, ..spec }
}

#[tokio::test(start_paused = true)]
async fn recoverable_client_never_joins_initial_connect_fails() {
    let register_timeout_ms = ms(Duration::from_millis(500));
    let spec = recoverable(job::Spec { register_timeout_ms, ..spec(3) });
    let cluster = Cluster::start(spec).await;
    let short = Config { init_timeout: Duration::ZERO, spare: Duration::from_secs(3), ..cluster.config };
    let (first, second) = (cluster.agent_with(0, short).await, cluster.agent_with(1, short).await);
    let (first, second) = tokio::join!(first.connect(), second.connect());
    for outcome in [first, second] {
        assert_eq!(outcome.expect_err("one is missing").code(), Code::DeadlineExceeded);
    }
    let late = cluster.agent_with(2, short).await.connect().await.expect_err("it is too late");
    assert_eq!(late.code(), Code::Aborted, "all are in error: {late:?}");
}

#[tokio::test(start_paused = true)]
async fn recoverable_client_dies_no_error_propagated() {
    let cluster = Cluster::start(recoverable(impatient(3))).await;
    let [first, dying, third] = cluster.connected().await;
    drop(dying);
    cluster.until_lost(1).await;
    let (left, right) = tokio::join!(first.alive(&[0, 1, 2]), third.alive(&[0, 1, 2]));
    assert_eq!(left.expect("both have asked"), right.expect("both have asked"));
    until("the polls of the survivors wait", || cluster.served.gateway.waiting_calls() == 2).await;
    let mut raw = cluster.raw().await;
    for survivor in [&first, &third] {
        assert_eq!(cluster.phase(survivor.task()), Phase::Connected);
        raw.heartbeat(beat(survivor.task(), survivor.incarnation())).await.expect("nothing to tell");
        assert!(survivor.error().is_none(), "{:?}", survivor.error());
    }
}

#[tokio::test(start_paused = true)]
async fn recoverable_client_restarts_and_starts_barrier() {
    let cluster = Cluster::start(recoverable(spec(2))).await;
    let [first, second] = cluster.connected().await;
    for _ in 0..3 {
        pass(BARRIER, &[&first, &second]).await;
    }
    first.destroy().await;
    let restarted = cluster.agent(0).await;
    cluster.connect(&restarted).await.expect("it may come again");
    let mut waiting = cluster.at_barrier(&restarted, BARRIER).await;
    waiting.waits().await;
    second.wait_at_barrier(BARRIER, LONG, &[]).await.expect("both are there");
    waiting.end().await.expect("both are there");
    pass(LAST, &[&restarted, &second]).await;
}

/// One set of parameters.
#[derive(Debug, Clone, Copy)]
struct Set {
    /// The process that restarts leaves before; otherwise it dies.
    says_goodbye: bool,
    /// It stays away for so long that the service has given it up.
    is_missed: bool,
    /// Earlier instances of the barrier have passed.
    has_passed: bool,
}

/// All combinations.
const SETS: [Set; 8] = [
    Set { says_goodbye: true, is_missed: true, has_passed: false },
    Set { says_goodbye: true, is_missed: false, has_passed: false },
    Set { says_goodbye: false, is_missed: true, has_passed: false },
    Set { says_goodbye: false, is_missed: false, has_passed: false },
    Set { says_goodbye: true, is_missed: true, has_passed: true },
    Set { says_goodbye: true, is_missed: false, has_passed: true },
    Set { says_goodbye: false, is_missed: true, has_passed: true },
    Set { says_goodbye: false, is_missed: false, has_passed: true },
];

impl Set {
    /// Which instance of the barrier is next.
    fn counter(self) -> i64 {
        if self.has_passed { 3 } else { 0 }
    }

    /// A job of which some barriers may have passed.
    async fn start<const N: usize>(self) -> (Cluster, [Agent; N]) {
        let tasks = u32::try_from(N).expect("a small number");
        let mut spec = spec(tasks);
        // Only the end of a grace must be waited for.
        if self.is_missed && self.says_goodbye {
            spec.heartbeat_timeout_ms = ms(GRACE);
        }
        let cluster = Cluster::start(recoverable(spec)).await;
        let agents: [Agent; N] = cluster.connected().await;
        if self.has_passed {
            for _ in 0..3 {
                pass(BARRIER, &agents.each_ref()).await;
            }
        }
        (cluster, agents)
    }

    /// Another process of the agent's task, after its end.
    async fn restart(self, cluster: &Cluster, agent: Agent) -> Agent {
        let (task, incarnation) = (agent.task(), agent.incarnation());
        if self.says_goodbye {
            agent.destroy().await;
        } else {
            drop(agent);
        }
        match (self.is_missed, self.says_goodbye) {
            (true, true) => until_forgotten(cluster, task, incarnation).await,
            (true, false) => cluster.miss(task, incarnation).await,
            (false, _) => {}
        }
        let restarted = cluster.agent(task).await;
        let connected = cluster.connect(&restarted).await;
        connected.unwrap_or_else(|status| panic!("{self:?}: {status:?}"));
        restarted
    }
}

/// The agent's call at the barrier, on a connection that outlives it: what the service answers is seen.
async fn stale_arrival(cluster: &Cluster, set: Set, agent: &Agent) -> Call<()> {
    let arrival = pb::BarrierRequest {
        incarnations: incarnations(),
        barrier_id: BARRIER.to_owned(),
        barrier_timeout_in_ms: 20_000,
        source_task_id: agent.task(),
        counter: set.counter(),
        ..Default::default()
    };
    let mut raw = cluster.raw().await;
    cluster.arriving(agent, BARRIER, async move { raw.barrier(arrival).await.map(drop) }).await
}

fn beat(source_task_id: i32, incarnation: u64) -> pb::HeartbeatRequest {
    pb::HeartbeatRequest { incarnations: incarnations(), incarnation, source_task_id }
}

/// Waits until the service knows nothing any more of a process that has left.
async fn until_forgotten(cluster: &Cluster, task: i32, incarnation: u64) {
    let raw = cluster.raw().await;
    let refused = || {
        let mut raw = raw.clone();
        async move { raw.heartbeat(beat(task, incarnation)).await.err() }
    };
    tripod_wait::until_async("the end of its grace", refused).await;
}

/// All come to a barrier, which passes.
async fn pass(id: &str, agents: &[&Agent]) {
    let waiting = agents.iter().map(|agent| tokio::spawn(agent.wait_at_barrier(id, LONG, &[])));
    for call in waiting.collect::<Vec<_>>() {
        call.await.expect("no panic").unwrap_or_else(|status| panic!("{id}: {status:?}"));
    }
}

/// Plays the parameter sets at the same time.
async fn in_all_sets<P: Future<Output = ()> + Send + 'static>(play: impl Fn(Set) -> P) {
    let playing: Vec<_> = SETS.into_iter().map(|set| (set, tokio::spawn(play(set)))).collect();
    for (set, played) in playing {
        played.await.unwrap_or_else(|panic| panic!("{set:?}: {panic}"));
    }
}

#[tokio::test(start_paused = true)]
async fn recoverable_client_restarts_and_joins_barrier() {
    in_all_sets(async |set: Set| {
        let (cluster, [waiting, restarting]) = set.start().await;
        let mut first = cluster.at_barrier(&waiting, BARRIER).await;
        let restarted = set.restart(&cluster, restarting).await;
        first.waits().await;
        let second = restarted.wait_at_barrier(BARRIER, LONG, &[]).await;
        second.unwrap_or_else(|status| panic!("{set:?}: the restarted one: {status:?}"));
        first.end().await.unwrap_or_else(|status| panic!("{set:?}: the other one: {status:?}"));
        pass(LAST, &[&waiting, &restarted]).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn recoverable_client_joins_barrier_then_restarts_and_joins_barrier_again() {
    in_all_sets(async |set: Set| {
        let (cluster, [restarting, waiting, last]) = set.start().await;
        let stale = stale_arrival(&cluster, set, &restarting).await;
        let mut other = cluster.at_barrier(&waiting, BARRIER).await;
        let restarted = set.restart(&cluster, restarting).await;
        let stale = stale.end().await.expect_err("its process is gone");
        assert_eq!(stale.code(), Code::Cancelled, "{set:?}: {stale:?}");
        assert_eq!(barrier_error(&stale), Some((BARRIER.into(), set.counter())), "{set:?}");

        let mut again = cluster.at_barrier(&restarted, BARRIER).await;
        again.waits().await;
        other.waits().await;
        let came_last = last.wait_at_barrier(BARRIER, LONG, &[]).await;
        for (who, outcome) in
            [("last", came_last), ("restarted", again.end().await), ("other", other.end().await)]
        {
            outcome.unwrap_or_else(|status| panic!("{set:?}: {who}: {status:?}"));
        }
        pass(LAST, &[&restarted, &waiting, &last]).await;
    })
    .await;
}
