//! Frames: four bytes, little-endian, with the length of what follows, and one message.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use prost::Message;

/// The bytes before a message.
const HEAD_BYTES: usize = 4;

/// A frame that announces more than it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message of {announced} bytes is announced, of at most {limit}")]
pub(super) struct TooLong {
    announced: usize,
    limit: usize,
}

/// Takes the first whole message off what was read.
pub(super) fn take(buffer: &mut BytesMut, limit: usize) -> Result<Option<Bytes>, TooLong> {
    let Some(head) = buffer.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
    let announced = usize::try_from(u32::from_le_bytes(*head)).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(TooLong { announced, limit });
    }
    if buffer.len() - HEAD_BYTES < announced {
        buffer.reserve(HEAD_BYTES + announced - buffer.len());
        return Ok(None);
    }
    buffer.advance(HEAD_BYTES);
    Ok(Some(buffer.split_to(announced).freeze()))
}

/// Adds a message with its length before it.
pub(super) fn put(message: &impl Message, buffer: &mut BytesMut) {
    let len = message.encoded_len();
    buffer.reserve(HEAD_BYTES + len);
    buffer.put_u32_le(u32::try_from(len).expect("messages are far below 4 GiB"));
    message.encode(buffer).expect("the buffer grows");
}

/// As [`put`], of a message that is encoded.
pub(super) fn put_encoded(message: &[u8], buffer: &mut BytesMut) {
    buffer.reserve(HEAD_BYTES + message.len());
    buffer.put_u32_le(u32::try_from(message.len()).expect("messages are far below 4 GiB"));
    buffer.put_slice(message);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tripod_proto::tripod::v1::LocalAbort;

    use super::*;

    #[test]
    fn half_a_frame_is_waited_for_and_a_long_one_refused() {
        let mut whole = BytesMut::new();
        put(&LocalAbort { objectid: 300 }, &mut whole);
        for end in 0..whole.len() {
            let mut half = BytesMut::from(&whole[..end]);
            assert_eq!(take(&mut half, 100), Ok(None));
        }
        let mut long = BytesMut::from(&[101, 0, 0, 0][..]);
        assert_eq!(take(&mut long, 100), Err(TooLong { announced: 101, limit: 100 }));
        let mut longest = BytesMut::from(&[255, 255, 255, 255][..]);
        assert!(take(&mut longest, 100).is_err());
    }

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in(ids in proptest::collection::vec(any::<u64>(), 0..20)) {
            let mut buffer = BytesMut::new();
            for id in &ids {
                put(&LocalAbort { objectid: *id }, &mut buffer);
            }
            for id in ids {
                let frame = take(&mut buffer, 100).expect("short").expect("whole");
                prop_assert_eq!(LocalAbort::decode(frame).expect("a message").objectid, id);
            }
            prop_assert_eq!(take(&mut buffer, 100), Ok(None));
        }

        #[test]
        fn no_bytes_are_too_bad(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut buffer = BytesMut::from(&bytes[..]);
            while let Ok(Some(frame)) = take(&mut buffer, 64) {
                _ = tripod_proto::tripod::v1::LocalRequest::decode(frame);
            }
        }
    }
}
