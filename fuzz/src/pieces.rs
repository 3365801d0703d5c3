//! Several byte strings in one input: a byte for the target, then each behind its length, which is cut to what is there. Any
//! bytes are such an input.

/// Pieces of one input at most.
const PIECES_MAX: usize = 256;

/// Puts them together. Pieces of more than 65,535 bytes are cut.
#[must_use]
pub(crate) fn join(first: u8, pieces: &[Vec<u8>]) -> Vec<u8> {
    let mut joined = vec![first];
    for piece in pieces {
        let length = u16::try_from(piece.len()).unwrap_or(u16::MAX);
        joined.extend_from_slice(&length.to_le_bytes());
        joined.extend_from_slice(&piece[..usize::from(length)]);
    }
    joined
}

/// Takes them apart.
#[must_use]
pub(crate) fn split(input: &[u8]) -> (u8, Vec<&[u8]>) {
    let Some((&first, mut rest)) = input.split_first() else { return (0, Vec::new()) };
    let mut pieces = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk() {
        if pieces.len() == PIECES_MAX {
            break;
        }
        let length = behind.len().min(usize::from(u16::from_le_bytes(*length)));
        let (piece, behind) = behind.split_at(length);
        pieces.push(piece);
        rest = behind;
    }
    (first, pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_taken_apart_as_they_were_put_together() {
        let pieces = vec![b"one".to_vec(), Vec::new(), vec![7; 300]];
        let joined = join(5, &pieces);
        let (first, split) = split(&joined);
        assert_eq!((first, split), (5, pieces.iter().map(Vec::as_slice).collect()));
    }
}
