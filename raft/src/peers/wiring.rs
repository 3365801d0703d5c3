//! gRPC over the operating system's network, or over one that was brought along.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tonic::transport::server::Connected;
use tonic::transport::{Channel, Endpoint, Uri};
use tripod_state::ids::CertificateName;
use tripod_tls::{Dialled, PeerTls};

use super::expected::Expected;
use super::network::{BoxFuture, Listener, Network, Stream};
use super::proof::{PeerConnection, host_of};
use crate::base::names::Names;

/// Makes connections. Clones make the same.
#[derive(Clone)]
pub(crate) enum Wires {
    Tcp,
    /// TCP with TLS, and whose certificate is expected where.
    Protected(PeerTls, Expected),
    Brought(Arc<dyn Network>),
}

impl fmt::Debug for Wires {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "Tcp",
            Self::Protected(..) => "Protected",
            Self::Brought(_) => "Brought",
        })
    }
}

impl Wires {
    /// What protects the connections, and whose certificates are expected, if they are protected.
    pub(crate) fn tls(&self) -> Option<(PeerTls, Expected)> {
        match self {
            Self::Protected(tls, expected) => Some((tls.clone(), expected.clone())),
            Self::Tcp | Self::Brought(_) => None,
        }
    }

    /// The names of nodes' certificates that this node goes by; none if there are no certificates.
    pub(crate) fn names(&self) -> Names {
        self.tls().map(|(_, expected)| expected.names()).unwrap_or_default()
    }

    /// The members are there from now on.
    pub(crate) fn follow(&self, members: &BTreeMap<u64, String>) {
        if let Self::Protected(_, expected) = self {
            expected.follow(members);
        }
    }

    /// A connection that is made, and made again, when it is used.
    pub(crate) fn lazy(&self, endpoint: &Endpoint) -> Channel {
        match self {
            Self::Tcp => endpoint.connect_lazy(),
            Self::Protected(..) | Self::Brought(_) => {
                endpoint.connect_with_connector_lazy(Connector(self.clone()))
            }
        }
    }

    /// A connection that is made now.
    pub(crate) async fn connect(&self, endpoint: &Endpoint) -> Result<Channel, tonic::transport::Error> {
        match self {
            Self::Tcp => endpoint.connect().await,
            Self::Protected(..) | Self::Brought(_) => {
                endpoint.connect_with_connector(Connector(self.clone())).await
            }
        }
    }

    /// A connection to `HOST:PORT` that is made now, on which nothing has been said.
    ///
    /// # Errors
    /// As the network has it: whether it was refused can be told from silence.
    pub(crate) async fn dial(&self, address: &str) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::Tcp => Ok(Box::new(TcpStream::connect(address).await?)),
            Self::Protected(tls, expected) => dial_protected(tls, expected, address).await,
            Self::Brought(network) => network.connect(address).await,
        }
    }

    /// Listens on `HOST:PORT`.
    pub(crate) async fn listen(&self, address: &str) -> io::Result<PeerListener> {
        match self {
            Self::Tcp => TcpListener::bind(address).await.map(|listener| PeerListener::Tcp(listener, None)),
            Self::Protected(tls, _) => {
                let listener = TcpListener::bind(address).await?;
                Ok(PeerListener::Tcp(listener, Some(tls.clone())))
            }
            Self::Brought(network) => network.listen(address).await.map(PeerListener::Brought),
        }
    }
}

async fn dial_protected(tls: &PeerTls, expected: &Expected, address: &str) -> io::Result<Box<dyn Stream>> {
    let name = expected.at(address);
    let name = name.as_ref().map(CertificateName::as_str);
    let connect = || async {
        let stream = TcpStream::connect(address).await?;
        // Small messages must not wait for an acknowledgement of the one before.
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    let stream: Box<dyn Stream> = match tls.dial(host_of(address), name, connect).await? {
        Dialled::Protected(stream) => stream,
        Dialled::Plain(stream) => Box::new(stream),
    };
    Ok(stream)
}

/// Makes connections for tonic.
#[derive(Clone)]
struct Connector(Wires);

impl tower::Service<Uri> for Connector {
    type Response = TokioIo<Box<dyn Stream>>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let address = uri.authority().map(|authority| authority.as_str().to_owned()).unwrap_or_default();
        let wires = self.0.clone();
        Box::pin(async move { wires.dial(&address).await.map(TokioIo::new) })
    }
}

/// A port that is open.
pub(crate) enum PeerListener {
    /// With what protects its connections, if they are.
    Tcp(TcpListener, Option<PeerTls>),
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

/// Each call of a connection is told of it.
impl Connected for Box<dyn Stream> {
    type ConnectInfo = PeerConnection;

    fn connect_info(&self) -> PeerConnection {
        PeerConnection::default()
    }
}
