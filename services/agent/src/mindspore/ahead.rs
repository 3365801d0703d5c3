//! What comes on a client's connection while the frame before it is answered: by that it is seen when the client has gone, and
//! what it wanted is given up. A node does the same for the clients of its own port (`services/mindspore/src/connection/ahead.rs`).

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::time::Duration;

use tokio::io::AsyncRead;
use tokio::time::{Instant, sleep_until};
use tripod_mindspore_wire::Broken;
use tripod_port::{Charge, Stopping};

use super::ended::Ended;
use super::incoming::{Held, Incoming};
use super::passed::Passed;
use crate::calls::Repeat;

/// How long after its client has gone a registration, or a change of an entry, is still sent, as nodes have it: longer than an
/// election, and shorter than any program takes to begin in the place of that one.
const LEFT_TIME: Duration = Duration::from_secs(3);
/// Frames that are read ahead, as nodes have it; while so many wait it is not seen that their client has gone.
const WAITING_MAX: usize = 128;
/// The same in bytes: what is sent again must have room beside what waits.
const WAITING_BYTES_MAX: u64 = 1 << 20;

/// The frames of a connection, one after the other, some of which are here before their turn.
pub(super) struct Ahead<R, F> {
    incoming: Incoming<R>,
    waiting: VecDeque<Held<F>>,
    /// Since when the client is known to have gone.
    gone: Option<Instant>,
    stopping: Stopping,
}

/// How long after its client has gone a frame is given up; `None`: never. What changes something is finished, as a node would
/// that has it already. What a client only wanted to know is not, nor a registration or a change of an entry: the process that
/// comes in its place may have registered or written since.
///
/// # Errors
/// A node could not read it.
pub(super) fn patience(frame: &impl Passed) -> Result<Option<Duration>, Broken> {
    Ok(match frame.repeat()? {
        _ if frame.ends_with_client() => Some(LEFT_TIME),
        Repeat::Free => Some(Duration::ZERO),
        Repeat::Stamped | Repeat::Recognised => None,
    })
}

impl<R: AsyncRead + Unpin + Send, F: Passed> Ahead<R, F> {
    pub(super) fn new(incoming: Incoming<R>, stopping: Stopping) -> Self {
        Self { incoming, waiting: VecDeque::new(), gone: None, stopping }
    }

    /// As [`Incoming::next`], without what is to be given up.
    pub(super) async fn next(&mut self) -> Result<Option<Held<F>>, Ended> {
        if self.stopping.is_begun() {
            self.waiting.clear();
        }
        loop {
            let next = match self.waiting.pop_front() {
                Some(next) => Some(next),
                None => self.incoming.next().await?,
            };
            let Some(next) = next else { return Ok(None) };
            let patience = patience(&next.inner)?;
            if self.gone.zip(patience).is_none_or(|(gone, patience)| gone.elapsed() < patience) {
                return Ok(Some(next));
            }
        }
    }

    /// The client does not take its answers any more. What it has said before is here, or still comes.
    pub(super) fn lost(&mut self) {
        self.gone.get_or_insert_with(Instant::now);
    }

    /// Resolves when the client has been gone for so long. Of what comes nothing is lost if this is dropped; what is wrong with
    /// it is told when its turn has come.
    pub(super) async fn left(&mut self, patience: Option<Duration>) {
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
            match self.incoming.next().await {
                Ok(Some(next)) => self.waiting.push_back(next),
                Ok(None) if !self.stopping.is_begun() => self.gone = Some(Instant::now()),
                // It lives, and has the time anew: its frame does not have its turn yet.
                Err(Ended::Lost(error)) if is_slow(&error) => {}
                Err(Ended::Lost(_)) => self.gone = Some(Instant::now()),
                Ok(None) | Err(_) => return pending().await,
            }
        }
    }

    fn is_full(&self) -> bool {
        let bytes =
            self.waiting.iter().map(|Held { _held: held, .. }| held.as_ref().map_or(0, Charge::bytes));
        self.waiting.len() >= WAITING_MAX || bytes.sum::<u64>() >= WAITING_BYTES_MAX
    }
}

/// Whether the port would not wait for the rest of a frame any longer. That a machine is lost says the system.
fn is_slow(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut && error.raw_os_error().is_none()
}
