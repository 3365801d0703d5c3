//! What comes on a client's connection, frame by frame.

use std::future::Future;
use std::io;
use std::time::Duration;

use bytes::{BufMut as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, BufReader};
use tripod_mindspore_wire::{Frame, OPENING_BYTES, Opening};
use tripod_port::{Account, Charge, Deadlines, Messages, Short, Stopping, Timeouts};

use super::ended::Ended;
use super::passed::Passed;

/// As nodes have them: a worker opens both of its connections at once and says nothing on the second one before all are
/// there, for which they have ten minutes.
pub(super) const TIMEOUTS: Timeouts =
    Timeouts { begin: Duration::from_secs(900), message: Duration::from_secs(30), idle: None };
/// Bytes that are asked for at a time: what a frame claims is not held before it comes.
pub(super) const READ_BYTES_MAX: usize = 64 << 10;

/// Bytes of a frame are counted from when they are waited for until it is answered.
pub(super) struct Incoming<R> {
    reader: BufReader<R>,
    /// What has come of the frame that is under way.
    buffer: BytesMut,
    held: Option<Charge>,
    account: Account,
    deadlines: Deadlines,
    stopping: Stopping,
}

/// Something, and what counts its bytes for as long as it is there.
pub(super) struct Held<T> {
    pub(super) inner: T,
    pub(super) _held: Option<Charge>,
}

impl<R: AsyncRead + Unpin + Send> Incoming<R> {
    pub(super) fn new(reader: R, account: Account, deadlines: Deadlines, stopping: Stopping) -> Self {
        let reader = BufReader::new(reader);
        Self { reader, buffer: BytesMut::new(), held: None, account, deadlines, stopping }
    }

    /// Which protocol the client speaks; nothing is taken. `None`: the client or the agent ends before that is known.
    pub(super) async fn opening(&mut self) -> Result<Option<Opening>, Ended> {
        if !self.begun().await? {
            return Ok(None);
        }
        let (deadlines, stopping) = (self.deadlines.clone(), self.stopping.clone());
        let opening = async {
            loop {
                if let Some(first) = self.buffer.first_chunk::<OPENING_BYTES>() {
                    return Ok::<_, Ended>(Opening::of(*first));
                }
                self.more(OPENING_BYTES).await?;
            }
        };
        tokio::select! {
            biased;
            () = stopping.begun() => Ok(None),
            opening = deadlines.whole(async { Ok(opening.await) }) => opening?.map(Some),
        }
    }

    /// The next frame. `None`: the client ends between two, or the agent stops before it has come.
    /// If this is dropped, what has come of a frame is there for the next call.
    pub(super) async fn next<F: Frame>(&mut self) -> Result<Option<Held<F>>, Ended> {
        if !self.begun().await? {
            return Ok(None);
        }
        let (deadlines, stopping) = (self.deadlines.clone(), self.stopping.clone());
        let frame = async {
            loop {
                if let Some(inner) = F::take(&mut self.buffer)? {
                    return Ok::<_, Ended>(Held { inner, _held: self.held.take() });
                }
                let whole = F::bytes_of(&self.buffer)?;
                self.more(whole).await?;
            }
        };
        tokio::select! {
            biased;
            () = stopping.begun() => Ok(None),
            frame = deadlines.whole(async { Ok(frame.await) }) => frame?.map(Some),
        }
    }

    /// Waits for the first byte of a frame. `false`: the client or the agent ends.
    async fn begun(&mut self) -> Result<bool, Ended> {
        if !self.buffer.is_empty() {
            return Ok(true);
        }
        tokio::select! {
            biased;
            () = self.stopping.begun() => Ok(false),
            begun = self.deadlines.begun(&mut self.reader) => Ok(begun?),
        }
    }

    /// How much the buffer takes up once it has room for so many more bytes: one that grows is at least twice as large as
    /// before.
    fn room(&self, missing: usize) -> usize {
        let (needed, capacity) = (self.buffer.len() + missing, self.buffer.capacity());
        if needed > capacity { needed.max(2 * capacity) } else { capacity }
    }

    /// Reads some of what is missing of so many bytes, and nothing beyond.
    async fn more(&mut self, whole: usize) -> Result<(), Ended> {
        let missing = (whole - self.buffer.len()).min(READ_BYTES_MAX);
        let room = self.room(missing) as u64;
        hold(&mut self.held, room, |bytes| self.account.call(bytes))?;
        self.buffer.reserve(missing);
        let mut room = (&mut self.buffer).limit(missing);
        if self.reader.read_buf(&mut room).await? == 0 {
            return Err(Ended::Lost(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(())
    }
}

/// What comes before its turn, and what is given up of a client that has gone.
impl<R: AsyncRead + Unpin + Send, F: Passed> Messages<Held<F>> for Incoming<R> {
    type Error = Ended;

    fn message(&mut self) -> impl Future<Output = Result<Option<Held<F>>, Ended>> + Send {
        self.next::<F>()
    }

    fn bytes(message: &Held<F>) -> u64 {
        let Held { _held: held, .. } = message;
        held.as_ref().map_or(0, Charge::bytes)
    }

    fn patience(message: &Held<F>) -> Result<Option<Duration>, Ended> {
        Ok(message.inner.patience()?)
    }

    fn broken(ended: &Ended) -> Option<&io::Error> {
        match ended {
            Ended::Lost(error) => Some(error),
            _ => None,
        }
    }
}

/// Counts so many bytes, by a charge that is there already or by a new one.
pub(super) fn hold(
    held: &mut Option<Charge>,
    bytes: u64,
    new: impl FnOnce(u64) -> Result<Charge, Short>,
) -> Result<(), Short> {
    match held {
        Some(held) => held.set(bytes),
        None => {
            *held = Some(new(bytes)?);
            Ok(())
        }
    }
}
