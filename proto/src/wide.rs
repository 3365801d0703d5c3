//! Ids of 128 bits, of which a message has each half in a field of its own: callers that know only the low one go on.

/// The id whose halves these are.
#[must_use]
pub const fn join(low: u64, high: u64) -> u128 {
    ((high as u128) << 64) | low as u128
}

/// Its halves: the low one first.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "the low half is what is left")]
pub const fn split(id: u128) -> (u64, u64) {
    (id as u64, (id >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_put_together_again() {
        for id in [0, 7, u128::from(u64::MAX), 1 << 64, u128::MAX - 5] {
            let (low, high) = split(id);
            assert_eq!(join(low, high), id);
        }
        assert_eq!(split((3 << 64) | 9), (9, 3));
    }
}
