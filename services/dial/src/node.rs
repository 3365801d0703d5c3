//! Connections to nodes, at their client ports.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint, Error, Uri};
use tripod_tls::{ClientStream, ClientTls, Rewound};

use crate::host_port::bare;
use crate::workers;

/// How this process proves to nodes who it is. A process is somebody once, whoever connects in it.
static PROTECTION: OnceLock<ClientTls> = OnceLock::new();

/// From now on every connection of this process to a node's client port is one by TLS, and none is in plain text. The
/// first word counts.
pub fn protect(tls: ClientTls) {
    let _ = PROTECTION.set(tls);
}

/// What [`protect`] was told, for whoever makes connections to nodes by itself.
#[must_use]
pub fn protection() -> Option<&'static ClientTls> {
    PROTECTION.get()
}

/// Connects to a node's client port, as this process was told to.
///
/// # Errors
/// The transport's.
pub async fn connect(endpoint: &Endpoint) -> Result<Channel, Error> {
    match PROTECTION.get() {
        None => endpoint.connect().await,
        Some(tls) => endpoint.connect_with_connector(Connector(tls.clone())).await,
    }
}

/// Connects to a worker's or an object store's port, as this process was told to.
///
/// # Errors
/// The transport's.
pub async fn connect_to_worker(endpoint: &Endpoint) -> Result<Channel, Error> {
    match workers::client() {
        None => endpoint.connect().await,
        Some(tls) => endpoint.connect_with_connector(Connector(tls.clone())).await,
    }
}

/// Makes connections for tonic.
#[derive(Debug, Clone)]
struct Connector(ClientTls);

impl tower::Service<Uri> for Connector {
    type Response = TokioIo<Rewound<ClientStream<TcpStream>>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let tls = self.0.clone();
        Box::pin(async move {
            let host = bare(uri.host().unwrap_or_default());
            let stream = TcpStream::connect((host, uri.port_u16().unwrap_or_default())).await?;
            // Small messages must not wait for an acknowledgement of the one before.
            stream.set_nodelay(true)?;
            tls.connect_and_hear(stream, host).await.map(TokioIo::new)
        })
    }
}
