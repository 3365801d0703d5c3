//! Looks at the state that take long. They are taken of a fork, on a thread, so that apply does not wait for them.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Semaphore;
use tripod_state::State;
use tripod_state::ids::LogIndex;

use crate::aside::aside;
use crate::backend::{Backend, look};
use crate::outage::Outage;

/// Long looks at a time: each takes a processor, and keeps what is replaced meanwhile in memory.
const FORKS_MAX: usize = 2;
/// Those that wait for their turn; a look at the largest job takes less than a second.
const WAITING_MAX: usize = 64;
/// How often the state is forked until no command is applied in between.
const FORK_TRIES_MAX: usize = 1_000;

/// The long looks of one node.
pub(crate) struct Forks {
    places: Semaphore,
    waiting: AtomicUsize,
}

/// One look that waits for its turn.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Forks {
    pub(crate) fn new() -> Self {
        Self { places: Semaphore::new(FORKS_MAX), waiting: AtomicUsize::new(0) }
    }

    /// Looks at the state as it is when the turn comes, and at the last index in it.
    ///
    /// # Errors
    /// [`Outage::Overloaded`]: too many wait. [`Outage::Stopping`].
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        backend: &dyn Backend,
        at: impl FnOnce(LogIndex, &State) -> T + Send + 'static,
    ) -> Result<T, Outage> {
        let waiting = Waiting(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING_MAX {
            return Err(Outage::Overloaded(format!(
                "{WAITING_MAX} long looks at the state wait on this node"
            )));
        }
        let _place = self.places.acquire().await.map_err(|_| Outage::Stopping)?;
        drop(waiting);
        let (index, fork) = fork(backend).await?;
        // The fork is dropped there, too: to free what only it holds takes long as well.
        aside(move || at(index, &fork)).await.ok_or(Outage::Stopping)
    }
}

/// A fork, and the last index in exactly that state.
async fn fork(backend: &dyn Backend) -> Result<(LogIndex, State), Outage> {
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
    use std::sync::Arc;
    use std::sync::mpsc;

    use super::*;
    use crate::memory::MemoryBackend;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn f14_long_looks_are_two_at_a_time_and_a_bounded_number_waits() {
        let (backend, forks) = (MemoryBackend::new(), Arc::new(Forks::new()));
        let (begun, seen) = mpsc::channel();
        let mut looks = Vec::new();
        let mut ends = Vec::new();
        for _ in 0..FORKS_MAX + WAITING_MAX {
            let (end, until) = mpsc::channel::<()>();
            let (backend, forks, begun) = (Arc::clone(&backend), Arc::clone(&forks), begun.clone());
            looks.push(tokio::spawn(async move {
                let look = move |_, _: &State| {
                    begun.send(()).unwrap();
                    let _ended = until.recv();
                };
                forks.look(backend.as_ref(), look).await
            }));
            ends.push(end);
        }
        let waiting = || (forks.waiting.load(Ordering::Relaxed) == WAITING_MAX).then_some(());
        tripod_wait::until("two look and the others wait", waiting).await;
        let refused = forks.look(backend.as_ref(), |_, _| ()).await;
        assert!(matches!(refused, Err(Outage::Overloaded(_))), "{refused:?}");
        tripod_wait::until("two have begun", || seen.try_recv().ok()).await;
        tripod_wait::until("two have begun", || seen.try_recv().ok()).await;
        assert!(seen.try_recv().is_err(), "a third one began");
        drop(ends);
        for look in looks {
            look.await.unwrap().unwrap();
        }
    }
}
