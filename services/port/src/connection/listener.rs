//! Where connections are accepted.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use socket2::SockRef;
use tokio::io::DuplexStream;
use tokio::net::{TcpListener, ToSocketAddrs, UnixListener};
use tokio_stream::Stream;
use tripod_local::Peers;
use tripod_tls::ServerTls;

use super::arrivals::Words;
use super::socket::Socket;
use crate::caller_address::CallerAddress;
use crate::lost::end_when_lost;

/// How many connections may wait to be accepted; the system's own bound, `net.core.somaxconn`, may be lower. Who comes when
/// as many wait tries again after a second: with the 128 that a port is bound with, a gang that comes at once does.
const WAITING_MAX: i32 = 4096;

/// Connections that are made within the process.
type Lines = Pin<Box<dyn Stream<Item = io::Result<DuplexStream>> + Send>>;

/// A bound socket, or what stands for one. How it was made is its own affair: each kind is made in one way, with the options
/// that its connections need.
pub struct Listener(Kind);

enum Kind {
    Tcp(TcpListener),
    /// With what protects its connections.
    Tls(TcpListener, ServerTls),
    /// With the users whom it serves.
    Unix(UnixListener, Peers),
    /// For simulations, whose clock stands still while a socket is waited for.
    Within(Mutex<Lines>),
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Tcp(listener) | Kind::Tls(listener, _) => listener.fmt(f),
            Kind::Unix(listener, _) => listener.fmt(f),
            Kind::Within(_) => f.write_str("Within"),
        }
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        end_when_lost(&listener);
        // As it was bound it would be good for less; that is no reason not to serve.
        if let Err(error) = SockRef::from(&listener).listen(WAITING_MAX) {
            tracing::debug!(%error, "a port keeps the queue that it was bound with");
        }
        Self(Kind::Tcp(listener))
    }
}

/// For this user and root.
impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Self::unix(listener, Peers::own(""))
    }
}

impl Listener {
    /// Opens a port, for who has words of its own for a port that cannot be opened; [`crate::Binder`] has those of a flag.
    ///
    /// # Errors
    /// The system's.
    pub async fn open(address: impl ToSocketAddrs) -> io::Result<Self> {
        TcpListener::bind(address).await.map(Self::from)
    }

    /// The same with its connections protected so, if it is a port; a unix socket and what is within this process need
    /// no protection.
    #[must_use]
    pub fn protected(self, tls: Option<ServerTls>) -> Self {
        match (self.0, tls) {
            (Kind::Tcp(listener), Some(tls)) => Self(Kind::Tls(listener, tls)),
            (kind, _) => Self(kind),
        }
    }

    /// Serves the users that `peers` names, and nobody else.
    #[must_use]
    pub fn unix(listener: UnixListener, peers: Peers) -> Self {
        Self(Kind::Unix(listener, peers))
    }

    /// Accepts what `streams` gives.
    #[must_use]
    pub fn within(streams: impl Stream<Item = io::Result<DuplexStream>> + Send + 'static) -> Self {
        Self(Kind::Within(Mutex::new(Box::pin(streams))))
    }

    /// Accepts the next connection. Whom a socket does not serve is told so by `words`.
    pub(super) fn poll_accept(&self, words: Words, context: &mut Context<'_>) -> Poll<io::Result<Socket>> {
        match &self.0 {
            Kind::Tcp(listener) => {
                let (stream, _) = ready!(listener.poll_accept(context))?;
                // Small replies must not wait for an acknowledgement of the one before.
                stream.set_nodelay(true)?;
                Poll::Ready(Ok(Socket::Tcp(stream)))
            }
            Kind::Tls(listener, tls) => {
                let (stream, peer) = ready!(listener.poll_accept(context))?;
                stream.set_nodelay(true)?;
                let address = CallerAddress::at(peer.ip());
                Poll::Ready(Ok(Socket::Tls(Box::new(tls.accept(stream, address.0)), address)))
            }
            Kind::Unix(listener, peers) => loop {
                let (stream, _) = ready!(listener.poll_accept(context))?;
                match peers.admit(&stream) {
                    Ok(()) => return Poll::Ready(Ok(Socket::Unix(stream))),
                    Err(stranger) => Socket::Unix(stream).turn_away(&words(&stranger.to_string())),
                }
            },
            Kind::Within(streams) => match ready!(streams.lock().as_mut().poll_next(context)) {
                Some(stream) => Poll::Ready(stream.map(Socket::Duplex)),
                // A listener has no end.
                None => Poll::Pending,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn a_gang_that_comes_at_once_is_not_sent_away_before_it_is_accepted() {
        let bound = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = bound.local_addr().expect("its address");
        // Nothing accepts from it.
        let _port = Listener::from(bound);
        let connecting = (0..200).map(|_| TcpStream::connect(address));
        let connected =
            tokio::time::timeout(Duration::from_secs(60), futures::future::try_join_all(connecting));
        assert_eq!(connected.await.expect("all wait to be accepted").expect("connected").len(), 200);
    }
}
