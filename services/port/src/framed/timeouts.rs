//! How long a client may take over its messages.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};
use tokio::time::timeout;
use tripod_proto::code::Code;

use crate::caller_address::CallerAddress;
use crate::throttle::Throttle;

/// How long the clients of a framed protocol may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until anything of a new connection has come.
    pub begin: Duration,
    /// From a message's first byte until its last.
    pub message: Duration,
    /// From the moment when the next message is waited for until its first byte; `None`: as long as it likes.
    pub idle: Option<Duration>,
}

impl Default for Timeouts {
    /// Clients of gRPC have as long to begin, and the rest of their requests as long to come when memory is short. A program
    /// may rest for the life of its job.
    fn default() -> Self {
        Self { begin: Duration::from_secs(5), message: Duration::from_secs(30), idle: None }
    }
}

/// Holds the client of one connection to the [`Timeouts`] of its protocol: a front end waits for each message by
/// [`Self::begun`], and reads it by [`Self::whole`]. The time while it answers counts for nobody.
///
/// What has come is read before the time is looked at, so a pause of this process ends no connection.
#[derive(Debug, Clone)]
pub struct Deadlines {
    timeouts: Timeouts,
    peer: CallerAddress,
    /// Clients of the port that did not finish a message.
    unfinished: Arc<Throttle>,
}

impl Deadlines {
    pub(super) fn new(timeouts: Timeouts, peer: CallerAddress, unfinished: Arc<Throttle>) -> Self {
        Self { timeouts, peer, unfinished }
    }

    /// Waits for the first byte of a message, which stays in `reader`. `false`: the client has ended. Nothing is lost if this
    /// is dropped.
    ///
    /// # Errors
    /// The reader's; [`io::ErrorKind::TimedOut`] if the client was idle for too long.
    pub async fn begun(&self, reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<bool> {
        let first = async { Ok(!reader.fill_buf().await?.is_empty()) };
        let Some(idle) = self.timeouts.idle else { return first.await };
        timeout(idle, first).await.unwrap_or_else(|_| {
            let seconds = idle.as_secs();
            Err(io::Error::new(io::ErrorKind::TimedOut, format!("the client said nothing for {seconds} s")))
        })
    }

    /// Reads a message that has begun.
    ///
    /// # Errors
    /// Those of `reading`; [`io::ErrorKind::TimedOut`], with a code, if the message did not come whole in time. What was read
    /// of it is lost, and the connection is to be closed.
    pub async fn whole<T>(&self, reading: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        timeout(self.timeouts.message, reading).await.unwrap_or_else(|_| Err(self.unfinished()))
    }

    fn unfinished(&self) -> io::Error {
        let (code, seconds) = (Code::LeftUnfinished, self.timeouts.message.as_secs());
        let text = format!("{code}: the rest of a message did not come within {seconds} s");
        if let Some(count) = self.unfinished.note() {
            let client = self.peer.0.map(tracing::field::display);
            tracing::warn!(client, count, "{text}: its connection ends");
        }
        io::Error::new(io::ErrorKind::TimedOut, text)
    }
}
