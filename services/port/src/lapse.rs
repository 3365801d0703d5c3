//! That whoever had a call admitted is believed no longer, while the call goes on.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::HeaderMap;
use tokio::sync::watch;
use tonic::Status;

/// By what a call was admitted, as long as it holds. A [`crate::Guard`] puts it among the extensions of the call's request; when it
/// holds no longer, or whoever looks after that has gone, the call ends as UNAUTHENTICATED: one that waits as well as one whose
/// answers come one after the other. Ops of a stream of calls end with their stream.
#[derive(Debug, Clone)]
pub struct Lapse {
    over: watch::Receiver<bool>,
    says: &'static str,
}

/// The same, as a call waits for it, which gives what the call is told. All of it is in the box: each call that waits has room
/// for one, and few have one.
pub(crate) struct Lapsing(Pin<Box<dyn Future<Output = &'static str> + Send>>);

impl Lapse {
    /// Over as soon as this is true. `says` is what the call is told then.
    #[must_use]
    pub fn new(over: watch::Receiver<bool>, says: &'static str) -> Self {
        Self { over, says }
    }

    /// Whether it is over already.
    #[must_use]
    pub fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    pub(crate) fn awaited(self) -> Lapsing {
        let Self { mut over, says } = self;
        Lapsing(Box::pin(async move {
            // Without anybody who would say it, it is over, too.
            drop(over.wait_for(|over| *over).await);
            says
        }))
    }
}

impl Lapsing {
    /// Ready with what the call is told, once.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<&'static str> {
        self.0.as_mut().poll(context)
    }
}

impl fmt::Debug for Lapsing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Lapsing")
    }
}

/// What ends answers of which some have been given.
pub(crate) fn trailers(says: &'static str) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    // What we say ourselves is text.
    let _ = Status::unauthenticated(says).add_header(&mut trailers);
    trailers
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn it_is_over_when_that_is_said_and_when_nobody_could_say_it() {
        let over = watch::Sender::new(false);
        let lapse = || Lapse::new(over.subscribe(), "gone");
        let mut told = lapse().awaited();
        let mut left = lapse().awaited();
        assert_eq!(poll_fn(|context| told.poll(context)).now_or_never(), None);
        assert_eq!(poll_fn(|context| left.poll(context)).now_or_never(), None);
        over.send_replace(true);
        assert_eq!(poll_fn(|context| told.poll(context)).now_or_never(), Some("gone"));
        let mut late = lapse().awaited();
        assert_eq!(poll_fn(|context| late.poll(context)).now_or_never(), Some("gone"));
        drop(over);
        assert_eq!(poll_fn(|context| left.poll(context)).now_or_never(), Some("gone"));
    }

    #[test]
    fn a_call_has_room_for_nothing_but_the_box_of_one() {
        assert_eq!(size_of::<Option<Lapsing>>(), 2 * size_of::<usize>());
    }

    #[test]
    fn trailers_are_those_of_a_refusal() {
        let trailers = trailers("T1 gone: `next`");
        assert_eq!(trailers["grpc-status"], "16");
        assert!(trailers.contains_key("grpc-message"));
    }
}
