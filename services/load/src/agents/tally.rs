//! How streams ended, what was sent again, and how heartbeats were told.

use std::sync::atomic::{AtomicU64, Ordering};

use tonic::Status;
use tripod_calls::{CallStream, Reason};

/// How HTTP/2 tells of a connection that the other side has ended by a GOAWAY.
const GOAWAY: &str = "connection error received";

/// What an agent heard before it gave its stream up.
#[derive(Debug)]
pub(super) enum GaveUp<'a> {
    /// The node said that it stops.
    Stopping,
    /// The stream has ended, or takes no more calls, perhaps because its transport has given up the request.
    Stream,
    /// Another call by the stream's connection had no answer, for this reason. When a connection breaks, its calls hear of it
    /// one after the other, so the stream may not have ended yet.
    Connection(&'a Status),
}

/// What befell the streams of all agents.
#[derive(Debug, Default)]
pub(super) struct Tally {
    sent_away: AtomicU64,
    broken: AtomicU64,
    again: AtomicU64,
    words: AtomicU64,
    in_words: AtomicU64,
    by_themselves: AtomicU64,
    leased: AtomicU64,
}

/// The same as figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Told {
    /// Streams that a living node ended: by a goodbye, or a GOAWAY.
    pub sent_away: u64,
    /// Streams that ended without a word, as when the node dies, or whose transport gave up before it was known why.
    pub broken: u64,
    /// Calls that were sent again.
    pub again: u64,
    /// Words that the leader took for the heartbeats of a set.
    pub words: u64,
    /// Heartbeats that were told so.
    pub in_words: u64,
    /// Heartbeats that were named.
    pub by_themselves: u64,
    /// Heartbeats that their agent answered, as the cluster was silent.
    pub leased: u64,
}

impl Tally {
    /// A stream is given up.
    pub(super) fn gave_up(&self, stream: &CallStream, heard: &GaveUp<'_>) {
        let is_sent_away = is_sent_away(stream.end().as_ref(), stream.has_goodbye(), heard);
        let counter = if is_sent_away { &self.sent_away } else { &self.broken };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn sent_again(&self) {
        self.again.fetch_add(1, Ordering::Relaxed);
    }

    /// The leader took a word for so many heartbeats.
    pub(super) fn told_in_a_word(&self, heartbeats: usize) {
        self.words.fetch_add(1, Ordering::Relaxed);
        self.in_words.fetch_add(u64::try_from(heartbeats).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The cluster has judged a heartbeat that was named.
    pub(super) fn told_by_itself(&self) {
        self.by_themselves.fetch_add(1, Ordering::Relaxed);
    }

    /// An agent has answered a heartbeat.
    pub(super) fn leased(&self) {
        self.leased.fetch_add(1, Ordering::Relaxed);
    }

    /// All so far.
    pub(super) fn told(&self) -> Told {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Told {
            sent_away: of(&self.sent_away),
            broken: of(&self.broken),
            again: of(&self.again),
            words: of(&self.words),
            in_words: of(&self.in_words),
            by_themselves: of(&self.by_themselves),
            leased: of(&self.leased),
        }
    }
}

impl Told {
    /// What has come since then.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            sent_away: self.sent_away - before.sent_away,
            broken: self.broken - before.broken,
            again: self.again - before.again,
            words: self.words - before.words,
            in_words: self.in_words - before.in_words,
            by_themselves: self.by_themselves - before.by_themselves,
            leased: self.leased - before.leased,
        }
    }
}

/// Whether a node that lives has ended the stream, or says that it will. `has_goodbye`: by the stream itself.
fn is_sent_away(end: Option<&Reason>, has_goodbye: bool, heard: &GaveUp<'_>) -> bool {
    match (end, heard) {
        _ if has_goodbye => true,
        (_, GaveUp::Stopping) => true,
        (Some(Reason::Broken(text)), _) => text.contains(GOAWAY),
        (None, GaveUp::Connection(status)) => root_cause(status).contains(GOAWAY),
        // The system closes the connections of a process that is killed, some of them in order; and a stream that takes no
        // more calls without a goodbye has lost its transport, and does not know yet why.
        _ => false,
    }
}

/// The outer texts of a transport only say that it is one.
fn root_cause(status: &Status) -> String {
    let Some(mut root) = std::error::Error::source(status) else { return status.message().to_owned() };
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use tonic::body::Body;
    use tonic::codegen::{Service, http};
    use tripod_calls::{CallOptions, Hello, Lost};

    use super::*;

    #[test]
    fn a_node_that_dies_sends_nobody_away() {
        let is_sent_away = |end: Option<Reason>, heard| is_sent_away(end.as_ref(), false, &heard);
        let broken = |text: &str| Some(Reason::Broken(text.into()));
        assert!(!is_sent_away(broken("Connection reset by peer (os error 104)"), GaveUp::Stream));
        assert!(is_sent_away(broken("connection error received: not a result of an error"), GaveUp::Stream));
        assert!(!is_sent_away(Some(Reason::Over), GaveUp::Stream));
        assert!(!is_sent_away(None, GaveUp::Stream), "its transport has given up the request");
        assert!(is_sent_away(None, GaveUp::Stopping));
        assert!(
            is_sent_away(broken("Connection reset by peer (os error 104)"), GaveUp::Stopping),
            "it said so"
        );
    }

    #[test]
    fn a_goodbye_is_one_whatever_became_of_the_stream_and_the_connection_after_it() {
        let status = |text: &str| Status::from_error(std::io::Error::other(text.to_owned()).into());
        let (reset, goaway) = (status("Connection reset by peer"), status("connection error received: x"));
        assert!(!is_sent_away(None, false, &GaveUp::Connection(&reset)), "it is dead");
        assert!(is_sent_away(None, false, &GaveUp::Connection(&goaway)));
        assert!(is_sent_away(None, true, &GaveUp::Connection(&reset)), "it had said goodbye before");
        for end in [None, Some(Reason::Over), Some(Reason::Broken("Connection reset by peer".into()))] {
            assert!(is_sent_away(end.as_ref(), true, &GaveUp::Stream), "{end:?}");
        }
    }

    /// The transport of a connection that breaks: what is to be sent is given up before anything comes back.
    struct GivesUp;

    impl Service<http::Request<Body>> for GivesUp {
        type Response = http::Response<Body>;
        type Error = Status;
        type Future = std::future::Pending<Result<http::Response<Body>, Status>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: http::Request<Body>) -> Self::Future {
            drop(request);
            std::future::pending()
        }
    }

    #[tokio::test]
    async fn a_stream_whose_transport_gave_up_is_not_taken_for_one_that_was_told_goodbye() {
        let stream = CallStream::open(GivesUp, &Hello::default()).expect("a hello");
        stream.left().await;
        let refused = stream.call("/a.B/C", Bytes::new(), &CallOptions::default()).await;
        assert_eq!(refused, Err(Lost::NotSent(Reason::Leaving)), "that is what an agent hears");
        let tally = Tally::default();
        tally.gave_up(&stream, &GaveUp::Stream);
        assert_eq!(tally.told(), Told { broken: 1, ..Told::default() });
    }
}
