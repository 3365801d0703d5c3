//! A connection on which nothing is said. That it ends is all that it tells.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::transport::{Channel, Endpoint, Uri};

use super::network::Stream;

/// A connection to a peer's port that is kept and never used.
#[derive(Debug)]
pub(crate) struct IdleConnection {
    /// It is closed with this.
    _channel: Channel,
    ended: CancellationToken,
}

impl IdleConnection {
    /// Begins HTTP/2 on a connection: the other side leaves who does not begin.
    ///
    /// # Errors
    /// The connection has ended already.
    pub(crate) async fn begin(
        endpoint: &Endpoint,
        stream: Box<dyn Stream>,
    ) -> Result<Self, tonic::transport::Error> {
        let ended = CancellationToken::new();
        let kept = KeptStream { stream, _end: ended.clone().drop_guard() };
        let channel = endpoint.connect_with_connector(Given(Some(kept))).await?;
        Ok(Self { _channel: channel, ended })
    }

    /// Resolves when the connection has ended, whoever ended it.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

/// The connection as HTTP/2 has it, which drops it when it has ended.
struct KeptStream {
    stream: Box<dyn Stream>,
    _end: DropGuard,
}

impl AsyncRead for KeptStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for KeptStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Gives tonic the one connection, and never another.
struct Given(Option<KeptStream>);

impl tower::Service<Uri> for Given {
    type Response = TokioIo<KeptStream>;
    type Error = io::Error;
    type Future = std::future::Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let kept = self.0.take().map(TokioIo::new);
        std::future::ready(kept.ok_or_else(|| io::ErrorKind::NotConnected.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::TcpListener;
    use tokio::time::timeout;
    use tokio_stream::wrappers::TcpListenerStream;
    use tonic::service::Routes;
    use tonic::transport::Server;

    use super::*;
    use crate::peers::wiring::Wires;

    #[tokio::test]
    async fn it_lasts_as_long_as_the_other_side_and_then_the_port_refuses() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let stop = CancellationToken::new();
        let server = Server::builder().add_routes(Routes::default());
        let incoming = TcpListenerStream::new(listener);
        let served =
            tokio::spawn(server.serve_with_incoming_shutdown(incoming, stop.clone().cancelled_owned()));

        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let stream = Wires::Tcp.dial(&address).await.unwrap();
        let idle = IdleConnection::begin(&endpoint, stream).await.unwrap();
        assert!(timeout(Duration::from_millis(50), idle.ended()).await.is_err(), "nobody has ended it");
        stop.cancel();
        timeout(Duration::from_secs(10), idle.ended()).await.unwrap();
        served.await.unwrap().unwrap();
        let Err(refused) = Wires::Tcp.dial(&address).await else { panic!("nobody listens") };
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
