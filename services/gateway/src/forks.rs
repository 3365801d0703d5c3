//! Looks at the state that take long. They are taken of a fork, on a thread, so that apply does not wait for them.

use std::sync::Arc;

use tripod_port::CallerConnection;
use tripod_state::State;
use tripod_state::ids::LogIndex;

use crate::aside::aside;
use crate::backend::{Replica, look};
use crate::calls::Calls;
use crate::fairness::{self, TurnCounts, Turns};
use crate::outage::Outage;

/// How often the state is forked until no command is applied in between.
const FORK_TRIES_MAX: usize = 1_000;

/// The long looks of one node.
pub(crate) struct Forks {
    turns: Turns,
    calls: Arc<Calls>,
}

impl Forks {
    /// Who waits for a turn is one of the `calls` that wait on this node.
    pub(crate) fn new(calls: Arc<Calls>) -> Self {
        Self { turns: Turns::new(fairness::FORKS), calls }
    }

    /// What has become of those who had to wait.
    pub(crate) fn turns(&self) -> TurnCounts {
        self.turns.counts()
    }

    /// Looks at the state as it is when the turn comes, and at the last index in it.
    ///
    /// # Errors
    /// [`Outage::Overloaded`]: too many calls wait. [`Outage::Stopping`].
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        backend: &dyn Replica,
        at: impl FnOnce(LogIndex, &State) -> T + Send + 'static,
    ) -> Result<T, Outage> {
        let waiting = self.calls.enter()?;
        let turn = match self.turns.at_once(0) {
            Some(turn) => turn,
            // This node's own looks are those of one more caller.
            None => self.turns.wait(CallerConnection::current().unwrap_or_default(), 0).await,
        };
        drop(waiting);
        let (index, fork) = fork(backend).await?;
        let look = move || {
            let seen = at(index, &fork);
            // Here, and not by the caller: one that has gone must not make room for the next while its look goes on. And
            // to free what only the fork holds takes long as well.
            drop((fork, turn));
            seen
        };
        aside(look).await.ok_or(Outage::Stopping)
    }
}

/// A fork, and the last index in exactly that state.
async fn fork(backend: &dyn Replica) -> Result<(LogIndex, State), Outage> {
    for _ in 0..FORK_TRIES_MAX {
        let before = backend.applied_index();
        let fork = look(backend, State::clone);
        if backend.applied_index() == before {
            return Ok((before, fork));
        }
        tokio::task::yield_now().await;
    }
    Err(Outage::Overloaded("commands are applied too fast to look at the state between two".into()))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::memory::MemoryBackend;

    const WAITING_MAX: u64 = 3;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn f14_long_looks_are_two_at_a_time_also_of_callers_that_have_gone() {
        let calls = Calls::new(WAITING_MAX);
        let (backend, forks) = (MemoryBackend::new(), Arc::new(Forks::new(Arc::clone(&calls))));
        let (begun, seen) = mpsc::channel();
        let mut ends = Vec::new();
        let mut begin = || {
            let (end, until) = mpsc::channel::<()>();
            let (backend, forks, begun) = (Arc::clone(&backend), Arc::clone(&forks), begun.clone());
            ends.push(end);
            tokio::spawn(async move {
                let look = move |_, _: &State| {
                    begun.send(()).unwrap();
                    let _ended = until.recv();
                };
                forks.look(backend.as_ref(), look).await
            })
        };
        for _ in 0..fairness::FORKS.count {
            let gone = begin();
            tripod_wait::until("a look begins", || seen.try_recv().ok()).await;
            gone.abort();
            assert!(gone.await.is_err());
        }
        let waiting: Vec<_> = (0..WAITING_MAX).map(|_| begin()).collect();
        tripod_wait::until("the others wait", || (calls.waiting() == WAITING_MAX).then_some(())).await;
        let refused = forks.look(backend.as_ref(), |_, _| ()).await;
        assert!(matches!(refused, Err(Outage::Overloaded(_))), "{refused:?}");
        assert!(seen.try_recv().is_err(), "a third one began");
        drop(ends);
        for look in waiting {
            look.await.unwrap().unwrap();
        }
    }
}
