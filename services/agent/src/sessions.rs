//! The agent's side of exactly once: a session of the cluster, in which every call that changes something has a number.
//!
//! A number is out until its call is answered or its client has gone; the lowest that is out is told with each call, and the
//! cluster forgets the replies below. The number of a call whose client has gone is used up: a copy of it that is still on its
//! way is refused once a later call has told so. Calls that wait for others would keep that from being told, so they have a
//! session of their own. One that is held long keeps its numbers from going on for ever: when the span is used up the next
//! calls have another session, and the one before is left to what is held in it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use http::HeaderValue;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;
use tripod_port::CallerConnection;
use tripod_proto::tripod::v1::OpenSessionRequest;
use tripod_proto::tripod::v1::sessions_client::SessionsClient;
use tripod_proto::wide;

use crate::calls::Kind;
use crate::numbers::{Numbers, SPAN_MAX, Taken};
use crate::upstream::{Upstream, Wire};

/// Numbers that are out at a time, besides those that each connection has. A call beyond waits for another one's end.
///
/// There are never more sessions than that, those of connections included, and one for each [`Pace`]: one is left only while a
/// call is held in it. Usually there are three, as a client polls for as long as it lives.
pub(crate) const NUMBERS_MAX: usize = 4096;
/// Numbers that each connection has, however many the others use: a client has some ten calls open at most.
pub(crate) const OWN_NUMBERS: usize = 10;

/// A session of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SessionId(u128);

/// How soon a call is answered. Calls of one pace share a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// As soon as the cluster can.
    Prompt,
    /// It waits for others, for days perhaps.
    Held,
}

/// A session and its numbers.
#[derive(Debug)]
struct Session {
    id: SessionId,
    pace: Pace,
    numbers: Numbers,
}

/// All sessions of an agent.
#[derive(Debug)]
pub(crate) struct Sessions {
    upstream: Upstream,
    /// The last one of each pace is in use; numbers are out of all the others.
    open: Mutex<Vec<Session>>,
    /// Held while another session is opened, so that those who wait for one wait for the same.
    opening: tokio::sync::Mutex<()>,
    span_max: usize,
    free: Arc<Semaphore>,
    own: Mutex<HashMap<CallerConnection, Own>>,
    own_numbers: usize,
}

/// The numbers that a connection has, as long as it has calls.
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
    taken: Taken,
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session: SessionId(session), taken } = self;
        write!(f, "{session}.{}.{}", taken.sequence.0, taken.acknowledged_below.0)
    }
}

impl Pace {
    pub(crate) fn of(kind: Kind) -> Self {
        if kind.is_held() { Self::Held } else { Self::Prompt }
    }
}

impl Stamp {
    /// The same as it goes with a frame of MindSpore.
    pub(crate) fn of_frame(self) -> tripod_mindspore_wire::Stamp {
        let Self { session: SessionId(session), taken } = self;
        tripod_mindspore_wire::Stamp {
            session,
            sequence: taken.sequence.0,
            acknowledged_below: taken.acknowledged_below.0,
        }
    }

    pub(crate) fn header(self) -> HeaderValue {
        HeaderValue::from_str(&self.to_string()).expect("digits and dots")
    }
}

/// A number that is out.
#[derive(Debug)]
pub(crate) struct Flight {
    sessions: Arc<Sessions>,
    stamp: Stamp,
    _permit: OwnedSemaphorePermit,
    _guest: Guest,
}

impl Sessions {
    pub(crate) fn new(upstream: Upstream) -> Arc<Self> {
        Self::bounded(upstream, SPAN_MAX, NUMBERS_MAX, OWN_NUMBERS)
    }

    /// So many numbers for all together, and so many of its own for each connection.
    fn bounded(upstream: Upstream, span_max: usize, max: usize, own_numbers: usize) -> Arc<Self> {
        Arc::new(Self {
            upstream,
            open: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            span_max,
            free: Arc::new(Semaphore::new(max)),
            own: Mutex::default(),
            own_numbers,
        })
    }

    /// A number for one call of this connection. Waits while there are as many out as may be.
    ///
    /// # Errors
    /// The cluster's refusal to open another session.
    pub(crate) async fn take(
        self: &Arc<Self>,
        caller: CallerConnection,
        pace: Pace,
    ) -> Result<Flight, Status> {
        let (guest, own) = self.enter(caller);
        let permit = tokio::select! {
            biased;
            permit = own.acquire_owned() => permit,
            permit = Arc::clone(&self.free).acquire_owned() => permit,
        };
        let permit = permit.expect("never closed");
        let stamp = match self.begin(pace) {
            Some(stamp) => stamp,
            // Boxed, as it is seldom: every call that waits would be as large as this.
            None => Box::pin(self.begin_in_another(pace)).await?,
        };
        Ok(Flight { sessions: Arc::clone(self), stamp, _permit: permit, _guest: guest })
    }

    /// Counts a call, and gives the numbers of its connection.
    fn enter(self: &Arc<Self>, caller: CallerConnection) -> (Guest, Arc<Semaphore>) {
        let mut connections = self.own.lock();
        let own = connections
            .entry(caller)
            .or_insert_with(|| Own { free: Arc::new(Semaphore::new(self.own_numbers)), calls: 0 });
        own.calls += 1;
        (Guest { sessions: Arc::clone(self), caller }, Arc::clone(&own.free))
    }

    /// The next number of the session in use, or of another one that can go on; `None` if none can.
    fn begin(&self, pace: Pace) -> Option<Stamp> {
        let mut open = self.open.lock();
        let mut of_pace = open.iter_mut().enumerate().rev().filter(|(_, session)| session.pace == pace);
        let (at, stamp) = of_pace.find_map(|(at, session)| {
            session.numbers.take().map(|taken| (at, Stamp { session: session.id, taken }))
        })?;
        let session = open.remove(at);
        open.push(session);
        Some(stamp)
    }

    async fn begin_in_another(&self, pace: Pace) -> Result<Stamp, Status> {
        let _others_wait = self.opening.lock().await;
        if let Some(stamp) = self.begin(pace) {
            return Ok(stamp);
        }
        let session = self.open_session().await?;
        let mut numbers = Numbers::new(self.span_max);
        let taken = numbers.take().expect("the first one");
        self.open.lock().push(Session { id: session, pace, numbers });
        Ok(Stamp { session, taken })
    }

    /// How many sessions are open, as far as is known here.
    pub(crate) fn count(&self) -> usize {
        self.open.lock().len()
    }

    /// If the answer is lost, another session is opened; the first is found idle by the cluster.
    async fn open_session(&self) -> Result<SessionId, Status> {
        let open = |wire: Wire| async move {
            SessionsClient::new(wire).open(OpenSessionRequest { wide: true }).await
        };
        let opened = self.upstream.ask("session open", open).await?;
        Ok(SessionId(wide::join(opened.session, opened.session_high)))
    }

    fn finish(&self, stamp: Stamp) {
        let mut open = self.open.lock();
        let Some(at) = open.iter().rposition(|session| session.id == stamp.session) else { return };
        let pace = open[at].pace;
        let is_in_use = open[at + 1..].iter().all(|later| later.pace != pace);
        let numbers = &mut open[at].numbers;
        numbers.finish(stamp.taken.sequence);
        // One that was left is of no use any more. The cluster forgets it after a while.
        if numbers.is_idle() && !is_in_use {
            open.remove(at);
        }
    }

    /// Other calls may have had the same session, and have told so.
    fn lost(&self, gone: SessionId) {
        let mut open = self.open.lock();
        let before = open.len();
        open.retain(|session| session.id != gone);
        if open.len() < before {
            tracing::info!(sessions = open.len(), "session expired");
        }
    }
}

impl Flight {
    pub(crate) fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// The cluster does not know the session any more.
    pub(crate) fn lost(self) {
        self.sessions.lost(self.stamp.session);
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
    /// Nobody will send the call again.
    fn drop(&mut self) {
        self.sessions.finish(self.stamp);
    }
}

#[cfg(test)]
#[path = "sessions_test.rs"]
mod tests;
