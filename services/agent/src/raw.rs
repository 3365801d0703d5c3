//! gRPC messages out of bodies, neither decoded nor encoded.

use bytes::Bytes;
use http_body_util::Full;
use tonic::Streaming;
use tonic::codec::CompressionEncoding;
use tripod_proto::raw::RawCodec;

/// Bytes of a message that is looked into: a registration, whose names have 63 characters, a heartbeat, and their answers.
/// What is kept of clients is of such.
pub(crate) const LOOKED_BYTES_MAX: usize = 1024;

/// The one message in a body: without gRPC's frame, uncompressed. `None` when there is none, or a longer one.
pub(crate) async fn message_of(body: Bytes, gzip: bool) -> Option<Bytes> {
    let encoding = gzip.then_some(CompressionEncoding::Gzip);
    let mut messages = Streaming::new_request(RawCodec, Full::new(body), encoding, Some(LOOKED_BYTES_MAX));
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
        let mut long = b"\0\0\0\x04\x01".to_vec();
        long.resize(5 + LOOKED_BYTES_MAX + 1, b'a');
        assert_eq!(message_of(long.into(), false).await, None, "nothing that is kept is as long");
    }
}
