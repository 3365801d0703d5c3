//! That a connection ends when what its client has proved holds no longer.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::connection_calls::ConnectionCalls;

/// How often it is looked whether a certificate still holds: a comparison, unless files were replaced.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// For this long calls that are under way may go on then. Those that wait are made again elsewhere, by whoever still may.
const FINISH_TIME: Duration = Duration::from_secs(5);

/// Whether the client of a connection is still believed. Nothing of it exists for one in plain text.
pub(crate) struct Belief<F> {
    holds: F,
    look: Pin<Box<Sleep>>,
    is_lost: bool,
}

/// What becomes of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Believed {
    /// It goes on.
    Still,
    /// It is to take no call any more. Said once.
    NoLonger,
    /// It is to end.
    Over,
}

/// That of the connection with these calls, if it is protected.
pub(crate) fn belief(calls: ConnectionCalls) -> Option<Belief<impl Fn() -> bool + Send>> {
    calls.is_protected().then(|| Belief::new(move || calls.is_believed()))
}

impl<F: Fn() -> bool> Belief<F> {
    fn new(holds: F) -> Self {
        Self { holds, look: Box::pin(tokio::time::sleep(LOOK_EVERY)), is_lost: false }
    }

    /// As the connection's task asks each time that it is polled; it is woken for the answer.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Believed {
        loop {
            match self.look.as_mut().poll(context) {
                Poll::Pending => return Believed::Still,
                Poll::Ready(()) if self.is_lost => return Believed::Over,
                Poll::Ready(()) => {}
            }
            self.is_lost = !(self.holds)();
            let rest = if self.is_lost { FINISH_TIME } else { LOOK_EVERY };
            self.look.as_mut().reset(Instant::now() + rest);
            if self.is_lost {
                // The timer is to wake this task.
                let _ = self.look.as_mut().poll(context);
                return Believed::NoLonger;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::poll_fn;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn s26_a_connection_takes_no_call_soon_after_its_certificate_and_ends_soon_after_that() {
        let holds = Cell::new(true);
        let mut belief = Belief::new(|| holds.get());
        let began = Instant::now();
        let mut change = async || {
            poll_fn(|context| match belief.poll(context) {
                Believed::Still => Poll::Pending,
                believed => Poll::Ready(believed),
            })
            .await
        };
        let idle = tokio::time::timeout(Duration::from_secs(3_600), change()).await;
        assert!(idle.is_err(), "it goes on");
        holds.set(false);
        let lost = Instant::now();
        assert_eq!(change().await, Believed::NoLonger);
        assert!(lost.elapsed() <= LOOK_EVERY && began.elapsed() > lost.elapsed());
        assert_eq!(change().await, Believed::Over);
        assert!(lost.elapsed() <= LOOK_EVERY + FINISH_TIME);
    }
}
