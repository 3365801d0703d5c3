//! A state that one cluster saved, made the beginning of another. The old one's clients may still be
//! there, and have seen more than was saved.

use std::hash::{Hash, Hasher};

use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::events::OfCluster;
use crate::identity::Floor;
use crate::ids::{ServiceIncarnation, TaskVersion};
use crate::job::record::Job;
use crate::state::State;
use crate::token::Tokens;
use crate::{job, member, session};

/// What becomes of the saved jobs in the new cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Jobs {
    /// A job keeps its name, its port and its keys, and nothing else: its service has another incarnation,
    /// none of its tasks is connected, it has no barriers, and all sessions are closed. Whoever worked in it
    /// before is refused and must begin anew.
    Ended,
    /// Jobs and sessions go on as they were saved. Clients that have seen what came after are told nothing.
    Kept,
}

impl State {
    /// This state as the first one of the cluster `cluster_id`. Equal arguments make equal states: every
    /// node of the new cluster makes its own. The nodes' addresses are never kept, because the new nodes
    /// announce theirs, and who has announced itself counts as a node that had data.
    #[must_use]
    pub fn restored(mut self, cluster_id: &str, jobs: Jobs) -> Self {
        self.members = OrdMap::new();
        // It follows the new cluster's membership from its first entry on.
        self.registry = member::Registry::default();
        self.drained = OrdSet::new();
        // Whoever had one of the old cluster is to have none here, as its certificates are not believed either.
        self.tokens = Tokens::default();
        self.events = OfCluster::default();
        // Certificates are of one cluster.
        self.names = OrdMap::new();
        self.floor = Floor::default();
        if jobs == Jobs::Kept {
            // What somebody opened and registered there is of nobody whom this cluster knows.
            self.sessions.forget_openers();
            self.jobs.forget_registrants();
            return self;
        }
        self.sessions = session::table::Table::default();
        let mut table = job::table::Table::default();
        for old in self.jobs.iter() {
            let fresh = table.add(ended(old, cluster_id));
            assert!(fresh, "ids, names and slots were of one job each before");
        }
        self.jobs = table;
        self
    }
}

/// The job without those who took part in it.
fn ended(old: &Job, cluster_id: &str) -> Job {
    let service = next_service(old, cluster_id);
    let mut job = Job::new(old.id, old.name.clone(), old.slot, service, old.spec.clone());
    job.store = old.store.clone();
    // Who watches the tasks asks for what is newer than it knows.
    job.tasks.restore_version(TaskVersion(old.tasks.version().0.saturating_add(1)));
    job
}

/// An incarnation that no client of the old job believes in. There is no randomness here; the new cluster's
/// id stands for it, which is another one for every restoration.
fn next_service(old: &Job, cluster_id: &str) -> ServiceIncarnation {
    let mut hasher = Xxh3::new();
    (cluster_id, old.id, old.service).hash(&mut hasher);
    let drawn = hasher.finish();
    let is_free = |candidate: &u64| *candidate != 0 && *candidate != old.service.0;
    let candidates = [drawn, drawn.wrapping_add(1), drawn.wrapping_add(2)];
    ServiceIncarnation(candidates.into_iter().find(is_free).expect("two values are not free"))
}
