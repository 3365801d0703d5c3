//! The simulated network as nodes and clients use it: connections over a TCP that can be cut, held and slowed.

mod unheard;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::{FutureExt as _, Shared};
use futures::stream::{BoxStream, StreamExt as _};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::sync::oneshot;
use tokio::task::coop::{Unconstrained, unconstrained};
use tonic::transport::server::Connected;
use tonic::transport::{Channel, Endpoint, Uri};
use tripod_raft::{BoxFuture, Listener, Network, Stream};
use turmoil::net::{TcpListener, TcpStream};

use self::unheard::Unheard;

/// The port on which clients are served.
pub(crate) const CLIENT_PORT: u16 = 7700;
/// The port of the peer transport.
pub(crate) const PEER_PORT: u16 = 7800;

/// Bytes that are under way between a connection of the simulation and what a port reads of it.
const PIPE_BYTES: usize = 64 << 10;

/// How long it takes to be refused.
const REFUSED_AFTER: std::time::Duration = std::time::Duration::from_millis(1);

/// Between which hosts nothing passes at the moment. Below, a connection that nobody hears of is refused like one to a
/// port that is closed; in a real network nothing is heard of it, and whoever can tell these apart acts on it. Clones
/// are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Silences {
    inner: Arc<Mutex<Silent>>,
}

#[derive(Debug, Default)]
struct Silent {
    /// Those without power.
    hosts: BTreeSet<String>,
    /// Those whose process has ended, while the machine runs. Below, nothing answers for such a host either; a real
    /// system refuses.
    ended: BTreeSet<String>,
    /// Both in their order.
    pairs: BTreeSet<(String, String)>,
    /// Between which connections are refused, both in their order.
    refused: BTreeSet<(String, String)>,
    /// What resets the connections between two when it is dropped, both in their order.
    resets: BTreeMap<(String, String), Vec<oneshot::Sender<()>>>,
}

impl Silences {
    /// Nothing comes from these hosts, nor passes between these.
    pub(crate) fn set(
        &self,
        hosts: impl Iterator<Item = String>,
        pairs: impl Iterator<Item = (String, String)>,
    ) {
        let mut silent = self.inner.lock();
        (silent.hosts, silent.pairs) = (hosts.collect(), pairs.map(ordered).collect());
    }

    /// The process of a host has ended, or another one begins.
    pub(crate) fn set_ended(&self, host: &str, ended: bool) {
        let ended_hosts = &mut self.inner.lock().ended;
        if ended {
            ended_hosts.insert(host.to_owned());
        } else {
            ended_hosts.remove(host);
        }
    }

    /// Resets the connections between two nodes, and has new ones refused.
    pub(crate) fn refuse(&self, one: &str, other: &str) {
        let pair = ordered((one.to_owned(), other.to_owned()));
        let mut silent = self.inner.lock();
        let resets = silent.resets.remove(&pair);
        silent.refused.insert(pair);
        drop(silent);
        // Not while anything is locked: whoever is woken by it looks whether it is refused.
        drop(resets);
    }

    /// Two nodes may connect again.
    pub(crate) fn allow(&self, one: &str, other: &str) {
        self.inner.lock().refused.remove(&ordered((one.to_owned(), other.to_owned())));
    }

    /// No node whose process lives is refused any more.
    pub(crate) fn allow_all(&self) {
        self.inner.lock().refused.clear();
    }

    /// Ends when the connections between two nodes are reset.
    fn reset(&self, one: &str, other: &str) -> Reset {
        let (reset, is_reset) = oneshot::channel();
        let mut silent = self.inner.lock();
        let resets = silent.resets.entry(ordered((one.to_owned(), other.to_owned()))).or_default();
        resets.retain(|reset| !reset.is_closed());
        resets.push(reset);
        unconstrained(is_reset)
    }

    /// Whether a host that is heard refuses whoever connects.
    fn is_refused(&self, from: &str, to: &str) -> bool {
        if self.is_silent(from, to) {
            return false;
        }
        let silent = self.inner.lock();
        silent.ended.contains(to) || silent.refused.contains(&ordered((from.to_owned(), to.to_owned())))
    }

    fn is_silent(&self, from: &str, to: &str) -> bool {
        let silent = self.inner.lock();
        silent.hosts.contains(to) || silent.pairs.contains(&ordered((from.to_owned(), to.to_owned())))
    }
}

fn ordered((one, other): (String, String)) -> (String, String) {
    if one <= other { (one, other) } else { (other, one) }
}

/// What connects a node to the others.
pub(crate) struct SimulatedNetwork {
    host: String,
    silences: Silences,
}

impl SimulatedNetwork {
    pub(crate) fn of(host: &str, silences: &Silences) -> Self {
        Self { host: host.to_owned(), silences: silences.clone() }
    }
}

impl Network for SimulatedNetwork {
    fn connect(&self, address: &str) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        let (host, silences, address) = (self.host.clone(), self.silences.clone(), address.to_owned());
        Box::pin(async move {
            let other = address.split(':').next().unwrap_or_default();
            if silences.is_refused(&host, other) {
                tokio::time::sleep(REFUSED_AFTER).await;
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let was_silent = silences.is_silent(&host, other);
            // From before there is a connection: it may be refused meanwhile.
            let reset = Some(silences.reset(&host, other));
            match TcpStream::connect(address.as_str()).await {
                Ok(stream) => Ok(Box::new(Link { stream, reset }) as Box<dyn Stream>),
                Err(_) if was_silent || silences.is_silent(&host, other) => std::future::pending().await,
                Err(error) => Err(error),
            }
        })
    }

    fn listen(&self, address: &str) -> BoxFuture<'static, io::Result<Box<dyn Listener>>> {
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        Box::pin(async move {
            let port = port.ok_or(io::ErrorKind::InvalidInput)?;
            Ok(Box::new(HostListener(bind(port).await?)) as Box<dyn Listener>)
        })
    }
}

/// Resolves when a connection is reset. It takes nothing of the budget of the task that polls it, so that a run in which
/// nothing is reset is what it would be without.
type Reset = Unconstrained<oneshot::Receiver<()>>;

/// A connection to another node, which may be reset while both live.
struct Link {
    stream: TcpStream,
    /// Gone when it was reset.
    reset: Option<Reset>,
}

impl Link {
    fn check_reset(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if let Some(reset) = &mut self.reset {
            if Pin::new(reset).poll(context).is_pending() {
                return Ok(());
            }
            self.reset = None;
        }
        Err(io::ErrorKind::ConnectionReset.into())
    }
}

impl AsyncRead for Link {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_reset(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Link {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check_reset(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

struct HostListener(TcpListener);

impl Listener for HostListener {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async { Ok(Box::new(self.0.accept().await?.0) as Box<dyn Stream>) })
    }
}

async fn bind(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((IpAddr::from(Ipv4Addr::UNSPECIFIED), port)).await
}

/// Connections of clients, for a gRPC server.
pub(crate) async fn clients() -> io::Result<BoxStream<'static, io::Result<Accepted>>> {
    connections(CLIENT_PORT, futures::future::pending().boxed().shared()).await
}

/// Resolves when a process ends, of which a host may have several.
pub(crate) type End = Shared<BoxFuture<'static, ()>>;

/// Connections to a port, which break when the process that accepts them ends.
pub(crate) async fn connections(port: u16, end: End) -> io::Result<BoxStream<'static, io::Result<Accepted>>> {
    let listener = bind(port).await?;
    let accept = |(listener, end): (TcpListener, End)| async {
        let accepted = listener.accept().await.map(|(stream, _)| Accepted(stream, end.clone()));
        Some((accepted, (listener, end)))
    };
    Ok(futures::stream::unfold((listener, end), accept).boxed())
}

/// A channel to the client port of a host. It connects when it is used, and again after a failure.
pub(crate) fn channel(host: &str) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{host}:{CLIENT_PORT}")).expect("a host name");
    let endpoint = endpoint
        .connect_timeout(std::time::Duration::from_millis(800))
        .http2_keep_alive_interval(std::time::Duration::from_millis(700))
        .keep_alive_timeout(std::time::Duration::from_millis(700))
        .keep_alive_while_idle(true);
    endpoint.connect_with_connector_lazy(tower::service_fn(dial))
}

async fn dial(uri: Uri) -> io::Result<TokioIo<TcpStream>> {
    let host = uri.host().unwrap_or_default().to_owned();
    let port = uri.port_u16().unwrap_or(CLIENT_PORT);
    TcpStream::connect((host, port)).await.map(TokioIo::new)
}

/// How a node's scheduler reaches workers and stores.
pub(crate) fn to_peers() -> tripod_ray::Connect {
    Arc::new(|endpoint| {
        Box::pin(async move { endpoint.connect_with_connector(tower::service_fn(dial)).await })
    })
}

/// How a node's engine of Mars reaches stores.
pub(crate) fn to_stores() -> tripod_mars::Connect {
    Arc::new(|endpoint| {
        Box::pin(async move { endpoint.connect_with_connector(tower::service_fn(dial)).await })
    })
}

/// How a node's engine of MindSpore reaches the nodes of clusters.
pub(crate) fn to_nodes() -> tripod_mindspore::Dial {
    Arc::new(|address: String| {
        Box::pin(async move {
            let stream = TcpStream::connect(address.as_str()).await?;
            Ok(Box::new(Unheard::over(stream)) as Box<dyn tripod_mindspore::Bytestream>)
        })
    })
}

/// A connection to a port of a host.
pub(crate) async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    TcpStream::connect((host.to_owned(), port)).await
}

/// Listens at a port of the host that runs.
pub(crate) async fn listen(port: u16) -> io::Result<TcpListener> {
    bind(port).await
}

/// Connections to a port for a protocol that frames its bytes itself: real ports take sockets of the system, or streams
/// within a process.
pub(crate) async fn piped(port: u16) -> io::Result<BoxStream<'static, io::Result<DuplexStream>>> {
    let accept = |listener: TcpListener| async {
        let piped = listener.accept().await.map(|(stream, _)| pipe(stream));
        Some((piped, listener))
    };
    Ok(futures::stream::unfold(bind(port).await?, accept).boxed())
}

/// Whatever comes and goes on a connection comes and goes on the stream; when one of them breaks the other one ends.
fn pipe(mut stream: TcpStream) -> DuplexStream {
    let (ours, mut theirs) = tokio::io::duplex(PIPE_BYTES);
    tokio::spawn(async move {
        // Why it broke nobody asks.
        drop(tokio::io::copy_bidirectional(&mut stream, &mut theirs).await);
    });
    ours
}

/// An accepted connection of a client.
pub(crate) struct Accepted(TcpStream, End);

impl Accepted {
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        Pin::new(&mut self.1).poll(context).is_ready()
    }
}

impl Connected for Accepted {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Accepted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_over(context) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Accepted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_over(context) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
