//! The leader's engine: plans, tells workers and stores what they are to do, and watches them. It decides nothing by
//! itself: every decision goes through the log and is checked there again, and what must not be forgotten is in the
//! state. Nodes that do not lead are silent.
//!
//! | part | does |
//! |---|---|
//! | `planner` | gives tasks to idle workers |
//! | `messenger`, `order_queue`, `order_stream`, `order` | orders, in their order for each peer, at least once |
//! | `clerk` | notes in the log what was carried out |
//! | `watchdog`, `prober` | who is silent for too long |
//! | `steward` | what stores hold, compared with the state |
//! | `auditor` | tasks that are done and of which the report was lost |
//! | `links` | connections to peers |

mod auditor;
mod clerk;
mod leader_term;
mod links;
mod messenger;
mod order;
mod order_queue;
mod order_stream;
mod patience;
mod planner;
mod prober;
mod steward;
mod time;
mod watchdog;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tripod_gateway::{Consistency, Gateway, Leadership};
use tripod_state::ids::{DurationMs, JobId, Term, TimeMs};
use tripod_state::ray::Decision;
use tripod_state::{DomainId, State, Topic};

use self::leader_term::LeaderTerm;
pub(crate) use self::links::Links;
use crate::pulse::PeerMemory;

pub use self::links::{Connect, Connecting};
pub use self::patience::Patience;

/// How often idle sessions are closed, and after how long without a call.
const SESSIONS_EVERY: Duration = Duration::from_secs(60);
const SESSION_IDLE_MS: DurationMs = DurationMs(10 * 60 * 1000);
/// Between attempts of a decision that begins a term.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves the schedulers of all jobs for as long as it is polled.
pub(crate) async fn run(gateway: Gateway, memory: Arc<PeerMemory>, patience: Patience, links: Links) {
    let mut changes = gateway.watch(Topic::Jobs);
    // They end with their jobs, or with this function.
    let mut jobs = JoinSet::new();
    let mut known = BTreeSet::new();
    loop {
        let all = |state: &State| state.jobs().into_iter().map(|job| job.id).collect::<BTreeSet<_>>();
        let now = gateway.read(Consistency::Local, all).await.unwrap_or_default();
        for job in now.difference(&known) {
            jobs.spawn(serve(gateway.clone(), *job, Arc::clone(&memory), links.clone(), patience));
        }
        known = now;
        while jobs.try_join_next().is_some() {}
        changes.changed().await;
    }
}

/// Serves one job whenever this node leads and the job has a scheduler, until the job is deleted.
async fn serve(gateway: Gateway, job: JobId, memory: Arc<PeerMemory>, links: Links, patience: Patience) {
    let mut leadership = gateway.leadership();
    loop {
        let mut changes = gateway.watch(Topic::Domain(DomainId::Ray, job));
        let now = *leadership.borrow_and_update();
        let look = |state: &State| state.job(job).map(|_| state.ray(job).is_some());
        let Ok(Some(has_scheduler)) = gateway.read(Consistency::Local, look).await else { return };
        if !now.ready_here || !has_scheduler {
            tokio::select! {
                biased;
                () = changes.changed() => {}
                changed = leadership.changed() => if changed.is_err() { return },
            }
            continue;
        }
        let (finished, notes) = mpsc::unbounded_channel();
        let led = LeaderTerm {
            gateway: gateway.clone(),
            job,
            term: now.term,
            node: gateway.admin().status().node,
            memory: Arc::clone(&memory),
            links: links.clone(),
            patience,
            finished,
            shaken: Arc::default(),
        };
        tokio::select! {
            biased;
            () = lead(&led, notes) => {}
            () = over(&mut leadership, now.term) => {}
        }
        memory.end(job);
    }
}

/// Resolves when this node does not lead in that term any more.
async fn over(leadership: &mut watch::Receiver<Leadership>, term: Term) {
    let ended = |now: &Leadership| !now.ready_here || now.term != term;
    // An error says that the node is gone.
    let _ = leadership.wait_for(ended).await;
}

/// Leads until the job has no scheduler any more, or the future is dropped.
async fn lead(led: &LeaderTerm, notes: mpsc::UnboundedReceiver<clerk::Finished>) {
    led.memory.begin(led.job, led.patience);
    while led.decide(Decision::Rearm { term: led.term }).await.is_none() {
        tokio::time::sleep(PAUSE).await;
    }
    tracing::info!(job = led.job.0, term = led.term.0, "scheduling begins");
    let mut parts = JoinSet::new();
    parts.spawn(clerk::run(led.clone(), notes));
    parts.spawn(messenger::run(led.clone()));
    parts.spawn(planner::run(led.clone()));
    parts.spawn(watchdog::run(led.clone()));
    parts.spawn(steward::run(led.clone()));
    parts.spawn(auditor::run(led.clone()));
    parts.spawn(expire_sessions(led.clone()));
    // Each part ends only when there is nothing left to lead, and one that panicked must not leave the others
    // half of an engine: all begin anew.
    if let Some(Err(error)) = parts.join_next().await {
        tracing::error!(job = led.job.0, %error, "a part of the scheduler's engine failed; it begins anew");
        tokio::time::sleep(PAUSE).await;
    }
}

async fn expire_sessions(led: LeaderTerm) {
    loop {
        tokio::time::sleep(SESSIONS_EVERY).await;
        let Some(now) = led.look_around(|state, _| state.now_ms()).await else { return };
        if let Some(before) = now.0.checked_sub(SESSION_IDLE_MS.0) {
            led.decide(Decision::ExpireSessions { before_ms: TimeMs(before) }).await;
        }
    }
}
