//! What becomes of an input: a few bytes are changed, lost, repeated or put elsewhere.

use crate::source::Source;

/// Bytes that end, lengthen or nest something in most encodings.
const TELLING: &[u8] = &[0, 1, 2, 7, 8, 10, 18, 0x1a, 0x7f, 0x80, 250, 251, 252, 253, 254, 255];
/// Bytes of an input at most: what is larger is the subject of tests of their own, and would be all that there is time for.
pub(crate) const INPUT_BYTES_MAX: usize = 256 << 10;
/// How often a piece is repeated to nest or lengthen something beyond a bound.
const REPEATED_MAX: usize = 2_000;

/// Makes one to eight changes.
pub(crate) fn mutate(source: &mut Source, bytes: &mut Vec<u8>) {
    for _ in 0..1 + source.below(8) {
        change(source, bytes);
    }
    bytes.truncate(INPUT_BYTES_MAX);
}

fn change(source: &mut Source, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        bytes.extend(source.bytes(8));
        return;
    }
    let at = source.below(bytes.len());
    let piece = at..bytes.len().min(at + 1 + source.below(12));
    match source.below(10) {
        0 => bytes[at] ^= 1 << source.below(8),
        1 | 2 => bytes[at] = *source.pick(TELLING),
        3 => bytes.truncate(at),
        4 => drop(bytes.drain(piece)),
        5 => {
            let copy = bytes[piece].to_vec();
            bytes.splice(at..at, copy);
        }
        6 => {
            let copy = bytes[piece].to_vec();
            let to = source.below(bytes.len());
            bytes.splice(to..to, copy);
        }
        7 => {
            let more = source.bytes(4);
            bytes.splice(at..at, more);
        }
        8 => {
            // A number in the place of another one, as long as it may be.
            let number = source.number().to_le_bytes();
            let width = *source.pick(&[1, 2, 4, 8]);
            let end = bytes.len().min(at + width);
            bytes.splice(at..end, number[..width].iter().copied());
        }
        _ if source.one_in(20) => {
            let copy = bytes[piece].repeat(1 + source.below(REPEATED_MAX));
            bytes.splice(at..at, copy);
        }
        _ => bytes[at] = bytes[at].wrapping_add(1),
    }
}
