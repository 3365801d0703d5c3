//! What the leader does beside answering: it notices who is silent and who is back, and which cluster does not become
//! complete. It decides nothing by itself: every decision goes through the log and is checked there again. Nodes that do not
//! lead are silent.
//!
//! | part | does |
//! |---|---|
//! | `leader_term` | one job while this node leads |
//! | `watchdog` | who is silent for too long, and who is heard again |
//! | `deadline` | until when a cluster must be complete |
//! | `patience` | how long all that may be |

mod deadline;
mod leader_term;
mod patience;
mod watchdog;

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tripod_gateway::{Consistency, Gateway, Leadership};
use tripod_state::ids::{JobId, Term};
use tripod_state::{DomainId, State, Topic};

use self::leader_term::LeaderTerm;
use crate::pulse::PeerMemory;

pub use self::patience::Patience;

/// Watches the clusters of all jobs for as long as it is polled.
pub(crate) async fn run(gateway: Gateway, heard: Arc<PeerMemory>, patience: Patience) {
    let mut changes = gateway.watch(Topic::Jobs);
    // They end with their jobs, or with this function.
    let mut jobs = JoinSet::new();
    let mut known = BTreeSet::new();
    loop {
        let all = |state: &State| state.jobs().into_iter().map(|job| job.id).collect::<BTreeSet<_>>();
        let now = gateway.read(Consistency::Local, all).await.unwrap_or_default();
        for job in now.difference(&known) {
            jobs.spawn(serve(gateway.clone(), *job, Arc::clone(&heard), patience));
        }
        known = now;
        while jobs.try_join_next().is_some() {}
        changes.changed().await;
    }
}

/// Watches one job's cluster whenever this node leads and there are nodes, until the job is deleted.
async fn serve(gateway: Gateway, job: JobId, heard: Arc<PeerMemory>, patience: Patience) {
    let mut leadership = gateway.leadership();
    loop {
        let mut changes = gateway.watch(Topic::Domain(DomainId::Mindspore, job));
        let now = *leadership.borrow_and_update();
        let look = |state: &State| state.job(job).map(|_| !state.topology_members(job).is_empty());
        let Ok(Some(has_nodes)) = gateway.read(Consistency::Local, look).await else { return };
        if !now.ready_here || !has_nodes {
            tokio::select! {
                biased;
                () = changes.changed() => {}
                changed = leadership.changed() => if changed.is_err() { return },
            }
            continue;
        }
        let led = LeaderTerm { gateway: gateway.clone(), job, heard: Arc::clone(&heard), patience };
        tokio::select! {
            biased;
            () = watchdog::run(&led) => {}
            () = over(&mut leadership, now.term) => {}
        }
        heard.liveness().end(job);
    }
}

/// Resolves when this node does not lead in that term any more.
async fn over(leadership: &mut watch::Receiver<Leadership>, term: Term) {
    let ended = |now: &Leadership| !now.ready_here || now.term != term;
    // An error says that the node is gone.
    let _ = leadership.wait_for(ended).await;
}
