//! HTTP/2 frames (RFC 9113, section 4 and 6.2).

use bytes::{Buf, BufMut, BytesMut};

/// What a client sends before its first frame.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of a frame's head.
pub(super) const HEAD_BYTES: usize = 9;
/// Bytes of a frame's payload that every peer may send; h2 advertises no more unless told to.
pub(super) const PAYLOAD_BYTES_MAX: usize = 1 << 14;

pub(super) const DATA: u8 = 0x0;
pub(super) const HEADERS: u8 = 0x1;
pub(super) const RESET: u8 = 0x3;
pub(super) const GOAWAY: u8 = 0x7;
pub(super) const CONTINUATION: u8 = 0x9;

/// A GOAWAY frame without an error that covers no stream: 8 bytes of payload, the last stream's id and
/// the error's code, all of them zero.
pub(super) const LAST_GOAWAY: [u8; HEAD_BYTES + 8] = [0, 0, 8, GOAWAY, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// The code of errors for peers that ask for too much.
const ENHANCE_YOUR_CALM: u32 = 0xb;

/// A GOAWAY frame that covers no stream, for a client that asks for too much, with a text for people.
pub(super) fn calm(why: &str) -> BytesMut {
    let mut frame = BytesMut::with_capacity(HEAD_BYTES + 8 + why.len());
    Head { payload_bytes: 8 + why.len(), kind: GOAWAY, flags: 0, stream: 0 }.put(&mut frame);
    frame.put_u32(0);
    frame.put_u32(ENHANCE_YOUR_CALM);
    frame.put_slice(why.as_bytes());
    frame
}

pub(super) const END_STREAM: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;
/// A stream dependency and a weight.
const PRIORITY_BYTES: usize = 5;
/// The highest bit of a stream id is reserved.
const STREAM_MASK: u32 = 0x7fff_ffff;

/// The first nine bytes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) payload_bytes: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl Head {
    /// The head at the front of `bytes`, if it is complete.
    pub(super) fn peek(bytes: &[u8]) -> Option<Self> {
        let mut bytes = bytes.get(..HEAD_BYTES)?;
        let payload_bytes = bytes.get_uint(3) as usize;
        let (kind, flags) = (bytes.get_u8(), bytes.get_u8());
        Some(Self { payload_bytes, kind, flags, stream: bytes.get_u32() & STREAM_MASK })
    }

    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn put(self, out: &mut BytesMut) {
        out.put_uint(self.payload_bytes as u64, 3);
        out.put_u8(self.kind);
        out.put_u8(self.flags);
        out.put_u32(self.stream);
    }
}

/// The part of a HEADERS or CONTINUATION payload that belongs to the header block; `None` if padding
/// or priority fields do not fit.
pub(super) fn fragment(head: Head, payload: &[u8]) -> Option<&[u8]> {
    if head.kind != HEADERS {
        return Some(payload);
    }
    let mut rest = payload;
    let mut padding = 0;
    if head.has(PADDED) {
        let (first, behind) = rest.split_first()?;
        padding = usize::from(*first);
        rest = behind;
    }
    if head.has(PRIORITY) {
        rest = rest.get(PRIORITY_BYTES..)?;
    }
    rest.get(..rest.len().checked_sub(padding)?)
}

/// Writes a header block as one HEADERS frame and as many CONTINUATION frames as it needs.
pub(super) fn put_block(stream: u32, end_stream: bool, block: &[u8], out: &mut BytesMut) {
    let mut rest = block;
    let mut kind = HEADERS;
    let mut flags = if end_stream { END_STREAM } else { 0 };
    loop {
        let (piece, behind) = rest.split_at(rest.len().min(PAYLOAD_BYTES_MAX));
        if behind.is_empty() {
            flags |= END_HEADERS;
        }
        Head { payload_bytes: piece.len(), kind, flags, stream }.put(out);
        out.extend_from_slice(piece);
        if behind.is_empty() {
            return;
        }
        (rest, kind, flags) = (behind, CONTINUATION, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_is_what_padding_and_priority_leave() {
        let head = |flags| Head { payload_bytes: 0, kind: HEADERS, flags, stream: 1 };
        assert_eq!(fragment(head(0), b"abc"), Some(&b"abc"[..]));
        assert_eq!(fragment(head(PADDED), b"\x02abcPP"), Some(&b"abc"[..]));
        assert_eq!(fragment(head(PRIORITY), b"12345abc"), Some(&b"abc"[..]));
        assert_eq!(fragment(head(PADDED | PRIORITY), b"\x0112345abcP"), Some(&b"abc"[..]));
        assert_eq!(fragment(head(PADDED), b"\x04abc"), None, "more padding than payload");
        assert_eq!(fragment(head(PADDED), b""), None);
        assert_eq!(fragment(head(PRIORITY), b"1234"), None);
    }

    #[test]
    fn a_long_block_is_continued() {
        let mut out = BytesMut::new();
        put_block(7, true, &vec![b'x'; PAYLOAD_BYTES_MAX + 1], &mut out);
        let first = Head::peek(&out).expect("a head");
        let payload_bytes = PAYLOAD_BYTES_MAX;
        assert_eq!(first, Head { payload_bytes, kind: HEADERS, flags: END_STREAM, stream: 7 });
        let second = Head::peek(&out[HEAD_BYTES + PAYLOAD_BYTES_MAX..]).expect("a head");
        assert_eq!(second, Head { payload_bytes: 1, kind: CONTINUATION, flags: END_HEADERS, stream: 7 });
        assert_eq!(out.len(), 2 * HEAD_BYTES + PAYLOAD_BYTES_MAX + 1);
    }
}
