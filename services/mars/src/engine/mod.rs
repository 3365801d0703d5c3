//! What the leader does beside answering: it proposes what the state says is due. Subtasks of a graph for which there is
//! room, times that have run out. It has object stores seal what is written in place, and proposes what came of it. It
//! decides nothing by itself: apply looks again. So nothing of it is lost with a leader. Nodes that do not lead are silent.
//!
//! | part | does |
//! |---|---|
//! | `clock` | what the log's clock shows at least |
//! | `seal` | which orders to seal are being carried out |
//! | `seal_order` | one of them, told until it is over |
//! | `store` | connections to object stores, and the call |

mod clock;
mod seal;
mod seal_order;
mod store;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tripod_backoff::Backoff;
use tripod_gateway::{Consistency, Gateway, Leadership};
use tripod_state::ids::{JobId, Term};
use tripod_state::{Command, DomainId, Scope, State, Topic};

use self::clock::LogClock;
use crate::domain::{self, Decision};

pub(crate) use self::store::by;
pub use self::store::{Connect, Connecting};

/// How often times are looked at if nothing changes.
const TICK: Duration = Duration::from_millis(500);
/// Decisions that are proposed at a time. What is left is due at the next look.
const DECISIONS_MAX: usize = 64;
/// Between attempts of what is not in the log.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));

/// Serves the sessions of all jobs for as long as it is polled.
pub(crate) async fn run(gateway: Gateway, connect: Connect) {
    let mut changes = gateway.watch(Topic::Jobs);
    // They end with their jobs, or with this function.
    let mut jobs = JoinSet::new();
    let mut known = BTreeSet::new();
    loop {
        let all = |state: &State| state.jobs().into_iter().map(|job| job.id).collect::<BTreeSet<_>>();
        let now = gateway.read(Consistency::Local, all).await.unwrap_or_default();
        for job in now.difference(&known) {
            jobs.spawn(serve(gateway.clone(), Arc::clone(&connect), *job));
        }
        known = now;
        while jobs.try_join_next().is_some() {}
        changes.changed().await;
    }
}

/// Serves one job whenever this node leads and the job has sessions, until the job is deleted.
async fn serve(gateway: Gateway, connect: Connect, job: JobId) {
    let mut leadership = gateway.leadership();
    loop {
        let mut changes = gateway.watch(Topic::Domain(DomainId::Mars, job));
        let now = *leadership.borrow_and_update();
        let look = |state: &State| state.job(job).map(|_| now.ready_here && domain::has_sessions(state, job));
        let Ok(Some(is_busy)) = gateway.read(Consistency::Local, look).await else { return };
        if !is_busy {
            tokio::select! {
                biased;
                () = changes.changed() => {}
                changed = leadership.changed() => if changed.is_err() { return },
            }
            continue;
        }
        tokio::select! {
            biased;
            () = over(&mut leadership, now.term) => {}
            () = lead(&gateway, job) => {}
            () = seal::run(&gateway, &connect, job) => {}
        }
    }
}

/// Resolves when this node does not lead in that term any more.
async fn over(leadership: &mut watch::Receiver<Leadership>, term: Term) {
    let ended = |now: &Leadership| !now.ready_here || now.term != term;
    // An error says that the node is gone.
    let _ = leadership.wait_for(ended).await;
}

/// Proposes what is due until the job has no sessions any more, or the future is dropped.
async fn lead(gateway: &Gateway, job: JobId) {
    let mut sessions = gateway.watch(Topic::Domain(DomainId::Mars, job));
    let mut scheduler = gateway.watch(Topic::Domain(DomainId::Ray, job));
    let (mut clock, mut backoff) = (LogClock::default(), BACKOFF);
    loop {
        let look = |state: &State| {
            let now = clock.at_least(state.now_ms());
            domain::has_sessions(state, job).then(|| domain::due(state, job, now, DECISIONS_MAX))
        };
        let Ok(Some(due)) = gateway.read(Consistency::Local, look).await else { return };
        if due.is_empty() {
            backoff.reset();
            tokio::select! {
                biased;
                () = sessions.changed() => {}
                // Room at the scheduler, or a store that went, may make something due.
                () = scheduler.changed() => {}
                () = tokio::time::sleep(TICK) => {}
            }
            continue;
        }
        let decided = join_all(due.into_iter().map(|decision| decide(gateway, job, decision))).await;
        let is_done = decided.into_iter().all(|done| done);
        // What is still due for that which was just proposed would be proposed without end.
        if is_done {
            backoff.reset();
            _ = timeout(TICK, sessions.changed()).await;
        } else {
            backoff.rest().await;
        }
    }
}

/// Puts a decision into the log, or logs why it is not there: `false` if it may be there another time.
async fn decide(gateway: &Gateway, job: JobId, decision: Decision) -> bool {
    if let Decision::TimedOut { graph } = &decision {
        tracing::info!(job = job.0, graph = graph.0, "a graph has run for too long");
    }
    let scope = Scope { job, service: None };
    match gateway.submit(Command::Mars(domain::Command::Lead { scope, decision })).await {
        Ok(Ok(_)) => true,
        Ok(Err(fault)) => {
            tracing::info!(job = job.0, ?fault, "a decision of the leader was refused");
            false
        }
        Err(outage) => {
            tracing::info!(job = job.0, %outage, "a decision of the leader is not in the log");
            false
        }
    }
}
