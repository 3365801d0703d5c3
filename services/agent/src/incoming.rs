//! Clients' connections, counted.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_stream::Stream;
use tonic::transport::server::Connected;
use tripod_port::{Listener, Mended, MendedIncoming, PortResources, Socket, Stopping};

use crate::meters::{Counted, Meters};

/// The connections of a listener, each counted for as long as it is open. Clients whose list of nodes or
/// socket path would not be taken for an authority are let in.
pub(crate) struct Incoming {
    inner: MendedIncoming,
    meters: Arc<Meters>,
}

impl Incoming {
    /// Connections that end when `stopping` says so, and are closed at once if there is no permit for them in
    /// `resources`.
    pub(crate) fn new(
        listener: Listener,
        stopping: Stopping,
        resources: PortResources,
        meters: Arc<Meters>,
    ) -> Self {
        Self { inner: MendedIncoming::through(Arc::new(listener), stopping, resources), meters }
    }
}

impl Stream for Incoming {
    type Item = io::Result<Client>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let accepted = ready!(Pin::new(&mut self.inner).poll_next(context));
        let counted = |inner| Client { inner, _counted: self.meters.client() };
        Poll::Ready(accepted.map(|accepted| accepted.map(counted)))
    }
}

/// A client's connection.
pub(crate) struct Client {
    inner: Mended<Socket>,
    _counted: Counted,
}

impl Connected for Client {
    type ConnectInfo = <Mended<Socket> as Connected>::ConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.inner.connect_info()
    }
}

impl AsyncRead for Client {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

/// Not vectored: of a vectored connection h2 expects that it need not copy a message of some hundred bytes,
/// and writes its trailers apart from it, which costs each client a wake-up.
impl AsyncWrite for Client {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
