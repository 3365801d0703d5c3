//! How far the stop of a port is, as one stream hears of it.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::sync::watch;
use tokio_stream::Stream as _;
use tokio_stream::wrappers::WatchStream;

use crate::stop::{Phase, Stopping};

/// The phases of a stop.
pub(super) struct Phases {
    now: Phase,
    changes: WatchStream<Phase>,
    /// It knows whether `changes` has news.
    glance: watch::Receiver<Phase>,
    /// Whom `changes` wakes.
    woken: Option<Waker>,
}

impl Phases {
    pub(super) fn of(stopping: &Stopping) -> Self {
        let (changes, glance) = (stopping.clone().phases(), stopping.glance());
        Self { now: Phase::Serving, changes, glance, woken: None }
    }

    pub(super) fn now(&self) -> Phase {
        self.now
    }

    /// Whether it is another one than before. To ask `changes` takes a lock that all connections share, so it is asked only if
    /// there is news, or another task is to be woken.
    pub(super) fn have_changed(&mut self, context: &mut Context<'_>) -> bool {
        let is_awaited = self.woken.as_ref().is_some_and(|waker| waker.will_wake(context.waker()));
        if is_awaited && matches!(self.glance.has_changed(), Ok(false)) {
            return false;
        }
        // Before it is asked: what comes later is news.
        self.glance.mark_unchanged();
        let before = self.now;
        while let Poll::Ready(Some(phase)) = Pin::new(&mut self.changes).poll_next(context) {
            self.now = phase;
        }
        self.woken = Some(context.waker().clone());
        self.now > before
    }
}
