//! Listeners, and the stream of connections that they accept.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::time::Sleep;
use tokio_stream::Stream;
use tripod_gateway::{CallerAddress, Place};
use tripod_local::Peers;
use tripod_proto::code::Code;

use super::adapter::Mended;
use super::doorway::Doorway;
use super::frame;
use crate::stop::Stopping;

/// How long to wait after a failed accept: without open file descriptors to spare, the next one
/// fails too.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Bytes that are taken of what a client without a place has said.
const TURNED_AWAY_BYTES: usize = 4 << 10;

/// Connections that are made within the process.
type Lines = Pin<Box<dyn Stream<Item = io::Result<DuplexStream>> + Send>>;

/// A bound socket, or what stands for one.
pub enum Listener {
    Tcp(TcpListener),
    /// With the users whom it serves.
    Unix(UnixListener, Peers),
    /// For simulations, whose clock stands still while a socket is waited for.
    Within(Mutex<Lines>),
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(listener) => listener.fmt(f),
            Self::Unix(listener, _) => listener.fmt(f),
            Self::Within(_) => f.write_str("Within"),
        }
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        tripod_gateway::end_when_lost(&listener);
        Self::Tcp(listener)
    }
}

/// For this user and root.
impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Self::Unix(listener, Peers::own(""))
    }
}

impl Listener {
    /// Accepts what `lines` gives.
    #[must_use]
    pub fn within(lines: impl Stream<Item = io::Result<DuplexStream>> + Send + 'static) -> Self {
        Self::Within(Mutex::new(Box::pin(lines)))
    }

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<Socket>> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = ready!(listener.poll_accept(context))?;
                // Small replies must not wait for an acknowledgement of the one before.
                stream.set_nodelay(true)?;
                Poll::Ready(Ok(Socket::Tcp(stream)))
            }
            Self::Unix(listener, peers) => loop {
                let (stream, _) = ready!(listener.poll_accept(context))?;
                match peers.admit(&stream) {
                    Ok(()) => return Poll::Ready(Ok(Socket::Unix(stream))),
                    Err(stranger) => Socket::Unix(stream).turn_away(&stranger.to_string()),
                }
            },
            Self::Within(lines) => match ready!(lines.lock().as_mut().poll_next(context)) {
                Some(line) => Poll::Ready(line.map(Socket::Line)),
                // A listener has no end.
                None => Poll::Pending,
            },
        }
    }
}

/// An accepted connection.
#[derive(Debug)]
pub enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    Line(DuplexStream),
}

impl Socket {
    /// Where its connection comes from. What has ended before it could be asked comes from nowhere else than here.
    fn address(&self) -> CallerAddress {
        match self {
            Self::Tcp(stream) => {
                stream.peer_addr().map_or(CallerAddress::default(), |peer| CallerAddress::at(peer.ip()))
            }
            Self::Unix(_) | Self::Line(_) => CallerAddress::default(),
        }
    }

    /// Tells the client why, as far as that can be done without waiting, and closes the connection. Without the settings
    /// that begin a connection the attempt to connect has failed, and clients who know other nodes try the next.
    fn turn_away(self, why: &str) {
        let (goaway, mut said) = (frame::calm(why), [0; TURNED_AWAY_BYTES]);
        // What has come is taken, or its being there would turn the end of the connection into a reset, which overtakes
        // what is written. It may be gone already, or its buffer too small: it is closed all the same.
        let _ = match &self {
            Self::Tcp(stream) => stream.try_read(&mut said).or(Ok(0)).and_then(|_| stream.try_write(&goaway)),
            Self::Unix(stream) => {
                stream.try_read(&mut said).or(Ok(0)).and_then(|_| stream.try_write(&goaway))
            }
            Self::Line(_) => Ok(0),
        };
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Line(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Line(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Line(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Unix(stream) => stream.is_write_vectored(),
            Self::Line(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Self::Unix(stream) => Pin::new(stream).poll_flush(context),
            Self::Line(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Line(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

/// A connection that has a place.
type Guest = (Socket, Place);

/// For this long a new connection waits while its node is cut off. gRPC tries another node after 250 ms, and
/// takes the one that answers first; if no other answers, this one is better than none.
const CUT_OFF_PAUSE: Duration = Duration::from_secs(1);
/// Connections that may wait like that; more are closed.
const WAITING_MAX: usize = 1024;

/// The connections of a listener, adapted. It never ends, and it yields no errors: a failed accept
/// concerns one connection, or will be over when descriptors are free again.
pub struct MendedIncoming {
    listener: Arc<Listener>,
    stopping: Stopping,
    doorway: Doorway,
    /// Those that have waited long enough, and the place of those that wait.
    waited: (mpsc::Sender<Guest>, mpsc::Receiver<Guest>),
    pause: Option<Pin<Box<Sleep>>>,
}

impl MendedIncoming {
    /// Accepts from `listener` for as long as it is polled.
    #[must_use]
    pub fn new(listener: Listener) -> Self {
        Self::until(listener, Stopping::never())
    }

    /// [`Self::new`], and the connections end when `stopping` says so.
    #[must_use]
    pub fn until(listener: Listener, stopping: Stopping) -> Self {
        Self::through(Arc::new(listener), stopping, Doorway::open())
    }

    /// [`Self::until`], and while contact is lost new connections wait a moment, so that clients who know other nodes
    /// prefer those. Each is counted, and closed if there is no place for it.
    #[must_use]
    pub fn through(listener: Arc<Listener>, stopping: Stopping, doorway: Doorway) -> Self {
        Self { listener, stopping, doorway, waited: mpsc::channel(WAITING_MAX), pause: None }
    }

    fn adapt(&self, (socket, place): Guest) -> Mended<Socket> {
        let address = socket.address();
        let account = self.doorway.memory.account();
        Mended::charged(socket, address, account, self.stopping.clone()).counted(place)
    }

    /// Counts a connection, or turns it away.
    fn admit(&self, socket: Socket) -> Option<Guest> {
        match self.doorway.connections.admit(socket.address().0) {
            Ok(place) => Some((socket, place)),
            Err(full) => {
                let code = Code::ConnectionsFull;
                socket.turn_away(&format!("{code}: {full}; connect to another node"));
                self.doorway.tell(full);
                None
            }
        }
    }

    /// Lets a connection wait, unless there is no room for it, which closes it.
    fn put_off(&self, guest: Guest) {
        let Ok(place) = self.waited.0.clone().try_reserve_owned() else { return };
        let mut contact = self.doorway.contact.clone();
        tokio::spawn(async move {
            // Either is good.
            let _ = tokio::time::timeout(CUT_OFF_PAUSE, contact.found()).await;
            place.send(guest);
        });
    }
}

impl Stream for MendedIncoming {
    type Item = io::Result<Mended<Socket>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        // A listener wakes only who asked it last, and that must be who accepts after this one.
        if this.stopping.is_begun() {
            return Poll::Pending;
        }
        loop {
            if let Poll::Ready(Some(guest)) = this.waited.1.poll_recv(context) {
                return Poll::Ready(Some(Ok(this.adapt(guest))));
            }
            if let Some(pause) = &mut this.pause {
                ready!(pause.as_mut().poll(context));
                this.pause = None;
            }
            match ready!(this.listener.poll_accept(context)) {
                Ok(socket) => match this.admit(socket) {
                    Some(guest) if this.doorway.contact.is_lost() => this.put_off(guest),
                    Some(guest) => return Poll::Ready(Some(Ok(this.adapt(guest)))),
                    None => {}
                },
                Err(error) => {
                    tracing::warn!(%error, "accept failed");
                    this.pause = Some(Box::pin(tokio::time::sleep(ACCEPT_PAUSE)));
                }
            }
        }
    }
}
