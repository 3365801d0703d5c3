//! Both sides of connections between nodes.

use std::future::Future;
use std::io;
use std::net::IpAddr;

use tokio::io::{AsyncRead, AsyncWrite};
use tripod_identity::Kind;

use crate::client::{ClientStream, ClientTls};
use crate::mode::Mode;
use crate::outcome::Refused;
use crate::port::Port;
use crate::presented::Presented;
use crate::server::ServerTls;
use crate::server_stream::ServerStream;
use crate::tls::Tls;

/// Protects the connections between nodes. Clones are the same.
#[derive(Debug, Clone)]
pub struct PeerTls {
    server: ServerTls,
    client: ClientTls,
}

/// A connection to another node.
#[derive(Debug)]
pub enum Dialled<S> {
    Protected(Box<ClientStream<S>>),
    /// The other node does not know TLS yet.
    Plain(S),
}

impl PeerTls {
    /// For the peer port; `None` if it is not protected.
    #[must_use]
    pub fn new(tls: &Tls, mode: Mode) -> Option<Self> {
        let server = ServerTls::new(tls, Port::Peer, mode)?;
        Some(Self { server, client: ClientTls::new(tls, Port::Peer) })
    }

    /// Protects a connection that another node has made.
    pub fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        from: Option<IpAddr>,
    ) -> ServerStream<S> {
        self.server.accept(stream, from)
    }

    /// Connects to the node at `host` by `connect`, and again in plain text if that node is found not to speak TLS, and
    /// this one is permissive. `name`: what the node's certificate calls it, if that is known.
    ///
    /// # Errors
    /// Those of `connect`; the other node does not hold, is another one, or does not speak TLS.
    pub async fn dial<S, F>(
        &self,
        host: &str,
        name: Option<&str>,
        connect: impl Fn() -> F,
    ) -> io::Result<Dialled<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
        F: Future<Output = io::Result<S>>,
    {
        match self.client.connect_to(connect().await?, host, name).await {
            Ok(stream) => Ok(Dialled::Protected(Box::new(stream))),
            Err(error) if self.server.is_permissive && is_no_tls(&error) => {
                Ok(Dialled::Plain(connect().await?))
            }
            Err(error) => Err(error),
        }
    }

    /// Why a call is refused that came by a connection on which this was proved, from a node that says it is the one at
    /// `host`, whose certificate has that `known` name, if that is known; `None` if it may be.
    #[must_use]
    pub fn impostor(&self, presented: Option<&Presented>, host: &str, known: Option<&str>) -> Option<String> {
        let Some(proved) = presented.and_then(Presented::proved) else {
            let text = "this connection is in plain text, and nodes are to prove by TLS who they are";
            return (!self.server.is_permissive).then(|| text.to_owned());
        };
        let Kind::Node(name) = &proved.identity().kind else {
            return Some("this certificate is not a node's".to_owned());
        };
        if let Some(known) = known.filter(|known| *known != name.as_str()) {
            return Some(format!(
                "the certificate is of node/{name}, and the node that it says it is has that of node/{known}"
            ));
        }
        let text = || {
            format!(
                "the certificate of node {name} is not one of host {host}, where the node is that it says it is"
            )
        };
        (!proved.is_of_host(host)).then(text)
    }
}

/// Whether a handshake failed as it does with a server that has never heard of TLS: it answers in its own protocol, or goes.
fn is_no_tls(error: &io::Error) -> bool {
    let inner = error.get_ref();
    if inner.is_some_and(<dyn std::error::Error + Send + Sync>::is::<Refused>) {
        return false;
    }
    let tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match tls {
        Some(error) => matches!(error, rustls::Error::InvalidMessage(_)),
        None => matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
        ),
    }
}
