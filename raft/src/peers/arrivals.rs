//! Connections that come to the peer port.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::Stream;
use futures::stream::unfold;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::time::Sleep;
use tonic::transport::server::Connected;
use tripod_local::{ConnectionLimits, ConnectionPermit, Connections};
use tripod_tls::{PeerTls, Presented};

use super::network::Stream as Bytes;
use super::proof::PeerConnection;

/// Connections at a time. Each of a cluster's nodes has a few. They are of the files that a node keeps from its clients,
/// and one address cannot take them all.
const LIMITS: ConnectionLimits = ConnectionLimits { all: 96, at_one_address: 64 };
/// Bytes of the preface of HTTP/2, with which every client begins.
const PREFACE_BYTES: usize = 24;
/// It has come by then. From then on pings end a connection that is dead.
const PREFACE_TIME: Duration = Duration::from_secs(5);
/// How long to wait after a failed accept: without open files to spare, the next one fails too.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A connection that has a permit, and a time to begin.
pub(crate) struct Arrival {
    inner: Box<dyn Bytes>,
    /// Whom the other side proves to be, where connections are protected.
    presented: Option<Presented>,
    /// Bytes of the preface that have not come, and the time that they have.
    preface: Option<(usize, Pin<Box<Sleep>>)>,
    _permit: ConnectionPermit,
}

/// The connections of a listener. They have no end, and a failed accept concerns one of them.
pub(crate) fn arrivals(
    listener: TcpListener,
    tls: Option<PeerTls>,
) -> impl Stream<Item = io::Result<Arrival>> + Send {
    unfold((listener, tls, Connections::new(LIMITS)), async |(listener, tls, connections)| {
        let arrival = next(&listener, tls.as_ref(), &connections).await;
        Some((Ok(arrival), (listener, tls, connections)))
    })
}

async fn next(listener: &TcpListener, tls: Option<&PeerTls>, connections: &Connections) -> Arrival {
    loop {
        let accepted = listener.accept().await.and_then(|(stream, peer)| {
            // Small messages must not wait for an acknowledgement of the one before.
            stream.set_nodelay(true)?;
            Ok((stream, peer))
        });
        match accepted {
            Ok((stream, peer)) => match connections.admit(Some(peer.ip().to_canonical())) {
                Ok(permit) => {
                    let Some(tls) = tls else { return Arrival::new(Box::new(stream), None, permit) };
                    let stream = tls.accept(stream, Some(peer.ip().to_canonical()));
                    let presented = stream.presented();
                    return Arrival::new(Box::new(stream), Some(presented), permit);
                }
                Err(full) => tracing::warn!(%peer, "a connection to the peer port was closed: {full}"),
            },
            Err(error) => {
                tracing::warn!(%error, "accept failed at the peer port");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

impl Arrival {
    fn new(inner: Box<dyn Bytes>, presented: Option<Presented>, permit: ConnectionPermit) -> Self {
        let preface = (PREFACE_BYTES, Box::pin(tokio::time::sleep(PREFACE_TIME)));
        Self { inner, presented, preface: Some(preface), _permit: permit }
    }
}

impl AsyncRead for Arrival {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { inner, preface, .. } = &mut *self;
        let before = buffer.filled().len();
        // What has come is read first: a pause of this process ends no connection.
        let read = Pin::new(inner).poll_read(context, buffer);
        let Some((missing, time)) = preface else { return read };
        if read.is_pending() {
            ready!(time.as_mut().poll(context));
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the preface did not come")));
        }
        *missing = missing.saturating_sub(buffer.filled().len() - before);
        if *missing == 0 {
            *preface = None;
        }
        read
    }
}

impl AsyncWrite for Arrival {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// Each call of a connection is told of it.
impl Connected for Arrival {
    type ConnectInfo = PeerConnection;

    fn connect_info(&self) -> PeerConnection {
        PeerConnection::new(self.presented.clone())
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use tokio::io::AsyncReadExt as _;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpStream;

    use super::*;

    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

    #[tokio::test]
    async fn f15_a_peer_that_does_not_begin_is_left_and_one_that_did_stays() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut arriving = Box::pin(arrivals(listener, None));
        let mut silent = TcpStream::connect(address).await.unwrap();
        let mut first = arriving.next().await.unwrap().unwrap();
        let mut peer = TcpStream::connect(address).await.unwrap();
        let mut second = arriving.next().await.unwrap().unwrap();
        silent.write_all(&PREFACE[..23]).await.unwrap();
        peer.write_all(PREFACE).await.unwrap();
        let mut bytes = [0; 24];
        first.read_exact(&mut bytes[..23]).await.unwrap();
        second.read_exact(&mut bytes).await.unwrap();
        tokio::time::pause();
        let error = first.read_exact(&mut bytes).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let rest = tokio::time::timeout(PREFACE_TIME * 100, second.read_exact(&mut bytes)).await;
        assert!(rest.is_err(), "it waits");
    }

    #[tokio::test]
    async fn f6_one_address_does_not_take_all_places_of_peers() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut arriving = Box::pin(arrivals(listener, None));
        let mut kept = Vec::new();
        for _ in 0..LIMITS.at_one_address {
            let dialled = TcpStream::connect(address).await.unwrap();
            kept.push((dialled, arriving.next().await.unwrap().unwrap()));
        }
        let mut refused = TcpStream::connect(address).await.unwrap();
        let end = async { refused.read(&mut [0; 1]).await };
        let read = tokio::select! {
            read = end => read,
            _ = arriving.next() => panic!("there is no permit"),
        };
        assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
        drop(kept.pop());
        let _dialled = TcpStream::connect(address).await.unwrap();
        arriving.next().await.unwrap().unwrap();
    }
}
