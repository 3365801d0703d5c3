//! Gives tasks to idle workers. The rule is in the state ([`Ray::plan_around`]); this asks it whenever something changed.

use std::time::Duration;

use tripod_state::ray::{Answer, Decision, Ray};

use super::leader_term::LeaderTerm;
use super::time::LogTime;

/// Tasks that are given out in one command.
const ASSIGNED_MAX: usize = 256;
/// After a plan of so many tasks the next one waits for more: the workers have enough to do, and every plan is a
/// command.
const MANY: usize = 16;
const GATHER: Duration = Duration::from_millis(2);
/// After a plan of which nothing held, nothing may have changed that would make the next one better.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs until the job has no scheduler any more.
pub(super) async fn run(led: LeaderTerm) {
    let mut time = LogTime::default();
    loop {
        let mut changes = led.watch();
        let unfit = led.memory.unfit(led.job);
        let look = |state: &tripod_state::State, ray: &Ray| {
            let now = time.now(state.now_ms());
            (now, ray.plan_around(now, ASSIGNED_MAX, &unfit), ray.next_due(now))
        };
        let Some((now, plan, due)) = led.look_around(look).await else { return };
        if !plan.is_empty() {
            let planned = plan.len();
            match led.decide(Decision::Assign(plan)).await {
                Some(Answer::Assigned { taken }) if taken > 0 => {
                    if planned >= MANY {
                        tokio::time::sleep(GATHER).await;
                    }
                }
                outcome => {
                    tracing::debug!(job = led.job.0, planned, ?outcome, "nothing of a plan held");
                    tokio::time::sleep(PAUSE).await;
                }
            }
            continue;
        }
        // One more millisecond, as the log's clock has no finer parts.
        let wait = due.map(|due| Duration::from_millis(due.0.saturating_sub(now.0) + 1));
        tokio::select! {
            biased;
            () = changes.changed() => {}
            () = asleep(wait) => {}
        }
    }
}

/// For so long, or for ever.
async fn asleep(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}
