//! The tasks of one job that are still to be told.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tripod_gateway::{Consistency, Gateway, Leadership, Watch};
use tripod_state::ids::{JobId, TaskId};
use tripod_state::task::Untold;
use tripod_state::{Command, State, Topic, task};

use super::call::{self, CallOutcome, Connect};
use super::message;
use crate::names::Names;

/// Calls of one job under way at a time.
const CALLS_MAX: usize = 64;
/// How long whoever could not be told is left alone: at first, and at most.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(15);

/// Whom to tell, and by which names tasks know each other.
struct Round {
    untold: Vec<Untold>,
    names: Names,
}

/// Wakes when there may be somebody to tell.
struct Bell {
    polls: Watch,
    leadership: watch::Receiver<Leadership>,
}

/// Tells the tasks of one job, whenever this node leads, until the job is deleted.
pub(super) async fn tell(gateway: Gateway, job: JobId, connect: Connect) {
    let polls = gateway.watch(Topic::Polls(job));
    let mut bell = Bell { polls, leadership: gateway.leadership() };
    let mut pause = PAUSE;
    let mut unreached = BTreeSet::new();
    loop {
        let leads = bell.leadership.borrow_and_update().ready_here;
        let look = |state: &State| Round::of(state, job);
        let Ok(Some(round)) = gateway.read(Consistency::Local, look).await else { return };
        if !leads || round.untold.is_empty() {
            pause = PAUSE;
            bell.rings().await;
        } else if !round.tell(&gateway, job, &connect, &mut unreached).await {
            tokio::time::sleep(pause).await;
            pause = PAUSE_MAX.min(pause * 2);
        }
    }
}

impl Bell {
    async fn rings(&mut self) {
        tokio::select! {
            () = self.polls.changed() => {}
            changed = self.leadership.changed() => {
                if changed.is_err() {
                    // The node is gone: nobody leads here any more.
                    std::future::pending::<()>().await;
                }
            }
        }
    }
}

impl Round {
    /// `None`: there is no such job.
    fn of(state: &State, job: JobId) -> Option<Self> {
        let names = Names::of(state.job_spec(job)?);
        let untold = state.untold().into_iter().filter(|untold| untold.job == job).collect();
        Some(Self { untold, names })
    }

    /// Calls everybody once. Whether all were told, and the cluster knows it. Those who were not are noted, so that the
    /// log has one line about each.
    async fn tell(
        self,
        gateway: &Gateway,
        job: JobId,
        connect: &Connect,
        unreached: &mut BTreeSet<TaskId>,
    ) -> bool {
        let mut left: BTreeSet<TaskId> = self.untold.iter().map(|untold| untold.listener.task).collect();
        let permits = Arc::new(Semaphore::new(CALLS_MAX));
        let mut calls = JoinSet::new();
        for Untold { listener, error, .. } in self.untold {
            let (permits, connect) = (Arc::clone(&permits), connect.clone());
            let message = message::of(&error, &self.names);
            calls.spawn(async move {
                let _permit = permits.acquire_owned().await.expect("it is never closed");
                call::tell(listener, message, &connect).await
            });
        }
        while let Some(first) = calls.join_next().await {
            let more = std::iter::from_fn(|| calls.try_join_next());
            let told: Vec<TaskId> = std::iter::once(first)
                .chain(more)
                .filter_map(|ended| ended.ok()?.told(job, unreached))
                .collect();
            if told.is_empty() {
                continue;
            }
            let pushed = task::Command::Pushed { job, tasks: told.clone() };
            match gateway.submit(Command::Task(pushed)).await {
                Ok(Ok(_)) => left.retain(|task| !told.contains(task)),
                // The job is gone, which the next look will show.
                Ok(Err(fault)) => tracing::debug!(job = job.0, ?fault, "not noted who was told of an error"),
                Err(outage) => tracing::info!(job = job.0, %outage, "not noted who was told of an error"),
            }
        }
        left.is_empty()
    }
}

impl CallOutcome {
    /// The task, if it was told.
    fn told(self, job: JobId, unreached: &mut BTreeSet<TaskId>) -> Option<TaskId> {
        let task = self.listener.task;
        match self.outcome {
            Ok(()) => {
                tracing::debug!(job = job.0, task = task.0, "task told of an error");
                unreached.remove(&task);
                Some(task)
            }
            Err(error) => {
                let address = self.listener.address;
                if unreached.insert(task) {
                    tracing::info!(job = job.0, task = task.0, address, error, "task not told of an error");
                } else {
                    tracing::debug!(job = job.0, task = task.0, address, error, "task not told of an error");
                }
                None
            }
        }
    }
}
