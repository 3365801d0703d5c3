//! Where the frames of what we write end.

use super::frame::{GOAWAY, HEAD_BYTES, Head};

/// Follows written bytes from the first one of a connection on. Costs a few instructions for each frame.
#[derive(Debug, Default)]
pub(super) struct Boundary {
    /// The first bytes of a head that has not been written whole.
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
    /// Bytes of the frame's payload that are still to come.
    payload_left: usize,
    /// All bytes so far.
    bytes: u64,
    goaways: u32,
}

impl Boundary {
    /// Notes that `bytes` were written, and calls `begun` for every frame whose head is complete now, with how
    /// many bytes there were before it.
    pub(super) fn advance(&mut self, mut bytes: &[u8], mut begun: impl FnMut(Head, u64)) {
        while !bytes.is_empty() {
            if self.payload_left > 0 {
                let here = self.payload_left.min(bytes.len());
                self.payload_left -= here;
                self.bytes += here as u64;
                bytes = &bytes[here..];
                continue;
            }
            let here = (HEAD_BYTES - self.head_bytes).min(bytes.len());
            self.head[self.head_bytes..self.head_bytes + here].copy_from_slice(&bytes[..here]);
            self.head_bytes += here;
            self.bytes += here as u64;
            bytes = &bytes[here..];
            if let Some(head) = Head::peek(&self.head[..self.head_bytes]) {
                self.head_bytes = 0;
                self.payload_left = head.payload_bytes;
                self.goaways += u32::from(head.kind == GOAWAY);
                begun(head, self.bytes - HEAD_BYTES as u64);
            }
        }
    }

    /// Whether the last frame is complete, so that another one may follow.
    pub(super) fn is_between_frames(&self) -> bool {
        self.head_bytes == 0 && self.payload_left == 0
    }

    /// How many GOAWAY frames have begun.
    pub(super) fn goaways(&self) -> u32 {
        self.goaways
    }
}

#[cfg(test)]
mod tests {
    use bytes::{BufMut, BytesMut};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn put(kind: u8, payload: &[u8], out: &mut BytesMut) {
        out.put_uint(payload.len() as u64, 3);
        out.put_u8(kind);
        out.put_u8(0);
        out.put_u32(1);
        out.extend_from_slice(payload);
    }

    proptest! {
        // A failure prints its input; files of old failures would only be litter.
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_ends_of_frames_are_found_wherever_writes_are_cut(
            frames in vec((0_u8..10, vec(any::<u8>(), 0..300)), 0..20),
            pieces in vec(1_usize..400, 1..20),
        ) {
            let mut bytes = BytesMut::new();
            let mut ends = vec![0];
            for (kind, payload) in &frames {
                put(*kind, payload, &mut bytes);
                ends.push(bytes.len());
            }
            let mut boundary = Boundary::default();
            let mut written = 0;
            let mut begins = Vec::new();
            for piece in pieces.iter().cycle() {
                prop_assert_eq!(boundary.is_between_frames(), ends.contains(&written));
                let next = bytes.len().min(written + piece);
                boundary.advance(&bytes[written..next], |_, at| begins.push(at as usize));
                written = next;
                if written == bytes.len() {
                    break;
                }
            }
            prop_assert!(boundary.is_between_frames());
            prop_assert_eq!(begins, &ends[..frames.len()]);
            let goaways = frames.iter().filter(|(kind, _)| *kind == GOAWAY).count();
            prop_assert_eq!(boundary.goaways() as usize, goaways);
        }
    }
}
