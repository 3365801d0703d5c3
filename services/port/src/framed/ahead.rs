//! What comes on a connection while the message before it is answered: by that it is seen when a client has gone, and what
//! that one wanted is given up.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::io;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::stop::Stopping;

/// How long after its client has gone something may still be done that is of no use without it. Longer than an election, and
/// shorter than any program takes to begin in the place of that one.
pub const LEFT_TIME: Duration = Duration::from_secs(3);
/// Messages that are read ahead; while so many wait it is not seen that their client has gone. A client whose question is not
/// answered may ask again on the same connection: every ten seconds that is 60 times in ten minutes, for which a message is
/// held at most. As many again are for what has no answer to wait for.
const WAITING_MAX: usize = 128;
/// The same in bytes, which are counted like all others: what clients leave for each other is short, and what is sent on must
/// have room beside what waits.
const WAITING_BYTES_MAX: u64 = 1 << 20;

/// Where the messages of one connection come from.
pub trait Messages<M> {
    /// Why nothing more comes.
    type Error;

    /// The next message. `None`: the client ends between two, or the port stops before it has come. If this is dropped, what
    /// has come of a message is there for the next call.
    fn message(&mut self) -> impl Future<Output = Result<Option<M>, Self::Error>> + Send;

    /// Bytes that are held for a message.
    fn bytes(message: &M) -> u64;

    /// How long after its client has gone a message is given up; `None`: never.
    ///
    /// # Errors
    /// What is in it cannot be read, so that its connection ends.
    fn patience(message: &M) -> Result<Option<Duration>, Self::Error>;

    /// What the connection itself says, if that is why nothing more comes: it is lost, or a message did not come whole in time.
    fn broken(error: &Self::Error) -> Option<&io::Error>;
}

/// The messages of a connection, one after the other, some of which are here before their turn.
#[derive(Debug)]
pub struct Ahead<I, M> {
    incoming: I,
    waiting: VecDeque<M>,
    /// Since when the client is known to have gone.
    gone: Option<Instant>,
    stopping: Stopping,
}

impl<I: Messages<M>, M> Ahead<I, M> {
    #[must_use]
    pub fn new(incoming: I, stopping: Stopping) -> Self {
        Self { incoming, waiting: VecDeque::new(), gone: None, stopping }
    }

    /// As [`Messages::message`], without what is to be given up.
    ///
    /// # Errors
    /// As [`Messages::message`] and [`Messages::patience`].
    pub async fn next(&mut self) -> Result<Option<M>, I::Error> {
        if self.stopping.is_begun() {
            self.waiting.clear();
        }
        loop {
            let next = match self.waiting.pop_front() {
                Some(next) => Some(next),
                None => self.incoming.message().await?,
            };
            let Some(next) = next else { return Ok(None) };
            let patience = I::patience(&next)?;
            if self.gone.zip(patience).is_none_or(|(gone, patience)| gone.elapsed() < patience) {
                return Ok(Some(next));
            }
        }
    }

    /// The client does not take its answers any more. What it has said before is here, or still comes.
    pub fn lost(&mut self) {
        self.gone.get_or_insert_with(Instant::now);
    }

    /// Resolves when the client has been gone for so long. Of what comes nothing is lost if this is dropped; what is wrong with
    /// it is told when its turn has come.
    pub async fn left(&mut self, patience: Option<Duration>) {
        let gone = self.until_gone().await;
        match patience {
            Some(patience) => sleep_until(gone + patience).await,
            None => pending().await,
        }
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
            match self.incoming.message().await {
                Ok(Some(next)) => self.waiting.push_back(next),
                Ok(None) if !self.stopping.is_begun() => self.gone = Some(Instant::now()),
                Ok(None) => return pending().await,
                Err(error) => match I::broken(&error) {
                    // It lives, and has the time anew: its message does not have its turn yet.
                    Some(broken) if is_slow(broken) => {}
                    Some(_) => self.gone = Some(Instant::now()),
                    None => return pending().await,
                },
            }
        }
    }

    fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
            || self.waiting.iter().map(I::bytes).sum::<u64>() >= WAITING_BYTES_MAX
    }
}

/// Whether the port would not wait for the rest of a message any longer. That a machine is lost says the system.
#[must_use]
pub fn is_slow(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut && error.raw_os_error().is_none()
}

#[cfg(test)]
#[path = "ahead_test.rs"]
mod tests;
