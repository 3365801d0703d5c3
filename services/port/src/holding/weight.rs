//! What a message becomes in memory when it is decoded.

/// Up to so many bytes a message counts as itself: a barrier's list of twenty thousand tasks in the widest dialect.
const SMALL_BYTES: u64 = 256 << 10;
/// What a byte beyond can become: two bytes are an empty message in a list, which is 32 in memory, and a list that grows
/// has twice what it needs, and beside it what it had before.
const LISTED: u64 = 40;
/// How a method's messages count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// As the bytes that came.
    Value,
    /// As the lists that they may be.
    Lists,
}

impl Weight {
    /// What so many bytes of messages count as.
    pub(super) fn weigh(self, bytes: u64) -> u64 {
        match self {
            Self::Value => bytes,
            Self::Lists => bytes.saturating_add((LISTED - 1) * bytes.saturating_sub(SMALL_BYTES)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_long_list_weighs_what_it_becomes() {
        let (lists, value) = (Weight::Lists, Weight::Value);
        assert_eq!([lists.weigh(SMALL_BYTES), value.weigh(60 << 20)], [SMALL_BYTES, 60 << 20]);
        assert!(lists.weigh(66 << 20) > 2_600 << 20, "what was seen of 66 MiB of empty tasks");
    }
}
