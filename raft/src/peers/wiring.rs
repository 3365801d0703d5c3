//! gRPC over the operating system's network, or over one that was brought along.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tonic::transport::server::Connected;
use tonic::transport::{Channel, Endpoint, Uri};

use super::network::{BoxFuture, Listener, Network, Stream};
use super::succession::Succession;

/// Makes connections. Clones make the same.
#[derive(Clone)]
pub(crate) enum Wires {
    Tcp,
    Brought(Arc<dyn Network>),
}

impl fmt::Debug for Wires {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "Tcp",
            Self::Brought(_) => "Brought",
        })
    }
}

impl Wires {
    /// A connection that is made, and made again, when it is used.
    pub(crate) fn lazy(&self, endpoint: &Endpoint) -> Channel {
        match self {
            Self::Tcp => endpoint.connect_lazy(),
            Self::Brought(network) => endpoint.connect_with_connector_lazy(Connector(network.clone())),
        }
    }

    /// A connection that is made now.
    pub(crate) async fn connect(&self, endpoint: &Endpoint) -> Result<Channel, tonic::transport::Error> {
        match self {
            Self::Tcp => endpoint.connect().await,
            Self::Brought(network) => endpoint.connect_with_connector(Connector(network.clone())).await,
        }
    }

    /// A connection to `HOST:PORT` that is made now, on which nothing has been said.
    ///
    /// # Errors
    /// As the network has it: whether it was refused can be told from silence.
    pub(crate) async fn dial(&self, address: &str) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Tcp => Ok(Box::new(TcpStream::connect(address).await?)),
            Self::Brought(network) => network.connect(address).await,
        }
    }

    /// Listens on `HOST:PORT`.
    pub(crate) async fn listen(&self, address: &str) -> io::Result<PeerListener> {
        match self {
            Self::Tcp => TcpListener::bind(address).await.map(PeerListener::Tcp),
            Self::Brought(network) => network.listen(address).await.map(PeerListener::Brought),
        }
    }
}

/// Makes connections for tonic.
#[derive(Clone)]
struct Connector(Arc<dyn Network>);

impl tower::Service<Uri> for Connector {
    type Response = TokioIo<Box<dyn Stream>>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let address = uri.authority().map(|authority| authority.as_str().to_owned()).unwrap_or_default();
        let connecting = self.0.connect(&address);
        Box::pin(async move { connecting.await.map(TokioIo::new) })
    }
}

/// A port that is open.
pub(crate) enum PeerListener {
    Tcp(TcpListener),
    Brought(Box<dyn Listener>),
}

/// The connections that come to a brought listener.
pub(crate) fn incoming(
    listener: Box<dyn Listener>,
) -> impl futures::Stream<Item = io::Result<Box<dyn Stream>>> + Send {
    futures::stream::unfold(listener, |mut listener| async move {
        let accepted = listener.accept().await;
        Some((accepted, listener))
    })
}

/// Each call of a connection is told of its succession.
impl Connected for Box<dyn Stream> {
    type ConnectInfo = Succession;

    fn connect_info(&self) -> Succession {
        Succession::default()
    }
}
