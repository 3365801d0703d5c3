//! What comes on a connection, frame by frame.

use std::io;
use std::time::Duration;

use bytes::{BufMut as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, BufReader};
use tripod_port::{Account, Charge, Deadlines, Stopping, Timeouts};

use super::ended::Ended;
use crate::wire::{Frame, OPENING_BYTES, Opening};

/// A worker opens both of its connections at once and says nothing on the second one before all nodes are there, for which
/// they have ten minutes. A frame is told whole or not at all, and between two of them anybody may rest.
pub(crate) const TIMEOUTS: Timeouts =
    Timeouts { begin: Duration::from_secs(900), message: Duration::from_secs(30), idle: None };
/// Bytes that are asked for at a time: what a frame claims is not held before it comes.
const READ_BYTES_MAX: usize = 64 << 10;

/// Bytes of a frame are counted from when they are waited for until it is answered.
pub(crate) struct Incoming<R> {
    reader: BufReader<R>,
    /// What has come of the frame that is under way.
    buffer: BytesMut,
    held: Option<Charge>,
    account: Account,
    deadlines: Deadlines,
    stopping: Stopping,
}

/// A frame, and what it holds until it is answered.
pub(crate) struct Received<F> {
    pub(crate) frame: F,
    pub(crate) _held: Option<Charge>,
}

impl<R: AsyncRead + Unpin + Send> Incoming<R> {
    pub(crate) fn new(reader: R, account: Account, deadlines: Deadlines, stopping: Stopping) -> Self {
        let reader = BufReader::new(reader);
        Self { reader, buffer: BytesMut::new(), held: None, account, deadlines, stopping }
    }

    /// Which protocol the client speaks; nothing is taken. `None`: the client or the port ends before that is known.
    pub(crate) async fn opening(&mut self) -> Result<Option<Opening>, Ended> {
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

    /// The next frame. `None`: the client ends between two, or the port stops before it has come.
    /// If this is dropped, what has come of a frame is there for the next call.
    pub(crate) async fn next<F: Frame>(&mut self) -> Result<Option<Received<F>>, Ended> {
        if !self.begun().await? {
            return Ok(None);
        }
        let (deadlines, stopping) = (self.deadlines.clone(), self.stopping.clone());
        let frame = async {
            loop {
                if let Some(frame) = F::take(&mut self.buffer)? {
                    return Ok::<_, Ended>(Received { frame, _held: self.held.take() });
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

    /// All that comes, with what has come: for a protocol that is not framed here. What was held for the beginning is not
    /// held any more.
    pub(crate) fn into_rest(self) -> impl AsyncRead + Unpin + Send {
        io::Cursor::new(self.buffer).chain(self.reader)
    }

    /// Waits for the first byte of a frame. `false`: the client or the port ends.
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
        self.hold(self.room(missing) as u64)?;
        self.buffer.reserve(missing);
        let mut room = (&mut self.buffer).limit(missing);
        if self.reader.read_buf(&mut room).await? == 0 {
            return Err(Ended::Lost(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(())
    }

    fn hold(&mut self, bytes: u64) -> Result<(), Ended> {
        match &mut self.held {
            Some(held) => held.set(bytes)?,
            None => self.held = Some(self.account.call(bytes)?),
        }
        Ok(())
    }
}
