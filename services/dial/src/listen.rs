//! The ports of workers and object stores, which are dialled as [`Callee::Worker`](crate::Callee::Worker).

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tonic::codegen::tokio_stream::Stream;
use tonic::transport::server::{Connected, TcpIncoming};
use tripod_tls::{Port, ServerStream, ServerTls};

use crate::workers::{self, ArrivedBy};

/// The connections of such a port in plain text, for a gRPC server.
pub type Incoming = TcpIncoming;

/// The same, protected as this process was told to protect its port.
#[derive(Debug)]
pub struct PortIncoming {
    tcp: TcpIncoming,
    tls: Option<ServerTls>,
}

/// A connection to such a port.
#[derive(Debug)]
pub struct Accepted {
    stream: Flow,
    by: ArrivedBy,
}

#[derive(Debug)]
enum Flow {
    Plain(TcpStream),
    Protected(Box<ServerStream<TcpStream>>),
}

/// Listens at `address`.
///
/// # Errors
/// The system's. What to do next is known to whoever chose the address, and told by them.
pub async fn listen(address: impl ToSocketAddrs) -> io::Result<Incoming> {
    let listener = TcpListener::bind(address).await?;
    // Without that an answer waits 40 ms for the kernel to find something to send it along with.
    Ok(TcpIncoming::from(listener).with_nodelay(Some(true)))
}

/// Listens at `address` for this object store.
///
/// # Errors
/// As [`listen`].
pub async fn listen_as_store(address: SocketAddr) -> io::Result<PortIncoming> {
    Ok(PortIncoming { tcp: listen(address).await?, tls: workers::server(Port::Store) })
}

/// Listens at `address` for this worker.
///
/// # Errors
/// As [`listen`].
pub async fn listen_as_worker(address: SocketAddr) -> io::Result<PortIncoming> {
    Ok(PortIncoming { tcp: listen(address).await?, tls: workers::server(Port::Worker) })
}

impl PortIncoming {
    /// Where it listens.
    ///
    /// # Errors
    /// The system's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

impl Accepted {
    fn new(stream: TcpStream, tls: Option<&ServerTls>) -> Self {
        let tcp = stream.connect_info();
        let Some(tls) = tls else {
            return Self { stream: Flow::Plain(stream), by: ArrivedBy { tcp, presented: None } };
        };
        let from = tcp.remote_addr().map(|from| from.ip().to_canonical());
        let stream = tls.accept(stream, from);
        let by = ArrivedBy { tcp, presented: Some(stream.presented()) };
        Self { stream: Flow::Protected(Box::new(stream)), by }
    }
}

impl Stream for PortIncoming {
    type Item = io::Result<Accepted>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let accepted = ready!(Pin::new(&mut this.tcp).poll_next(context));
        Poll::Ready(accepted.map(|stream| Ok(Accepted::new(stream?, this.tls.as_ref()))))
    }
}

impl Connected for Accepted {
    type ConnectInfo = ArrivedBy;

    fn connect_info(&self) -> ArrivedBy {
        self.by.clone()
    }
}

impl AsyncRead for Accepted {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Flow::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Flow::Protected(stream) => Pin::new(stream.as_mut()).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Accepted {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            Flow::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Flow::Protected(stream) => Pin::new(stream.as_mut()).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            Flow::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Flow::Protected(stream) => Pin::new(stream.as_mut()).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Flow::Plain(stream) => Pin::new(stream).poll_flush(context),
            Flow::Protected(stream) => Pin::new(stream.as_mut()).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Flow::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Flow::Protected(stream) => Pin::new(stream.as_mut()).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic::codegen::tokio_stream::StreamExt as _;

    use super::*;

    #[tokio::test]
    async fn what_a_worker_answers_is_sent_at_once() {
        let mut incoming = listen("127.0.0.1:0").await.unwrap();
        let _client = TcpStream::connect(incoming.local_addr().unwrap()).await.unwrap();
        let accepted = incoming.next().await.unwrap().unwrap();
        assert!(accepted.nodelay().unwrap());
    }

    #[tokio::test]
    async fn a_port_that_nobody_protects_is_in_plain_text_and_knows_where_calls_come_from() {
        let mut incoming = listen_as_store("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let client = TcpStream::connect(incoming.local_addr().unwrap()).await.unwrap();
        let accepted = incoming.next().await.unwrap().unwrap();
        assert!(matches!(accepted.stream, Flow::Plain(_)));
        let mut extensions = http::Extensions::new();
        assert_eq!(workers::caller_address(&extensions), None, "of this process");
        extensions.insert(accepted.connect_info());
        assert_eq!(workers::caller_address(&extensions), Some(client.local_addr().unwrap().ip()));
        assert!(!workers::is_proved(&extensions));
    }
}
