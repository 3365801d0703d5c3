//! How long the messages of a request are.

use crate::overlong::MESSAGE_BYTES_MAX;

/// gRPC's head of a message: whether it is compressed, and its length in four bytes.
const HEAD_BYTES: usize = 5;
/// What a byte of deflate's can become at most.
const UNPACKED_MAX: u64 = 1_032;

/// Follows the bytes of a request's body. What is announced counts only as it comes.
#[derive(Debug)]
pub(super) struct Messages {
    /// The call has one message, and whatever else comes is held beside it.
    is_unary: bool,
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
    /// Bytes of the message that are to come.
    left: u64,
    is_compressed: bool,
    /// Bytes of the messages that are held, as they came and unpacked.
    came: u64,
    unpacked: u64,
}

impl Messages {
    pub(super) fn new(is_unary: bool) -> Self {
        let head = [0; HEAD_BYTES];
        Self { is_unary, head, head_bytes: 0, left: 0, is_compressed: false, came: 0, unpacked: 0 }
    }

    /// Notes that `bytes` came, and gives how many are held for the messages.
    pub(super) fn advance(&mut self, mut bytes: &[u8]) -> u64 {
        while !bytes.is_empty() {
            if self.left > 0 {
                let here = self.left.min(bytes.len() as u64);
                self.left -= here;
                self.came += here;
                if self.is_compressed {
                    // Unpacked it may have any size up to that which the decoder refuses.
                    let most = (here * UNPACKED_MAX).min(MESSAGE_BYTES_MAX as u64);
                    self.unpacked = (self.unpacked + most).min(MESSAGE_BYTES_MAX as u64);
                }
                bytes = &bytes[usize::try_from(here).unwrap_or(bytes.len())..];
                continue;
            }
            if self.head_bytes == 0 && !self.is_unary {
                // The one before has been passed on.
                (self.came, self.unpacked) = (0, 0);
            }
            let here = (HEAD_BYTES - self.head_bytes).min(bytes.len());
            self.head[self.head_bytes..self.head_bytes + here].copy_from_slice(&bytes[..here]);
            self.head_bytes += here;
            self.came += here as u64;
            bytes = &bytes[here..];
            if self.head_bytes == HEAD_BYTES {
                let [flag, length @ ..] = self.head;
                self.is_compressed = flag != 0;
                self.left = u32::from_be_bytes(length).into();
                self.head_bytes = 0;
            }
        }
        self.came + self.unpacked
    }

    /// Whether a message has come in part.
    pub(super) fn is_open(&self) -> bool {
        self.left > 0 || self.head_bytes > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(flag: u8, bytes: u32) -> Vec<u8> {
        let mut message = vec![flag];
        message.extend(bytes.to_be_bytes());
        message
    }

    #[test]
    fn a_message_counts_as_far_as_it_has_come() {
        let mut messages = Messages::new(true);
        assert_eq!(messages.advance(&message(0, 60 << 20)), 5);
        assert_eq!(messages.advance(&[0; 1000]), 1005);
        assert!(messages.is_open());
    }

    #[test]
    fn one_of_a_stream_takes_the_place_of_the_one_before_and_no_other_does() {
        for (is_unary, held) in [(true, 2 * (5 + 3)), (false, 5 + 3)] {
            let mut messages = Messages::new(is_unary);
            let mut last = 0;
            for byte in [message(0, 3), vec![1; 3], message(0, 3), vec![1; 3]].concat() {
                last = messages.advance(&[byte]);
            }
            assert_eq!((last, messages.is_open()), (held, false));
        }
    }

    #[test]
    fn a_compressed_message_counts_as_the_largest_that_it_can_be() {
        let mut messages = Messages::new(true);
        messages.advance(&message(1, 100_000));
        assert_eq!(messages.advance(&[0; 10]), 5 + 10 + 10_320);
        assert_eq!(messages.advance(&[0; 99_990]), 5 + 100_000 + MESSAGE_BYTES_MAX as u64);
    }
}
