//! HTTP/2 on the connections of a port.
//!
//! It is what tonic's transport does with the same settings, without its layers: those box each call, the bodies of its
//! request and its answer, and a copy of the service for it.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use hyper::server::conn::http2::Builder;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream as _, StreamExt as _};
use tonic::transport::server::Connected as _;

use crate::bytes_held::CONNECTION_WINDOW_BYTES;
use crate::connection::{Believed, Mended, MendedIncoming, Socket, belief};
use crate::followed::Followed;
use crate::serve::{STREAM_WINDOW_BYTES, STREAMS_MAX};
use crate::stop::Stopping;

/// Serves connections until their stop begins, and then until the last of them has ended.
pub(crate) async fn serve_connections(incoming: MendedIncoming, services: Followed, stopping: Stopping) {
    // Whoever stops waiting here has the connections end, too.
    let (leave, leaving) = watch::channel(false);
    {
        let mut incoming = pin!(incoming);
        let mut begun = pin!(stopping.begun());
        loop {
            tokio::select! {
                () = &mut begun => break,
                connection = incoming.next() => match connection {
                    Some(Ok(connection)) => {
                        tokio::spawn(serve_connection(connection, services.clone(), leaving.clone()));
                    }
                    Some(Err(error)) => tracing::debug!(%error, "a connection has not begun"),
                    None => break,
                },
            }
        }
        // What listens is closed before the last connections have ended.
    }
    // From then on h2 sends GOAWAY frames, too: one that asks the client to begin no call, and when it has
    // heard that, one that covers all.
    leave.send_replace(true);
    drop(leaving);
    leave.closed().await;
}

async fn serve_connection(connection: Mended<Socket>, services: Followed, leaving: watch::Receiver<bool>) {
    let calls = connection.connect_info();
    let mut belief = belief(calls.clone());
    let services = services.on(calls);
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .max_concurrent_streams(STREAMS_MAX)
        .max_local_error_reset_streams(None);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(connection), services));
    let mut leaving = Leaving::new(leaving);
    let ended = std::future::poll_fn(|context| {
        if leaving.begins(context) {
            serving.as_mut().graceful_shutdown();
        }
        match belief.as_mut().map_or(Believed::Still, |belief| belief.poll(context)) {
            Believed::Still => {}
            Believed::NoLonger => serving.as_mut().graceful_shutdown(),
            Believed::Over => return Poll::Ready(Ok(())),
        }
        serving.as_mut().poll(context)
    });
    if let Err(error) = ended.await {
        tracing::debug!(%error, "a connection has failed");
    }
}

/// Whether the port's connections are to end, as one of them asks each time that it is polled.
struct Leaving {
    changes: WatchStream<bool>,
    /// It knows whether `changes` has news.
    glance: watch::Receiver<bool>,
    /// Whom `changes` wakes.
    woken: Option<Waker>,
    has_begun: bool,
}

impl Leaving {
    fn new(leaving: watch::Receiver<bool>) -> Self {
        Self { glance: leaving.clone(), changes: WatchStream::new(leaving), woken: None, has_begun: false }
    }

    /// Whether it begins now, which is said once. To ask `changes` takes a lock that all connections share, so it is asked
    /// only if there is news, or another task is to be woken.
    fn begins(&mut self, context: &mut Context<'_>) -> bool {
        if self.has_begun {
            return false;
        }
        let is_awaited = self.woken.as_ref().is_some_and(|waker| waker.will_wake(context.waker()));
        if is_awaited && matches!(self.glance.has_changed(), Ok(false)) {
            return false;
        }
        self.glance.mark_unchanged();
        loop {
            match Pin::new(&mut self.changes).poll_next(context) {
                Poll::Ready(Some(false)) => {}
                // Or who could have said it has gone.
                Poll::Ready(Some(true) | None) => {
                    self.has_begun = true;
                    return true;
                }
                Poll::Pending => break,
            }
        }
        self.woken = Some(context.waker().clone());
        false
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_connection_hears_once_that_it_is_to_leave_and_is_woken_for_it() {
        for says_so in [true, false] {
            let (leave, leaving) = watch::channel(false);
            let mut leaving = Leaving::new(leaving);
            let woken = Arc::new(Woken::default());
            let waker = Waker::from(Arc::clone(&woken));
            let mut context = Context::from_waker(&waker);
            assert!(!leaving.begins(&mut context) && !leaving.begins(&mut context));
            assert_eq!(woken.0.load(Ordering::Relaxed), 0);
            if says_so {
                leave.send_replace(true);
            } else {
                drop(leave);
            }
            assert_eq!(woken.0.load(Ordering::Relaxed), 1, "it would rest for ever");
            assert!(leaving.begins(&mut context) && !leaving.begins(&mut context));
        }
    }
}
