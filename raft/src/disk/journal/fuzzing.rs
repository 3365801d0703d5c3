//! A start on files of which every checksum is right and nothing else need be: see `crate::fuzzing`.

use std::collections::BTreeMap;

use super::engine::JournalOptions;
use super::frame::{self, FrameNumber, JournalId, Salt, SegmentHead, SegmentNumber};
use super::recovery;
use super::simulated::{Medium, SimFiles};
use crate::disk::DiskError;

const JOURNAL: JournalId = JournalId(7);
const OPTIONS: JournalOptions = JournalOptions { segment_bytes: 4 << 10, held_max: 2 };

/// Opens a journal of one segment with these bodies of frames, and these bytes behind them.
///
/// # Errors
/// It is refused.
pub(crate) fn recover_from(bodies: &[&[u8]], rest: &[u8]) -> Result<(), DiskError> {
    let number = SegmentNumber(1);
    let salt = Salt::new(JOURNAL, number);
    let mut content = Vec::new();
    SegmentHead::new(JOURNAL, number, OPTIONS.segment_bytes).encode(&mut content);
    for (place, body) in (1..).zip(bodies) {
        frame::encode(&mut content, salt, FrameNumber(place), [body, &[]]);
    }
    content.extend_from_slice(rest);
    let least = usize::try_from(OPTIONS.segment_bytes).expect("a small number");
    content.resize(content.len().max(least), 0);
    let files = SimFiles::holding(Medium::default(), &BTreeMap::from([(number.file_name(), content)]));
    // What people are shown must not be harder to read than what a node starts on.
    drop(super::inspect::inspect(&files, JOURNAL));
    recovery::recover(&files, JOURNAL, OPTIONS).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_frame_that_holds_nothing_is_damage() {
        let refused = recover_from(&[b""], b"").unwrap_err().to_string();
        assert!(refused.contains("does not begin with the values of the log"), "{refused}");
    }
}
