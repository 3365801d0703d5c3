//! Frames as they come from a node.

use std::io;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use prost::Message as _;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tripod_proto::mindspore::ps_core::MessageMeta;

use super::Failed;
use crate::wire::Broken;
use crate::wire::ps::{HEADER_BYTES, Header};

/// Bytes of a payload that are kept. A node says back what it was told, which may be a list of all nodes; what somebody
/// looks at is a few lines of JSON.
pub(super) const KEPT_BYTES_MAX: usize = 64 << 10;
/// Bytes that are asked for at a time.
const READ_BYTES_MAX: usize = 16 << 10;

/// What a node said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) meta: MessageMeta,
    /// The first bytes of it.
    pub(crate) payload: Bytes,
}

pub(super) struct Answers<R> {
    reader: R,
    /// What has come of the frame that is under way.
    buffer: BytesMut,
    /// Bytes of the payload before, that nobody looks at.
    rest: usize,
}

impl<R: AsyncRead + Unpin> Answers<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, buffer: BytesMut::new(), rest: 0 }
    }

    /// The next one. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Result<Answer, Failed> {
        loop {
            while self.rest > 0 {
                let read = self.more(self.rest).await?;
                self.buffer.clear();
                self.rest -= read;
            }
            let (kept, header) = match Header::read(&self.buffer)? {
                None => (HEADER_BYTES, None),
                Some(header) => {
                    let payload = header.message_bytes - header.meta_bytes;
                    (HEADER_BYTES + header.meta_bytes + payload.min(KEPT_BYTES_MAX), Some(header))
                }
            };
            match header {
                Some(header) if self.buffer.len() >= kept => return self.taken(header, kept),
                _ => {
                    self.more(kept - self.buffer.len()).await?;
                }
            }
        }
    }

    fn taken(&mut self, header: Header, kept: usize) -> Result<Answer, Failed> {
        let mut frame = self.buffer.split_to(kept).freeze();
        self.rest = HEADER_BYTES + header.message_bytes - kept;
        frame.advance(HEADER_BYTES);
        let meta = MessageMeta::decode(frame.split_to(header.meta_bytes)).map_err(Broken::Meta)?;
        Ok(Answer { meta, payload: frame })
    }

    /// Reads some of so many bytes, and nothing beyond.
    async fn more(&mut self, missing: usize) -> Result<usize, Failed> {
        let missing = missing.min(READ_BYTES_MAX);
        self.buffer.reserve(missing);
        let mut room = (&mut self.buffer).limit(missing);
        match self.reader.read_buf(&mut room).await? {
            0 => Err(Failed::Lost(io::ErrorKind::UnexpectedEof.into())),
            read => Ok(read),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;
    use crate::wire::ps::{Format, Frame};

    fn frame(request_id: u64, payload: Vec<u8>) -> Frame {
        let meta = MessageMeta { cmd: 7, request_id, ..MessageMeta::default() };
        Frame { format: Format::Raw, meta, payload: payload.into() }
    }

    #[tokio::test]
    async fn of_a_long_payload_the_first_bytes_are_kept_and_the_next_frame_is_found() {
        let frames = [frame(1, vec![1; 3 * KEPT_BYTES_MAX + 1]), frame(2, Vec::new()), frame(3, vec![3; 5])];
        let bytes: Vec<u8> = frames.iter().flat_map(|frame| frame.encode().to_vec()).collect();
        let (near, mut far) = tokio::io::duplex(1_000);
        let writing = tokio::spawn(async move { far.write_all(&bytes).await.unwrap() });
        let mut answers = Answers::new(near);
        for (frame, kept) in frames.into_iter().zip([KEPT_BYTES_MAX, 0, 5]) {
            let answer = answers.next().await.unwrap();
            assert_eq!((answer.meta, &answer.payload[..]), (frame.meta, &frame.payload[..kept]));
        }
        writing.await.unwrap();
        assert!(matches!(answers.next().await, Err(Failed::Lost(_))), "the node is gone");
    }

    #[tokio::test]
    async fn what_is_no_frame_ends_the_connection() {
        let mut answers = Answers::new(&b"GET / HTTP/1.1\r\n"[..]);
        assert!(matches!(answers.next().await, Err(Failed::Broken(Broken::Beginning { .. }))));
    }
}
