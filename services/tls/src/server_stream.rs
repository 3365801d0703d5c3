//! A connection whose handshake is made as it is read from or written to.

use std::future::Future as _;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};

use crate::limits::HANDSHAKE_TIME;
use crate::outcome::{Outcome, Refused};
use crate::port::Port;
use crate::presented::Presented;
use crate::rewound::Rewound;
use crate::server::ServerTls;

/// With this byte a handshake of TLS begins.
const HANDSHAKE: u8 = 0x16;

/// An accepted connection. Whoever reads from it or writes to it makes its handshake; nothing is written before the client
/// has said something.
#[derive(Debug)]
pub struct ServerStream<S> {
    state: State<S>,
    presented: Presented,
}

enum State<S> {
    /// Gone when it is taken from a place where it was.
    Gone,
    First(Box<Opening>, Rewound<S>),
    Shaking(Box<Opening>, Box<Accept<Rewound<S>>>),
    Protected(Box<TlsStream<Rewound<S>>>),
    Plain(Rewound<S>),
}

/// What is needed until the handshake is over.
struct Opening {
    server: ServerTls,
    from: Option<IpAddr>,
    time: Pin<Box<Sleep>>,
}

impl<S> std::fmt::Debug for State<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Gone => "Gone",
            Self::First(..) => "First",
            Self::Shaking(..) => "Shaking",
            Self::Protected(_) => "Protected",
            Self::Plain(_) => "Plain",
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> ServerStream<S> {
    pub(crate) fn new(server: ServerTls, stream: S, from: Option<IpAddr>) -> Self {
        let presented = Presented::to(server.clone());
        let opening = Opening { server, from, time: Box::pin(tokio::time::sleep(HANDSHAKE_TIME)) };
        Self { state: State::First(Box::new(opening), Rewound::new(stream)), presented }
    }

    /// Whom the client has proved to be, as soon as it has.
    #[must_use]
    pub fn presented(&self) -> Presented {
        self.presented.clone()
    }

    /// Takes the handshake as far as it goes. Ready when bytes of the protocol can be read and written.
    fn poll_open(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match &mut self.state {
                State::Protected(_) | State::Plain(_) => return Poll::Ready(Ok(())),
                State::Gone => return Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
                State::First(opening, stream) => {
                    let first = match stream.poll_first(context) {
                        Poll::Ready(first) => first,
                        Poll::Pending => ready!(opening.poll_late(context)),
                    };
                    self.begin(first)?;
                }
                State::Shaking(opening, accept) => {
                    let accepted = match Pin::new(accept).poll(context) {
                        Poll::Ready(accepted) => accepted,
                        Poll::Pending => ready!(opening.poll_late(context)),
                    };
                    self.end(accepted)?;
                }
            }
        }
    }

    /// What follows the first byte.
    fn begin(&mut self, first: io::Result<Option<u8>>) -> io::Result<()> {
        let State::First(opening, stream) = std::mem::replace(&mut self.state, State::Gone) else {
            return Ok(());
        };
        let first = match first {
            Ok(Some(first)) => first,
            // Whoever only looks whether somebody listens has made no handshake.
            Ok(None) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => return Err(opening.failed(error)),
        };
        if first == HANDSHAKE {
            let config = opening.server.config(&self.presented).map_err(io::Error::other)?;
            self.state = State::Shaking(opening, Box::new(TlsAcceptor::from(config).accept(stream)));
            return Ok(());
        }
        if opening.server.is_permissive {
            opening.note(Outcome::Plain, "plain text, which this port still takes");
            self.state = State::Plain(stream);
            return Ok(());
        }
        let refused = Refused::new(Outcome::Plain, "plain text, and this port takes TLS only");
        Err(opening.failed(refused.into()))
    }

    fn end(&mut self, accepted: io::Result<TlsStream<Rewound<S>>>) -> io::Result<()> {
        let State::Shaking(opening, _) = std::mem::replace(&mut self.state, State::Gone) else {
            return Ok(());
        };
        let stream = accepted.map_err(|error| opening.failed(error))?;
        let protocol = opening.server.port.protocol();
        // Clients of the HTTP port need not say which protocol they speak: there is one.
        if stream.get_ref().1.alpn_protocol() != Some(protocol) && opening.server.port != Port::Http {
            let text = "the client did not ask for the protocol of this port (ALPN)";
            return Err(opening.failed(Refused::new(Outcome::BadAlpn, text).into()));
        }
        opening.note(Outcome::Ok, "");
        self.presented.note_encrypted();
        self.state = State::Protected(Box::new(stream));
        Ok(())
    }
}

impl Opening {
    /// That the time is over, as whatever was waited for.
    fn poll_late<T>(&mut self, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        ready!(self.time.as_mut().poll(context));
        let text = format!("no handshake within {HANDSHAKE_TIME:?}");
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, text)))
    }

    fn failed(&self, error: io::Error) -> io::Error {
        self.note(Outcome::of(&error), &error.to_string());
        error
    }

    fn note(&self, outcome: Outcome, why: &str) {
        let Self { server, from, .. } = self;
        server.tls.handshakes().note(server.port, outcome, *from, why);
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for ServerStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_open(context))?;
        match &mut self.state {
            State::Protected(stream) => Pin::new(stream).poll_read(context, buffer),
            State::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            _ => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ServerStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_open(context))?;
        match &mut self.state {
            State::Protected(stream) => Pin::new(stream).poll_write(context, bytes),
            State::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            _ => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_open(context))?;
        match &mut self.state {
            State::Protected(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            State::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            _ => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Nothing is kept before the handshake is over.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.state {
            State::Protected(stream) => Pin::new(stream).poll_flush(context),
            State::Plain(stream) => Pin::new(stream).poll_flush(context),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.state {
            State::Protected(stream) => Pin::new(stream).poll_shutdown(context),
            State::Plain(stream) | State::First(_, stream) => Pin::new(stream).poll_shutdown(context),
            _ => {
                self.state = State::Gone;
                Poll::Ready(Ok(()))
            }
        }
    }
}
