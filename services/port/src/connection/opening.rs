//! The time that a new connection has to begin.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// The preface, which a client sends at once, has come by then.
const PREFACE_TIME: Duration = Duration::from_secs(5);
/// The first call's headers have come by then. A client that connects ahead of its first call connects again for it.
const HEADERS_TIME: Duration = Duration::from_secs(10);
/// So long after it was told to go, a client that stays is left.
const LEAVE_TIME: Duration = Duration::from_secs(1);

/// Counts the time until the first call. Dropped when it has come.
///
/// It is asked only when there is nothing to read. So what came while this process did not run is read first, and a
/// pause of ours closes nobody's connection.
pub(super) struct Opening {
    began: Instant,
    stage: Stage,
    sleep: Pin<Box<Sleep>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Preface,
    Headers,
    Leaving,
}

/// What is to be done about a connection that takes too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overdue {
    /// Say that no call will be taken on it.
    Part,
    /// Close it.
    Close,
}

impl Opening {
    pub(super) fn new() -> Self {
        let began = Instant::now();
        Self { began, stage: Stage::Preface, sleep: Box::pin(tokio::time::sleep_until(began + PREFACE_TIME)) }
    }

    /// Ready when something is to be done. `has_preface`: the client has begun to speak.
    pub(super) fn poll(&mut self, has_preface: bool, context: &mut Context<'_>) -> Poll<Overdue> {
        if has_preface && self.stage == Stage::Preface {
            self.go_on(Stage::Headers, self.began + HEADERS_TIME);
        }
        if self.sleep.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        match self.stage {
            Stage::Preface | Stage::Leaving => Poll::Ready(Overdue::Close),
            Stage::Headers => {
                self.go_on(Stage::Leaving, Instant::now() + LEAVE_TIME);
                // Asked again at once, so that the new time is waited for.
                context.waker().wake_by_ref();
                Poll::Ready(Overdue::Part)
            }
        }
    }

    fn go_on(&mut self, stage: Stage, until: Instant) {
        self.stage = stage;
        self.sleep.as_mut().reset(until);
    }
}
