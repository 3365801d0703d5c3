//! One connection to a node, for one connection of a client.

use std::io;

use bytes::{BufMut as _, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tripod_mindspore_wire::Broken;
use tripod_port::{Account, Short};

use super::incoming::{Held, READ_BYTES_MAX, hold};
use super::passed::Passed;
use crate::upstream::{LinkId, Plain};

/// A connection on which nothing is under way, or one frame.
pub(super) struct Open {
    /// The link to whose node it goes.
    pub(super) link: LinkId,
    stream: Plain,
    buffer: BytesMut,
}

/// Why no answer came by it.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("the connection is lost: {0}")]
    Lost(#[from] io::Error),
    #[error("it answers with what is no frame: {0}")]
    Broken(#[from] Broken),
    #[error("{0}")]
    Short(#[from] Short),
}

impl Open {
    pub(super) fn new(link: LinkId, stream: Plain) -> Self {
        Self { link, stream, buffer: BytesMut::new() }
    }

    /// Sends a frame and waits for the one that answers it. When this fails or is dropped, the connection is of no use any
    /// more.
    pub(super) async fn exchange<F: Passed>(
        &mut self,
        frame: &[u8],
        account: &Account,
    ) -> Result<Held<F>, NoAnswer> {
        self.stream.write_all(frame).await?;
        self.stream.flush().await?;
        let mut held = None;
        loop {
            if let Some(inner) = F::take(&mut self.buffer)? {
                return Ok(Held { inner, _held: held });
            }
            // Nothing beyond the frame is read, so that nothing of the next one is held.
            let missing = (F::bytes_of(&self.buffer)? - self.buffer.len()).min(READ_BYTES_MAX);
            hold(&mut held, (self.buffer.len() + missing) as u64, |bytes| account.answer(bytes))?;
            self.buffer.reserve(missing);
            let mut room = (&mut self.buffer).limit(missing);
            if self.stream.read_buf(&mut room).await? == 0 {
                return Err(NoAnswer::Lost(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }
}
