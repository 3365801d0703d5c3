//! Tells tasks of errors by calling them at their own addresses (`ReportErrorToTask`), for the jobs that say
//! where their tasks listen. TensorFlow's service does so, and its clients do not ask by themselves.
//!
//! The state knows who is still to be told; the leader tells them and says so in the log. A task may be told
//! twice, by a leader that fell between the two, and then keeps the first error. Whoever cannot be reached is
//! called again until it is told, leaves, or fails.

mod call;
mod job;
mod message;

use std::collections::BTreeSet;

use tokio::task::JoinSet;
use tripod_gateway::{Consistency, Gateway};
use tripod_state::ids::JobId;
use tripod_state::{State, Topic};

pub use call::{Connect, Connecting};

/// Tells the tasks of all jobs for as long as it is polled, over connections that `connect` makes, which also decides
/// whether there are any. One for each node; those that do not lead are silent.
pub async fn run_over(gateway: Gateway, connect: Connect) {
    let mut changes = gateway.watch(Topic::Jobs);
    // They end with their jobs, or with this function.
    let mut tellers = JoinSet::new();
    let mut known = BTreeSet::new();
    loop {
        let listening = gateway.read(Consistency::Local, listening).await.unwrap_or_default();
        for job in listening.difference(&known) {
            tellers.spawn(job::tell(gateway.clone(), *job, connect.clone()));
        }
        known = listening;
        while tellers.try_join_next().is_some() {}
        changes.changed().await;
    }
}

/// The jobs whose tasks are told by calling them.
fn listening(state: &State) -> BTreeSet<JobId> {
    let jobs = state.jobs().into_iter().filter(|job| !job.spec.listeners.is_empty());
    jobs.map(|job| job.id).collect()
}
