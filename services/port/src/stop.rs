//! The planned stop of a port, or of its connections, in phases that everybody who serves it can see.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;
use tonic::Request;

use crate::call_context::CallContext;

/// For this long calls that can be answered are answered, while new ones already go elsewhere. Clients are
/// told to go at its begin; it covers many of their round trips.
const LEAVE_TIME: Duration = Duration::from_millis(150);
/// For this long the answers that their outcome is unknown may take to be written.
const REFUSE_TIME: Duration = Duration::from_millis(100);
/// For this long clients may take to close their connections.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// How far the stop of a port is. Each phase includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// Clients are asked to begin new calls on other connections. If the port stops, none is accepted any
    /// more, and held polls are released.
    Leaving,
    /// Each connection ends as soon as no call on it is left that must be finished.
    Parting,
    /// Such calls are told that their outcome is unknown. Nothing is read any more.
    Overdue,
    /// Connections end whatever is left on them.
    Cutting,
    /// Connections whose clients did not close them are closed.
    Closing,
}

/// Why connections end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Their port stops.
    Stop,
    /// Their node is cut off from the others: it can note nothing, and other nodes can serve their clients,
    /// or none can.
    CutOff,
}

/// A port that may be about to stop. Every request carries it among its extensions, so a clone costs one count.
#[derive(Debug, Clone)]
pub struct Stopping(Arc<Seen>);

#[derive(Debug)]
struct Seen {
    phase: watch::Receiver<Phase>,
    reason: Arc<OnceLock<Reason>>,
}

/// Moves a port, or several, through the phases of their stop.
#[derive(Debug)]
pub struct Stop {
    phase: watch::Sender<Phase>,
    reason: Arc<OnceLock<Reason>>,
}

impl Stopping {
    /// That of a port which never stops in phases.
    #[must_use]
    pub fn never() -> Self {
        Stop::new().1
    }

    /// That of the port by which a request came.
    #[must_use]
    pub fn of<M>(request: &Request<M>) -> Self {
        CallContext::stopping(request.extensions()).cloned().unwrap_or_else(Self::never)
    }

    /// Whether the stop has begun.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        *self.0.phase.borrow() >= Phase::Leaving
    }

    /// Whether the stop has begun, and is one that can still note what becomes of polls.
    pub(crate) fn is_releasing_polls(&self) -> bool {
        self.is_begun() && self.0.reason.get() != Some(&Reason::CutOff)
    }

    /// Whether calls that are still under way must be answered at once.
    pub(crate) fn is_overdue(&self) -> bool {
        *self.0.phase.borrow() >= Phase::Overdue
    }

    /// Resolves when the stop begins. Held calls have some tenths of a second from then on.
    pub async fn begun(&self) {
        self.reached(Phase::Leaving).await;
    }

    /// Resolves when the stop begins, if it is one that can still note what becomes of polls.
    pub async fn releases_polls(&self) {
        self.begun().await;
        if self.0.reason.get() == Some(&Reason::CutOff) {
            std::future::pending::<()>().await;
        }
    }

    /// Resolves when calls that are still under way must be answered at once.
    pub async fn overdue(&self) {
        self.reached(Phase::Overdue).await;
    }

    pub(crate) fn glance(&self) -> watch::Receiver<Phase> {
        self.0.phase.clone()
    }

    pub(crate) fn phases(self) -> WatchStream<Phase> {
        WatchStream::new(self.0.phase.clone())
    }

    async fn reached(&self, wanted: Phase) {
        let mut phase = self.0.phase.clone();
        if phase.wait_for(|phase| *phase >= wanted).await.is_err() {
            // Who could have moved the port to that phase is gone.
            std::future::pending::<()>().await;
        }
    }
}

impl Stop {
    /// The stop of ports that serve, and what they know of it.
    #[must_use]
    pub fn new() -> (Self, Stopping) {
        let (sender, receiver) = watch::channel(Phase::Serving);
        let reason = Arc::default();
        let seen = Seen { phase: receiver, reason: Arc::clone(&reason) };
        (Self { phase: sender, reason }, Stopping(Arc::new(seen)))
    }

    /// Goes through all phases. Connections end in the course of it; if all have, nobody needs to wait for
    /// the rest. For `finish` calls that must not be executed twice may go on after those that can be
    /// answered at once.
    pub async fn run(self, finish: Duration) {
        self.run_for(Reason::Stop, finish).await;
    }

    /// [`Self::run`], for a reason. It begins when this is called.
    pub(crate) fn run_for(self, reason: Reason, finish: Duration) -> impl Future<Output = ()> + Send {
        self.reason.set(reason).expect("a stop is run once");
        self.enter(Phase::Leaving);
        self.go_through(finish)
    }

    async fn go_through(self, finish: Duration) {
        let phases = [
            (Phase::Leaving, LEAVE_TIME),
            (Phase::Parting, finish),
            (Phase::Overdue, REFUSE_TIME),
            (Phase::Cutting, CLOSE_TIME),
            (Phase::Closing, REFUSE_TIME),
        ];
        for (phase, time) in phases {
            self.enter(phase);
            tokio::time::sleep(time).await;
        }
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }
}
