//! gRPC messages as bytes, neither decoded nor encoded.

use bytes::{Buf, BufMut, Bytes};
use http_body_util::Full;
use tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Status, Streaming};

/// The codec of calls whose messages only travel through.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RawCodec;

impl Codec for RawCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

/// The one message in a body: without gRPC's frame, uncompressed. `None` when there is none.
pub(crate) async fn message_of(body: Bytes, gzip: bool) -> Option<Bytes> {
    let encoding = gzip.then_some(CompressionEncoding::Gzip);
    let mut messages = Streaming::new_request(
        RawCodec,
        Full::new(body),
        encoding,
        Some(tripod_coordination::MESSAGE_BYTES_MAX),
    );
    messages.message().await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_message_is_taken_out_of_its_frame() {
        let framed = Bytes::from_static(b"\0\0\0\0\x03abc");
        assert_eq!(message_of(framed.clone(), false).await.as_deref(), Some(&b"abc"[..]));
        assert_eq!(message_of(framed, true).await.as_deref(), Some(&b"abc"[..]), "the flag decides");
        assert_eq!(message_of(Bytes::from_static(b"\0\0\0\0\x03a"), false).await, None, "cut off");
        assert_eq!(message_of(Bytes::from_static(b"\x01\0\0\0\x03abc"), true).await, None, "no gzip");
    }
}
