//! The agent's side of exactly once: sessions of the cluster, each used by one call at a time.
//!
//! A call keeps its session, however long it is held, until it is answered or its client has gone; so no
//! call ever has to wait for another one's reply to be acknowledged. The number of a call whose client
//! has gone is used up: a copy of it that is still on its way is refused once the session's next call has
//! been seen.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::HeaderValue;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;
use tripod_port::CallerConnection;
use tripod_proto::tripod::v1::OpenSessionRequest;
use tripod_proto::tripod::v1::sessions_client::SessionsClient;
use tripod_proto::wide;

use crate::upstream::{Upstream, Wire};

/// Sessions at a time, besides those that each connection has. A call beyond waits for a free one.
pub(crate) const SESSIONS_MAX: usize = 4096;
/// Sessions that each connection has, however many the others use: a client has some ten calls open at most.
pub(crate) const OWN_SESSIONS: usize = 10;

/// A session of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SessionId(u128);

/// Number of a command in its session, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sequence(u64);

/// A session and the number that its next call gets.
#[derive(Debug)]
struct SessionSlot {
    session: SessionId,
    next: Sequence,
}

/// All sessions of an agent.
#[derive(Debug)]
pub(crate) struct Sessions {
    upstream: Upstream,
    /// The one that was used last is used next, so that those beyond need stay idle, and the cluster
    /// forgets them.
    idle: Mutex<Vec<SessionSlot>>,
    open: AtomicUsize,
    free: Arc<Semaphore>,
    own: Mutex<HashMap<CallerConnection, Own>>,
    own_sessions: usize,
}

/// The sessions that a connection has, as long as it has calls.
#[derive(Debug)]
struct Own {
    free: Arc<Semaphore>,
    calls: usize,
}

/// One call of a connection.
#[derive(Debug)]
struct Guest {
    sessions: Arc<Sessions>,
    caller: CallerConnection,
}

/// What makes an attempt the same as the one before: all attempts of one call carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    session: SessionId,
    sequence: Sequence,
}

impl fmt::Display for Stamp {
    /// The session has no other call, so everything below this one is acknowledged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session: SessionId(session), sequence: Sequence(sequence) } = self;
        write!(f, "{session}.{sequence}.{sequence}")
    }
}

impl Stamp {
    /// The same as it goes with a frame of MindSpore.
    pub(crate) fn of_frame(self) -> tripod_mindspore_wire::Stamp {
        let Self { session: SessionId(session), sequence: Sequence(sequence) } = self;
        tripod_mindspore_wire::Stamp { session, sequence, acknowledged_below: sequence }
    }

    pub(crate) fn header(self) -> HeaderValue {
        HeaderValue::from_str(&self.to_string()).expect("digits and dots")
    }
}

/// A session in use.
#[derive(Debug)]
pub(crate) struct Flight {
    sessions: Arc<Sessions>,
    stamp: Stamp,
    is_lost: bool,
    _permit: OwnedSemaphorePermit,
    _guest: Guest,
}

impl Sessions {
    /// `max` for all together, and so many of its own for each connection.
    pub(crate) fn new(upstream: Upstream, max: usize, own_sessions: usize) -> Arc<Self> {
        Arc::new(Self {
            upstream,
            idle: Mutex::default(),
            open: AtomicUsize::new(0),
            free: Arc::new(Semaphore::new(max)),
            own: Mutex::default(),
            own_sessions,
        })
    }

    /// A session for one call of this connection: a free one, or a new one. Waits while there are as many as there may
    /// be.
    ///
    /// # Errors
    /// The cluster's refusal to open another session.
    pub(crate) async fn take(self: &Arc<Self>, caller: CallerConnection) -> Result<Flight, Status> {
        let (guest, own) = self.enter(caller);
        let permit = tokio::select! {
            biased;
            permit = own.acquire_owned() => permit,
            permit = Arc::clone(&self.free).acquire_owned() => permit,
        };
        let permit = permit.expect("never closed");
        let idle = self.idle.lock().pop();
        let slot = match idle {
            Some(slot) => slot,
            None => self.open_session().await?,
        };
        let stamp = Stamp { session: slot.session, sequence: slot.next };
        Ok(Flight { sessions: Arc::clone(self), stamp, is_lost: false, _permit: permit, _guest: guest })
    }

    /// Counts a call, and gives the sessions of its connection.
    fn enter(self: &Arc<Self>, caller: CallerConnection) -> (Guest, Arc<Semaphore>) {
        let mut connections = self.own.lock();
        let own = connections
            .entry(caller)
            .or_insert_with(|| Own { free: Arc::new(Semaphore::new(self.own_sessions)), calls: 0 });
        own.calls += 1;
        (Guest { sessions: Arc::clone(self), caller }, Arc::clone(&own.free))
    }

    /// How many sessions are open, as far as is known here.
    pub(crate) fn count(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// If the answer is lost, another session is opened; the first is found idle by the cluster.
    async fn open_session(&self) -> Result<SessionSlot, Status> {
        let open = |wire: Wire| async move {
            SessionsClient::new(wire).open(OpenSessionRequest { wide: true }).await
        };
        let opened = self.upstream.ask("session open", open).await?;
        self.open.fetch_add(1, Ordering::Relaxed);
        let session = SessionId(wide::join(opened.session, opened.session_high));
        Ok(SessionSlot { session, next: Sequence(1) })
    }

    fn put_back(&self, slot: SessionSlot) {
        self.idle.lock().push(slot);
    }

    /// The idle sessions were used less recently than the lost one, so they are gone as well.
    fn lost(&self) {
        let gone = self.idle.lock().drain(..).count() + 1;
        self.open.fetch_sub(gone, Ordering::Relaxed);
        tracing::info!(sessions = gone, "sessions expired");
    }
}

impl Flight {
    pub(crate) fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// The cluster does not know the session any more.
    pub(crate) fn lost(mut self) {
        self.is_lost = true;
        self.sessions.lost();
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut connections = self.sessions.own.lock();
        if let Some(own) = connections.get_mut(&self.caller) {
            own.calls -= 1;
            if own.calls == 0 {
                connections.remove(&self.caller);
            }
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if !self.is_lost {
            let next = Sequence(self.stamp.sequence.0 + 1);
            self.sessions.put_back(SessionSlot { session: self.stamp.session, next });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tripod_port::CallerAddress;

    use super::*;
    use crate::config::Timing;
    use crate::upstream::Reach;

    /// Sessions that need no cluster.
    fn sessions(ids: &[u128], max: usize, own: usize) -> Arc<Sessions> {
        let (upstream, _) = Upstream::new(vec!["127.0.0.1:1".into()], Timing::default(), Reach::default());
        let sessions = Sessions::new(upstream, max, own);
        for session in ids {
            sessions.put_back(SessionSlot { session: SessionId(*session), next: Sequence(1) });
            sessions.open.fetch_add(1, Ordering::Relaxed);
        }
        sessions
    }

    fn one() -> CallerConnection {
        CallerConnection::default()
    }

    #[tokio::test]
    async fn a_session_is_used_again_with_the_next_number_and_the_last_used_first() {
        let sessions = sessions(&[7, 8], 2, 0);
        let first = sessions.take(one()).await.expect("idle");
        assert_eq!(first.stamp().to_string(), "8.1.1");
        let second = sessions.take(one()).await.expect("idle");
        assert_eq!(second.stamp().to_string(), "7.1.1");
        drop(second);
        drop(first);
        assert_eq!(sessions.take(one()).await.expect("idle").stamp().to_string(), "8.2.2");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_beyond_the_bound_waits_for_a_free_session() {
        let sessions = sessions(&[7], 1, 0);
        let first = sessions.take(one()).await.expect("idle");
        let mut second = Box::pin(sessions.take(one()));
        assert!(tokio::time::timeout(Duration::from_secs(60), &mut second).await.is_err());
        drop(first);
        assert_eq!(second.await.expect("free again").stamp().to_string(), "7.2.2");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_uses_all_sessions_leaves_others_their_own() {
        let sessions = sessions(&[1, 2, 3, 4], 2, 1);
        let mut greedy = Vec::new();
        for _ in 0..3 {
            greedy.push(sessions.take(one()).await.expect("idle"));
        }
        let waits = tokio::time::timeout(Duration::from_secs(60), sessions.take(one())).await;
        assert!(waits.is_err(), "its own session and the common ones are in use");
        let other = CallerConnection::from(CallerAddress::default());
        let taken = sessions.take(other).await.expect("idle");
        assert_eq!(taken.stamp().to_string(), "1.1.1");
        drop((greedy, taken));
        assert!(sessions.own.lock().is_empty(), "nothing is kept of who has no calls");
    }

    #[tokio::test]
    async fn with_a_lost_session_go_those_that_were_used_less_recently() {
        let sessions = sessions(&[1, 2, 3], 3, 0);
        sessions.take(one()).await.expect("idle").lost();
        assert_eq!((sessions.count(), sessions.idle.lock().len()), (0, 0));
    }
}
