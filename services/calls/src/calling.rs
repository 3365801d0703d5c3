//! A call that is waited for.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

use crate::ledger::{Outcome, Tag};
use crate::lost::{Lost, Reason};
use crate::stream::Shared;

/// A call's answer, to be waited for. Dropping it gives the call up, at the node too.
#[derive(Debug)]
#[must_use = "a call that nobody waits for is given up"]
pub struct Calling(State);

#[derive(Debug)]
enum State {
    Waiting {
        stream: Arc<Shared>,
        tag: Tag,
        outcome: oneshot::Receiver<Outcome>,
    },
    /// `None`: it has been told.
    Ended(Option<Lost>),
}

impl Calling {
    pub(crate) fn waiting(stream: Arc<Shared>, tag: Tag, outcome: oneshot::Receiver<Outcome>) -> Self {
        Self(State::Waiting { stream, tag, outcome })
    }

    pub(crate) fn refused(lost: Lost) -> Self {
        Self(State::Ended(Some(lost)))
    }
}

impl Future for Calling {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let outcome = match &mut self.0 {
            State::Waiting { outcome, .. } => {
                let told = ready!(Pin::new(outcome).poll(context));
                // The stream tells everybody before it ends.
                told.unwrap_or(Err(Lost::Unknown(Reason::Closed)))
            }
            State::Ended(lost) => Err(lost.take().expect("polled again after it was ready")),
        };
        self.0 = State::Ended(None);
        Poll::Ready(outcome)
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        if let State::Waiting { stream, tag, .. } = &self.0 {
            stream.give_up(*tag);
        }
    }
}
