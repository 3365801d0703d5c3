//! A connection with frames of one protocol.

use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::BytesMut;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Failure;
use super::frames::Frame;

/// How long opening a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Line {
    stream: TcpStream,
    buffer: BytesMut,
}

impl Line {
    pub(super) async fn open(address: &str) -> Result<Self, Failure> {
        let opening = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address));
        match opening.await {
            Ok(Ok(stream)) => Ok(Self::of(stream)),
            Ok(Err(error)) => Err(Failure::Unsent(format!("{address}: {error}"))),
            Err(_) => Err(Failure::Unsent(format!("{address}: no connection within {CONNECT_TIMEOUT:?}"))),
        }
    }

    pub(super) fn of(stream: TcpStream) -> Self {
        // A socket that has just ended tells so with the first byte.
        let _ = stream.set_nodelay(true);
        Self { stream, buffer: BytesMut::new() }
    }

    pub(super) async fn send<F: Frame>(&mut self, frame: &F) -> anyhow::Result<()> {
        self.stream.write_all(&frame.encode()).await.context("cannot send")
    }

    /// The next frame.
    ///
    /// # Errors
    /// The other side ended the connection, or sent no frame.
    pub(super) async fn hear<F: Frame>(&mut self) -> anyhow::Result<F> {
        loop {
            if let Some(frame) = F::take(&mut self.buffer)? {
                if self.buffer.is_empty() {
                    // Thousands of nodes that are quiet hold no buffers.
                    self.buffer = BytesMut::new();
                }
                return Ok(frame);
            }
            if self.stream.read_buf(&mut self.buffer).await.context("cannot read")? == 0 {
                bail!("the connection ended");
            }
        }
    }
}

/// A part of the way that has a limit; beyond it, and after every error, what was sent may have been done.
pub(super) async fn within<T>(
    limit: Duration,
    part: impl Future<Output = anyhow::Result<T>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(limit, part).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(Failure::Unanswered(format!("{error:#}"))),
        Err(_) => Err(Failure::Unanswered(format!("no answer within {limit:?}"))),
    }
}
