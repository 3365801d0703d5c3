//! Who listens at a place, and what becomes of its lines.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use tokio::io::DuplexStream;
use tokio::sync::{mpsc, watch};
use tokio_stream::Stream;

/// What lines know of their place. They outlive whoever could close it.
pub(crate) type Fate = watch::Receiver<State>;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct State {
    /// By how many.
    frozen: usize,
    closed: bool,
}

/// A place where somebody listens.
#[derive(Debug)]
pub(crate) struct Listening {
    entering: mpsc::UnboundedSender<DuplexStream>,
    state: Arc<watch::Sender<State>>,
}

/// The lines to a place, in order, for `serve_with_incoming`.
#[derive(Debug)]
pub struct Arrivals(mpsc::UnboundedReceiver<DuplexStream>);

/// Keeps a place frozen.
#[derive(Debug)]
pub struct Frozen(Weak<watch::Sender<State>>);

impl Listening {
    pub(crate) fn open() -> (Self, Arrivals) {
        let (entering, lines) = mpsc::unbounded_channel();
        (Self { entering, state: Arc::default() }, Arrivals(lines))
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.entering.is_closed()
    }

    /// Gives a line to who listens; `Err` if nobody does any more.
    pub(crate) fn enter(&self, line: DuplexStream) -> Result<(), DuplexStream> {
        self.entering.send(line).map_err(|refused| refused.0)
    }

    pub(crate) fn fate(&self) -> Fate {
        self.state.subscribe()
    }

    pub(crate) fn freeze(&self) -> Frozen {
        self.state.send_modify(|state| state.frozen += 1);
        Frozen(Arc::downgrade(&self.state))
    }

    /// Breaks all lines.
    pub(crate) fn close(self) {
        self.state.send_modify(|state| state.closed = true);
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        if let Some(state) = self.0.upgrade() {
            state.send_modify(|state| state.frozen -= 1);
        }
    }
}

/// Resolves when a place is not frozen.
pub(crate) async fn thawed(fate: &mut Fate) {
    // An error says that nobody is left who could have frozen it.
    let _ = fate.wait_for(|state| state.frozen == 0).await;
}

/// Resolves when a place is closed.
pub(crate) async fn closed(mut fate: Fate) {
    if fate.wait_for(|state| state.closed).await.is_err() {
        // Nobody is left who could close it.
        std::future::pending::<()>().await;
    }
}

impl Arrivals {
    /// The next line; `None` when the place is closed.
    pub async fn next(&mut self) -> Option<DuplexStream> {
        self.0.recv().await
    }
}

impl Stream for Arrivals {
    type Item = io::Result<DuplexStream>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|line| line.map(Ok))
    }
}
