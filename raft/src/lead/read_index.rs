//! Linearizable reads. A round confirms the leadership with a quorum and gives the index that a
//! reader must have applied. Everything that arrives before a round starts shares it.

use std::future::Future;

use tokio::sync::{mpsc, oneshot};
use tripod_state::ids::LogIndex;

use crate::base::error::ProposeError;

/// Readers that may wait for the next round.
const WAITING_MAX: usize = 65_536;
/// Readers that one round takes on.
const ROUND_MAX: usize = 16_384;

/// Rounds of linearizable reads.
pub(crate) type ReadRounds = Rounds<Result<LogIndex, ProposeError>>;

/// A queue of those who wait for a round, and the task that runs the rounds, one at a time. Clones share it.
#[derive(Debug)]
pub(crate) struct Rounds<T> {
    queue: mpsc::Sender<oneshot::Sender<T>>,
}

impl<T> Clone for Rounds<T> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone() }
    }
}

impl<T: Clone + Send + 'static> Rounds<T> {
    /// Rounds that call `round`. The task ends with the last clone.
    pub(crate) fn start<F, Fut>(round: F) -> Self
    where
        F: Fn() -> Fut + Send + 'static,
        Fut: Future<Output = T> + Send,
    {
        let (queue, mut waiting) = mpsc::channel::<oneshot::Sender<T>>(WAITING_MAX);
        tokio::spawn(async move {
            let mut readers = Vec::new();
            while waiting.recv_many(&mut readers, ROUND_MAX).await > 0 {
                readers.retain(|reader| !reader.is_closed());
                if readers.is_empty() {
                    continue;
                }
                let outcome = round().await;
                for reader in readers.drain(..) {
                    // A reader that gave up is no concern of the round.
                    let _ = reader.send(outcome.clone());
                }
            }
        });
        Self { queue }
    }

    /// Takes part in the next round. Whoever stops waiting cancels nothing.
    ///
    /// # Errors
    /// Too many wait, or the rounds have ended.
    pub(crate) async fn outcome(&self) -> Result<T, ProposeError> {
        let (reader, outcome) = oneshot::channel();
        self.queue.try_send(reader).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                ProposeError::Overloaded(format!("{WAITING_MAX} reads wait on this node"))
            }
            mpsc::error::TrySendError::Closed(_) => stopped(),
        })?;
        outcome.await.map_err(|_| stopped())
    }
}

impl ReadRounds {
    /// The index that the next round gives.
    ///
    /// # Errors
    /// As [`Rounds::outcome`], or the round's own.
    pub(crate) async fn join(&self) -> Result<LogIndex, ProposeError> {
        self.outcome().await?
    }
}

fn stopped() -> ProposeError {
    ProposeError::Stopped("reads have ended on this node".into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn readers_that_arrive_before_a_round_share_it() {
        let rounds = Arc::new(AtomicU64::new(0));
        let permits = Arc::new(Semaphore::new(0));
        let (counter, gate) = (rounds.clone(), permits.clone());
        let reads = ReadRounds::start(move || {
            let (counter, gate) = (counter.clone(), gate.clone());
            async move {
                let round = counter.fetch_add(1, Ordering::Relaxed);
                gate.acquire().await.expect("the gate stays open").forget();
                Ok(LogIndex(round))
            }
        });
        let first = tokio::spawn({
            let reads = reads.clone();
            async move { reads.join().await }
        });
        while rounds.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        let late =
            tokio::spawn(async move { futures::future::join_all((0..10).map(|_| reads.join())).await });
        tokio::task::yield_now().await;
        permits.add_permits(2);
        assert_eq!(first.await.unwrap(), Ok(LogIndex(0)));
        assert_eq!(late.await.unwrap(), vec![Ok(LogIndex(1)); 10]);
        assert_eq!(rounds.load(Ordering::Relaxed), 2);
    }
}
