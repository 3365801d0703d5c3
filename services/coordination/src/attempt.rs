//! How often gRPC itself has sent a call before.

use tonic::metadata::MetadataMap;

/// The mark that a client's retry policy sets on every attempt but the first.
const PREVIOUS: &str = "grpc-previous-rpc-attempts";

/// Attempts that gRPC makes of one call in its whole life, whatever the retry policy says.
const ATTEMPTS_MAX: u32 = 5;

/// Which attempt of its call a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attempt {
    previous: u32,
}

impl Attempt {
    /// The last one that gRPC makes.
    pub(crate) const LAST: Self = Self { previous: ATTEMPTS_MAX - 1 };

    /// Reads the mark. Without one, or with one that is no number, it is the first attempt.
    pub(crate) fn of(metadata: &MetadataMap) -> Self {
        let text = metadata.get(PREVIOUS).and_then(|value| value.to_str().ok());
        let digits = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        Self { previous: digits.and_then(|digits| digits.parse().ok()).unwrap_or(0) }
    }

    /// Whether an earlier attempt was sent, and may have been executed.
    pub(crate) fn is_retry(self) -> bool {
        self.previous > 0
    }

    /// Whether gRPC gives the call up if this attempt fails, too.
    pub(crate) fn is_last(self) -> bool {
        self.previous >= Self::LAST.previous
    }

    /// Whether at most one attempt comes after this one. What must be answered before gRPC gives up is answered from
    /// here on: the last attempt alone may come just before its connection is lost.
    pub(crate) fn is_nearly_last(self) -> bool {
        self.previous + 1 >= Self::LAST.previous
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str) -> Attempt {
        let mut metadata = MetadataMap::new();
        metadata.insert(PREVIOUS, text.parse().unwrap());
        Attempt::of(&metadata)
    }

    #[test]
    fn the_mark_counts_the_attempts_before_this_one() {
        assert_eq!(Attempt::of(&MetadataMap::new()), Attempt { previous: 0 });
        for previous in 1..=4 {
            assert_eq!(marked(&previous.to_string()), Attempt { previous });
        }
    }

    #[test]
    fn what_is_no_number_is_no_mark() {
        for garbage in ["", "x", "-1", "+4", "4.0", " 4", "4 ", "0x4", "99999999999"] {
            assert_eq!(marked(garbage), Attempt { previous: 0 }, "{garbage:?}");
        }
        let mut metadata = MetadataMap::new();
        metadata.insert(PREVIOUS, tonic::metadata::MetadataValue::try_from(&b"\xff4"[..]).unwrap());
        assert_eq!(Attempt::of(&metadata), Attempt { previous: 0 });
    }

    #[test]
    fn the_fifth_attempt_is_the_last() {
        let last: Vec<bool> = (0..=5).map(|previous| Attempt { previous }.is_last()).collect();
        assert_eq!(last, [false, false, false, false, true, true]);
        let nearly: Vec<bool> = (0..=5).map(|previous| Attempt { previous }.is_nearly_last()).collect();
        assert_eq!(nearly, [false, false, false, true, true, true]);
        assert!(!Attempt { previous: 0 }.is_retry() && Attempt { previous: 1 }.is_retry());
    }
}
