//! What comes on a connection while the message before it is answered: by that it is seen when a client has gone.

use std::collections::VecDeque;
use std::future::pending;
use std::time::Duration;

use tokio::io::AsyncRead;
use tokio::time::sleep;
use tripod_port::Stopping;

use super::ended::Ended;
use super::incoming::{Incoming, Received};
use crate::wire::rpc0;

/// How long a message of a client that has gone may still be taken by the cluster. Longer than an election, and shorter than
/// any program takes to begin in the place of that one.
const LEFT_TIME: Duration = Duration::from_secs(3);
/// Messages that are read ahead. A worker waits for each answer, but to a write there is none.
const WAITING_MAX: usize = 16;

/// The frames of a connection, one after the other, some of which are here before their turn.
pub(crate) struct Ahead<R> {
    incoming: Incoming<R>,
    waiting: VecDeque<Received<rpc0::Frame>>,
    stopping: Stopping,
}

impl<R: AsyncRead + Unpin + Send> Ahead<R> {
    pub(crate) fn new(incoming: Incoming<R>, stopping: Stopping) -> Self {
        Self { incoming, waiting: VecDeque::new(), stopping }
    }

    /// As [`Incoming::next`].
    pub(crate) async fn next(&mut self) -> Result<Option<Received<rpc0::Frame>>, Ended> {
        if self.stopping.is_begun() {
            self.waiting.clear();
        }
        match self.waiting.pop_front() {
            Some(next) => Ok(Some(next)),
            None => self.incoming.next().await,
        }
    }

    /// Resolves when the client has been gone for a while. Of what comes nothing is lost if this is dropped; what is wrong with
    /// it is told when its turn has come.
    pub(crate) async fn left(&mut self) {
        while self.waiting.len() < WAITING_MAX {
            match self.incoming.next().await {
                Ok(Some(next)) => self.waiting.push_back(next),
                Ok(None) if !self.stopping.is_begun() => return sleep(LEFT_TIME).await,
                Err(Ended::Lost(_)) => return sleep(LEFT_TIME).await,
                Ok(None) | Err(_) => break,
            }
        }
        pending::<()>().await;
    }
}
