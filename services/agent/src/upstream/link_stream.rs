//! The stream of calls of a link.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::HeaderMap;
use parking_lot::Mutex;
use tokio::time::Instant;
use tripod_calls::{CallStream, Hello, Reason};
use tripod_dial::Shown;

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
    /// By its head, which counts for all of its calls.
    shown: Shown,
}

impl LinkStream {
    /// The stream, if the node takes calls by it now. Nobody waits for one: if there is none it is opened, for later calls.
    /// `ours` is what every call says, and `shown` who makes it.
    pub(super) fn ready(&self, wire: &Wire, ours: &HeaderMap, shown: &Shown) -> Option<CallStream> {
        let mut opened = self.opened.lock();
        if let Some(Opened { stream, at, shown: by }) = &*opened {
            match stream.end() {
                // Its token will run out. What waits by it goes on.
                None if by != shown => {}
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
            Ok(stream) => *opened = Some(Opened { stream, at: Instant::now(), shown: shown.clone() }),
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::HeaderValue;
    use tokio::io::duplex;
    use tokio::sync::mpsc;

    use super::super::wire::Reach;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn s26_a_token_that_takes_the_place_of_another_is_shown_by_a_stream_of_its_own() {
        let (near, far) = duplex(64 << 10);
        let (came, mut streams) = mpsc::unbounded_channel();
        let serving = tokio::spawn(async move {
            let mut connection = h2::server::handshake(far).await.expect("HTTP/2");
            // Each goes on, and none is answered.
            let mut open = Vec::new();
            while let Some(Ok((request, respond))) = connection.accept().await {
                came.send(request.uri().path().to_owned()).expect("heard");
                open.push((request, respond));
            }
        });
        let near = Mutex::new(Some(near));
        let dial = move |_: &str| Ok(near.lock().take().expect("it is dialled once"));
        let reach = Reach(Some(Arc::new(dial)));
        let wire = Wire::connect("node:7700", Duration::from_secs(5), &reach).await.expect("a connection");
        let (calls, ours) = (LinkStream::default(), HeaderMap::new());
        let first = Shown::from(HeaderValue::from_static("Bearer a"));
        let second = Shown::from(HeaderValue::from_static("Bearer b"));
        for (shown, opens) in [(&first, true), (&first, false), (&second, true), (&second, false)] {
            assert!(calls.ready(&wire, &ours, shown).is_none(), "no node has granted anything");
            let came = tokio::time::timeout(Duration::from_millis(500), streams.recv()).await;
            let path = came.ok().map(|came| came.expect("it is served"));
            assert_eq!(path.as_deref(), opens.then_some("/tripod.v1.Calls/Open"), "{shown:?}");
        }
        serving.abort();
    }
}
