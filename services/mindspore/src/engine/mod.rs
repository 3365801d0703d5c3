//! What the leader does beside answering: it notices who is silent and who is back, which cluster does not become complete,
//! and it tells nodes of a parameter server what they are to be told. It decides nothing by itself: every decision goes
//! through the log and is checked there again, and what is still to be told stands in the state. So nothing of it is lost
//! with a leader. Nodes that do not lead are silent.
//!
//! | part | does |
//! |---|---|
//! | `leader_term` | one job while this node leads |
//! | `watchdog` | who is silent for too long, who is heard again, and which times have run out |
//! | `teller` | what nodes are told, and what they have answered |
//! | `deadline` | what the log's clock shows |
//! | `patience` | how long all that may be |

mod deadline;
mod leader_term;
mod patience;
mod teller;
mod watchdog;

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tripod_gateway::{Consistency, Gateway, Leadership};
use tripod_state::ids::{JobId, Term};
use tripod_state::{DomainId, State, Topic};

use self::leader_term::LeaderTerm;
use self::watchdog::End;
use crate::calls::Calls;
use crate::connection::Complaints;
use crate::pulse::PeerMemory;

pub use self::patience::Patience;

/// What it works with. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Engine {
    pub(crate) gateway: Gateway,
    pub(crate) heard: Arc<PeerMemory>,
    pub(crate) calls: Calls,
    pub(crate) complaints: Complaints,
    pub(crate) patience: Patience,
}

impl Engine {
    /// Serves the clusters of all jobs for as long as it is polled.
    pub(crate) async fn run(self) {
        let mut changes = self.gateway.watch(Topic::Jobs);
        // They end with their jobs, or with this function.
        let mut jobs = JoinSet::new();
        let mut known = BTreeSet::new();
        loop {
            let all = |state: &State| state.jobs().into_iter().map(|job| job.id).collect::<BTreeSet<_>>();
            let now = self.gateway.read(Consistency::Local, all).await.unwrap_or_default();
            for job in now.difference(&known) {
                jobs.spawn(self.clone().serve(*job));
            }
            known = now;
            while jobs.try_join_next().is_some() {}
            changes.changed().await;
        }
    }

    /// Serves one job's clusters whenever this node leads and there are nodes, until the job is deleted.
    async fn serve(self, job: JobId) {
        let mut leadership = self.gateway.leadership();
        // The end of a cluster after which nobody is watched any more in that term.
        let mut over_since: Option<(Term, End)> = None;
        loop {
            let mut changes = self.gateway.watch(Topic::Domain(DomainId::Mindspore, job));
            let now = *leadership.borrow_and_update();
            let has_ended = |state: &State| {
                watchdog::end_of(state, job).is_some_and(|end| over_since != Some((now.term, end)))
            };
            // Who follows does not look at all nodes whenever one of them changes.
            let look = |state: &State| {
                let has_work = || watchdog::has_peers(state, job) || has_ended(state);
                state.job(job).map(|_| now.ready_here && has_work())
            };
            let Ok(Some(is_busy)) = self.gateway.read(Consistency::Local, look).await else { return };
            if !is_busy {
                tokio::select! {
                    biased;
                    () = changes.changed() => {}
                    changed = leadership.changed() => if changed.is_err() { return },
                }
                continue;
            }
            let led = LeaderTerm { engine: self.clone(), job };
            let nobody_is_left = tokio::select! {
                biased;
                () = over(&mut leadership, now.term) => false,
                () = watchdog::run(&led) => true,
                () = teller::run(&led) => false,
            };
            self.heard.end(job);
            if nobody_is_left {
                let end = led.look(|state| watchdog::end_of(state, job)).await;
                over_since = end.map(|end| (now.term, end));
            }
        }
    }
}

/// Resolves when this node does not lead in that term any more.
async fn over(leadership: &mut watch::Receiver<Leadership>, term: Term) {
    let ended = |now: &Leadership| !now.ready_here || now.term != term;
    // An error says that the node is gone.
    let _ = leadership.wait_for(ended).await;
}
