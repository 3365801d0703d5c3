//! What comes on a connection while the message before it is answered: by that it is seen when a client has gone, and what
//! that one wanted of an entry, or of a place in the cluster, is given up.

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::time::Duration;

use tokio::io::AsyncRead;
use tokio::time::{Instant, sleep_until};
use tripod_port::{Charge, Stopping};

use super::ended::Ended;
use super::incoming::{Incoming, Received};
use crate::topology::ends_with_client;
use crate::wire::rpc0;

/// How long after its client has gone a registration, or a change of an entry, may still be taken by the cluster. Longer than
/// an election, and shorter than any program takes to begin in the place of that one.
pub(crate) const LEFT_TIME: Duration = Duration::from_secs(3);
/// Messages that are read ahead; while so many wait it is not seen that their client has gone. A worker whose question is not
/// answered asks again on the same connection after 10 s, which is 60 times in the ten minutes for which a message is held.
/// As many again are for what has no answer to wait for.
const WAITING_MAX: usize = 128;
/// The same in bytes, which are counted like all others: workers leave addresses and ids for each other.
const WAITING_BYTES_MAX: u64 = 1 << 20;

/// The frames of a connection, one after the other, some of which are here before their turn.
pub(crate) struct Ahead<R> {
    incoming: Incoming<R>,
    waiting: VecDeque<Received<rpc0::Frame>>,
    /// Since when the client is known to have gone.
    gone: Option<Instant>,
    stopping: Stopping,
}

impl<R: AsyncRead + Unpin + Send> Ahead<R> {
    pub(crate) fn new(incoming: Incoming<R>, stopping: Stopping) -> Self {
        Self { incoming, waiting: VecDeque::new(), gone: None, stopping }
    }

    /// As [`Incoming::next`], without what is to be given up.
    pub(crate) async fn next(&mut self) -> Result<Option<Received<rpc0::Frame>>, Ended> {
        if self.stopping.is_begun() {
            self.waiting.clear();
        }
        loop {
            let next = match self.waiting.pop_front() {
                Some(next) => Some(next),
                None => self.incoming.next().await?,
            };
            match next {
                Some(next) if self.has_left() && ends_with_client(&next.frame) => {}
                next => return Ok(next),
            }
        }
    }

    /// The client does not take its answers any more. What it has said before is here, or still comes.
    pub(crate) fn lost(&mut self) {
        self.gone.get_or_insert_with(Instant::now);
    }

    /// Resolves when `asked`, which is being answered, is to be given up: its client has been gone for a while, and it is of
    /// no use without. Of what comes nothing is lost if this is dropped; what is wrong with it is told when its turn has come.
    pub(crate) async fn left(&mut self, asked: &rpc0::Frame) {
        let gone = self.until_gone().await;
        if !ends_with_client(asked) {
            pending::<()>().await;
        }
        sleep_until(gone + LEFT_TIME).await;
    }

    /// Reads ahead until the client has gone. Since when it has.
    async fn until_gone(&mut self) -> Instant {
        loop {
            if let Some(gone) = self.gone {
                return gone;
            }
            if self.is_full() {
                return pending().await;
            }
            match self.incoming.next().await {
                Ok(Some(next)) => self.waiting.push_back(next),
                Ok(None) if !self.stopping.is_begun() => self.gone = Some(Instant::now()),
                // It lives, and has the time anew: its message does not have its turn yet.
                Err(Ended::Lost(error)) if is_slow(&error) => {}
                Err(Ended::Lost(_)) => self.gone = Some(Instant::now()),
                Ok(None) | Err(_) => return pending().await,
            }
        }
    }

    fn is_full(&self) -> bool {
        let bytes =
            self.waiting.iter().map(|Received { _held: held, .. }| held.as_ref().map_or(0, Charge::bytes));
        self.waiting.len() >= WAITING_MAX || bytes.sum::<u64>() >= WAITING_BYTES_MAX
    }

    fn has_left(&self) -> bool {
        self.gone.is_some_and(|gone| gone.elapsed() >= LEFT_TIME)
    }
}

/// Whether the port would not wait for the rest of a message any longer. That a machine is lost says the system.
pub(crate) fn is_slow(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut && error.raw_os_error().is_none()
}
