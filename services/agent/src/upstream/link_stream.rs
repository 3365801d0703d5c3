//! The stream of calls of a link.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::HeaderMap;
use parking_lot::Mutex;
use tokio::time::Instant;
use tripod_calls::{CallStream, Hello, Reason};

use super::wire::Wire;

/// A stream that ended before its connection is opened again so long after it was opened, and calls go by themselves until
/// then: what ended it may come again.
const REOPEN_AFTER: Duration = Duration::from_secs(10);

/// A stream that is opened when it is first wanted.
#[derive(Debug, Default)]
pub(super) struct LinkStream {
    opened: Mutex<Option<Opened>>,
    is_goodbye_told: AtomicBool,
}

#[derive(Debug)]
struct Opened {
    stream: CallStream,
    at: Instant,
}

impl LinkStream {
    /// The stream, if the node takes calls by it now. Nobody waits for one: if there is none it is opened, for later calls.
    /// `ours` is what every call says.
    pub(super) fn ready(&self, wire: &Wire, ours: &HeaderMap) -> Option<CallStream> {
        let mut opened = self.opened.lock();
        if let Some(Opened { stream, at }) = &*opened {
            match stream.end() {
                None => return (stream.is_open() && stream.is_ready()).then(|| stream.clone()),
                // An older node, or one that stops.
                Some(Reason::NotServed | Reason::Over) => return None,
                Some(_) if at.elapsed() < REOPEN_AFTER => return None,
                Some(_) => {}
            }
        }
        // The session is in the stamp of each call: there may be several, and one that is gone must not take the stream along.
        let hello = Hello { metadata: ours.clone(), session: None };
        match CallStream::open(wire.clone(), &hello) {
            Ok(stream) => *opened = Some(Opened { stream, at: Instant::now() }),
            Err(lost) => tracing::debug!(%lost, "no stream of calls"),
        }
        None
    }

    /// Whether the node has said that it stops, or has ended the stream in order. It is told once. A stream whose transport has
    /// given up says nothing of the node: whatever is called next hears what became of the connection.
    pub(super) fn takes_leave(&self) -> bool {
        let opened = self.opened.lock();
        let Some(Opened { stream, .. }) = &*opened else { return false };
        let takes_leave = stream.has_goodbye() || matches!(stream.end(), Some(Reason::Over));
        takes_leave && !self.is_goodbye_told.swap(true, Ordering::Relaxed)
    }
}
