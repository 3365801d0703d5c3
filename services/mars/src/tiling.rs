//! Turns for decoding and tiling graphs, which take a thread for as long as a million chunks take.
//!
//! A session has one turn at a time, and a node a few: one client's large graph is not everybody's wait.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tonic::Status;
use tripod_gateway::aside;
use tripod_state::ids::JobId;

use crate::limits::{TILINGS_MAX, TILINGS_WAITING_MAX};
use crate::status;

/// Of each session that somebody has a turn of, or waits for one.
type OfSessions = HashMap<(JobId, String), Weak<Semaphore>>;

/// The turns of one node. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Turns {
    /// Of all sessions.
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    sessions: Arc<Mutex<OfSessions>>,
}

impl Turns {
    pub(crate) fn new() -> Self {
        Self {
            running: Arc::new(Semaphore::new(TILINGS_MAX)),
            waiting: Arc::new(Semaphore::new(TILINGS_WAITING_MAX)),
            sessions: Arc::default(),
        }
    }

    /// Does some work for a session, on a thread of its own, unless this is a simulation.
    ///
    /// # Errors
    /// Those of the work; or too much is waiting.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        job: JobId,
        session: &str,
        work: impl FnOnce() -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        let _waiting = Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| {
            status::overloaded(format!(
                "{TILINGS_WAITING_MAX} graphs wait to be tiled on this node; try again"
            ))
        })?;
        let own = self.of_session(job, session);
        let closed = |_| Status::unavailable("this node is stopping");
        let own = own.acquire_owned().await.map_err(closed)?;
        let turn = Arc::clone(&self.running).acquire_owned().await.map_err(closed)?;
        // The turns end with the work, also if nobody waits for it any more.
        let done = aside(move || {
            let _turns = (own, turn);
            work()
        });
        done.await.unwrap_or_else(|| {
            tracing::error!("a graph could not be tiled");
            Err(Status::internal("the graph could not be tiled; please report this"))
        })
    }

    fn of_session(&self, job: JobId, session: &str) -> Arc<Semaphore> {
        let mut sessions = self.sessions.lock();
        if sessions.len() > TILINGS_WAITING_MAX {
            sessions.retain(|_, turn| turn.strong_count() > 0);
        }
        let key = (job, session.to_owned());
        if let Some(turn) = sessions.get(&key).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::new(Semaphore::new(1));
        sessions.insert(key, Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn one_sessions_work_waits_for_its_own_and_for_nobody_elses() {
        let turns = Turns::new();
        let (go, gate) = mpsc::channel::<()>();
        let long = tokio::spawn({
            let turns = turns.clone();
            async move {
                let work = move || {
                    gate.recv().expect("it is told to go on");
                    Ok(1)
                };
                turns.work(JobId(1), "a", work).await
            }
        });
        tripod_wait::until("the long one has its turn", || {
            (turns.running.available_permits() < TILINGS_MAX).then_some(())
        })
        .await;
        let other = turns.work(JobId(1), "b", || Ok(2)).await.unwrap();
        assert_eq!(other, 2);
        let same = tokio::spawn({
            let turns = turns.clone();
            async move { turns.work(JobId(1), "a", || Ok(3)).await }
        });
        assert!(!same.is_finished());
        go.send(()).unwrap();
        assert_eq!(long.await.unwrap().unwrap(), 1);
        assert_eq!(same.await.unwrap().unwrap(), 3);
    }
}
