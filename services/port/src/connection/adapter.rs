//! The adapter around an accepted connection.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;
use tripod_local::ConnectionPermit;

use super::connection_calls::{ConnectionCalls, Open};
use super::mender::Mender;
use super::opening::{Opening, Overdue};
use super::outgoing::Outgoing;
use super::parting::Parting;
use super::untaken::Untaken;
use crate::bytes_held::Account;
use crate::caller_address::CallerAddress;
use crate::stop::Stopping;

/// Bytes to make room for before a read.
const READ_BYTES: usize = 16 << 10;

/// Bytes that are given to h2 before the tasks of other connections run: with a small call a hundred bytes, more would
/// begin hundreds of calls of one client before anybody else's next.
const SPELL_BYTES: usize = READ_BYTES;

/// A connection whose authority values h2 can parse, on which every answer leaves at once, and which ends
/// well when its node stops.
pub struct Mended<S> {
    inner: S,
    outgoing: Outgoing,
    parting: Parting,
    untaken: Untaken,
    /// Gone as soon as the connection has turned out to be an ordinary one.
    filter: Option<Box<Filter>>,
    /// Gone when the first call has come.
    opening: Option<Opening>,
    /// Bytes that were given since the tasks of others could run.
    spell_bytes: usize,
    _permit: Option<ConnectionPermit>,
    _open: Open,
}

struct Filter {
    mender: Mender,
    /// Read and not judged yet.
    input: BytesMut,
    /// Judged and not given to h2 yet.
    output: BytesMut,
}

impl<S> Mended<S> {
    /// Adapts a connection from `address` from which nothing has been read yet, and which ends when `stopping` says so.
    /// Bytes are counted, and not bounded.
    pub fn new(inner: S, address: CallerAddress, stopping: Stopping) -> Self {
        Self::charged(inner, address, Account::default(), stopping)
    }

    /// [`Self::new`] with bytes counted in this account.
    pub(super) fn charged(inner: S, address: CallerAddress, account: Account, stopping: Stopping) -> Self {
        let filter = Filter { mender: Mender::new(), input: BytesMut::new(), output: BytesMut::new() };
        let calls = ConnectionCalls::from(address, account.clone());
        let open = calls.open();
        let parting = Parting::new(calls, stopping);
        let outgoing = Outgoing::new(parting.calls().clone());
        Self {
            inner,
            outgoing,
            parting,
            untaken: Untaken::of(account),
            filter: Some(Box::new(filter)),
            opening: Some(Opening::new()),
            spell_bytes: 0,
            _permit: None,
            _open: open,
        }
    }
}

impl<S> Mended<S> {
    pub(super) fn calls(&self) -> &ConnectionCalls {
        self.parting.calls()
    }

    /// Counted for as long as it is open.
    pub(super) fn counted(self, permit: ConnectionPermit) -> Self {
        Self { _permit: Some(permit), ..self }
    }
}

impl Filter {
    /// Reads until there is something to give, or the client has ended.
    fn fill<S: AsyncRead + Unpin>(
        &mut self,
        inner: &mut S,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while self.output.is_empty() {
            self.input.reserve(READ_BYTES);
            // The future keeps nothing between two polls, so it may be made anew each time.
            let read = ready!(pin!(inner.read_buf(&mut self.input)).poll(context))?;
            if read == 0 {
                self.mender.end(&mut self.input, &mut self.output);
                return Poll::Ready(Ok(()));
            }
            self.mender
                .feed(&mut self.input, &mut self.output)
                .map_err(|malformed| io::Error::new(io::ErrorKind::InvalidData, malformed))?;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Mended<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.spell_bytes >= SPELL_BYTES {
            // h2 reads until there is nothing, and tokio alone would let it go on for a megabyte.
            self.spell_bytes = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = self.poll_give(context, buffer);
        match read {
            Poll::Ready(_) => self.spell_bytes += buffer.filled().len() - before,
            Poll::Pending => self.spell_bytes = 0,
        }
        read
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Mended<S> {
    /// Gives h2 what there is.
    fn poll_give(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { inner, parting, untaken, filter, opening, .. } = self;
        if untaken.poll_stalled(context).is_ready() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes no answers")));
        }
        if let Some(read) = parting.read_instead(inner, context) {
            // Who was told to go for saying nothing, and stays, is left.
            let is_left = opening.as_mut().is_some_and(|opening| opening.poll(true, context).is_ready());
            return if is_left { Poll::Ready(Ok(())) } else { read };
        }
        let Some(active) = filter else {
            return Pin::new(inner).poll_read(context, buffer);
        };
        if active.output.is_empty() && active.mender.is_passing() {
            *filter = None;
            *opening = None;
            return Pin::new(inner).poll_read(context, buffer);
        }
        match active.fill(inner, context)? {
            Poll::Ready(()) => {}
            Poll::Pending => return overdue(opening, active, parting, context),
        }
        if active.mender.has_call() {
            *opening = None;
        }
        let given = active.output.len().min(buffer.remaining());
        buffer.put_slice(&active.output[..given]);
        active.output.advance(given);
        Poll::Ready(Ok(()))
    }
}

/// Nothing is there to be read. If that has been so for too long since the connection began, it ends.
fn overdue(
    opening: &mut Option<Opening>,
    active: &Filter,
    parting: &mut Parting,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    let Some(waited) = opening else { return Poll::Pending };
    match ready!(waited.poll(active.mender.has_preface(), context)) {
        Overdue::Part => {
            parting.part();
            Poll::Pending
        }
        Overdue::Close => {
            Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client began nothing")))
        }
    }
}

/// Not vectored: what h2 writes is gathered here.
impl<S: AsyncWrite + Unpin> AsyncWrite for Mended<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self { inner, outgoing, parting, untaken, .. } = &mut *self;
        untaken.note_write();
        if parting.is_begun() {
            return Poll::Ready(Ok(bytes.len()));
        }
        if outgoing.is_full() {
            outgoing.release();
            ready!(outgoing.poll_give(inner, context))?;
        }
        Poll::Ready(Ok(outgoing.take(bytes)))
    }

    /// h2 calls it when it has nothing more to write, and in between.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { inner, outgoing, parting, untaken, .. } = &mut *self;
        ready!(parting.poll_farewell(outgoing, inner, context))?;
        ready!(Pin::new(inner).poll_flush(context))?;
        untaken.note_flush(context);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { inner, outgoing, .. } = &mut *self;
        outgoing.release();
        ready!(outgoing.poll_give(inner, context))?;
        Pin::new(inner).poll_shutdown(context)
    }
}

impl<S> Connected for Mended<S> {
    type ConnectInfo = ConnectionCalls;

    fn connect_info(&self) -> ConnectionCalls {
        self.parting.calls().clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use tokio::io::AsyncWriteExt as _;

    use super::*;

    /// Far more than a connection may give in one go.
    const SAID_BYTES: usize = 1 << 20;
    /// What it may give, with the last read.
    const GIVEN_BYTES_MAX: usize = 32 << 10;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_connection_that_has_much_to_give_lets_others_run_in_between() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let (inner, mut client) = tokio::io::duplex(SAID_BYTES);
        // What is no HTTP/2 is given to h2 as it is.
        runtime.block_on(client.write_all(&vec![0; SAID_BYTES])).expect("there is room");
        let _entered = runtime.enter();
        let mut ours = Mended::new(inner, CallerAddress::default(), Stopping::never());
        let woken = Arc::new(Woken::default());
        let waker = Arc::clone(&woken).into();
        let (mut given, mut spell, mut spells) = (0, 0, 0);
        while given < SAID_BYTES {
            let mut bytes = [0; 8 << 10];
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut ours).poll_read(&mut Context::from_waker(&waker), &mut buffer) {
                Poll::Ready(read) => {
                    read.expect("a connection");
                    spell += buffer.filled().len();
                    given += buffer.filled().len();
                    assert!(spell <= GIVEN_BYTES_MAX, "{spell} bytes in one go");
                }
                Poll::Pending => {
                    spells += 1;
                    assert_eq!(woken.0.load(Ordering::Relaxed), spells, "it would rest for ever");
                    spell = 0;
                }
            }
        }
    }
}
