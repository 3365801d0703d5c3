//! A bounded list of events, of which the oldest make room.

use std::collections::VecDeque;

use super::{NodeEvent, NodeEventsSeen};

/// Events that are remembered: with the longest texts some two megabytes.
pub(super) const EVENTS_MAX: usize = 4_096;
/// Bytes of a name, and of a text, that are kept.
const TEXT_BYTES_MAX: usize = 256;
/// What is alike and no later than this after the one before is the same event.
const TOGETHER_MS: u64 = 60_000;
/// So many of the newest events are looked through for one that is alike.
const LOOKED_AT: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Ring {
    events: VecDeque<NodeEvent>,
    made: u64,
    merged: u64,
    dropped: u64,
    began_ms: u64,
}

impl Ring {
    pub(super) fn begun(at_ms: u64) -> Self {
        Self { began_ms: at_ms, ..Self::default() }
    }

    /// Something has happened, so many times.
    pub(super) fn add(&mut self, now_ms: u64, (kind, name): (&str, &str), mut text: String, times: u64) {
        shorten(&mut text);
        let is_alike = |event: &&mut NodeEvent| {
            event.kind == kind
                && event.name == name
                // A clock that was set back parts them, too.
                && (event.until_ms..=event.until_ms.saturating_add(TOGETHER_MS)).contains(&now_ms)
        };
        if let Some(event) = self.events.iter_mut().rev().take(LOOKED_AT).find(is_alike) {
            event.until_ms = now_ms;
            event.times = event.times.saturating_add(times);
            event.text = text;
            self.merged = self.merged.saturating_add(1);
            return;
        }
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
            self.dropped += 1;
        }
        self.made += 1;
        let (number, mut name) = (self.made, name.to_owned());
        shorten(&mut name);
        let (kind, at_ms, until_ms) = (kind.to_owned(), now_ms, now_ms);
        self.events.push_back(NodeEvent { number, at_ms, until_ms, kind, name, text, times });
    }

    pub(super) fn seen(&self) -> NodeEventsSeen {
        NodeEventsSeen {
            events: self.events.iter().cloned().collect(),
            made: self.made,
            merged: self.merged,
            dropped: self.dropped,
            began_ms: self.began_ms,
        }
    }
}

fn shorten(text: &mut String) {
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_alike_within_a_minute_is_one_event_and_has_the_last_words() {
        let mut ring = Ring::begun(5);
        ring.add(1_000, ("calls-failed", "/a"), "first".into(), 2);
        ring.add(2_000, ("calls-failed", "/b"), "other".into(), 1);
        ring.add(61_000, ("calls-failed", "/a"), "last".into(), 3);
        ring.add(121_001, ("calls-failed", "/a"), "later".into(), 1);
        let seen = ring.seen();
        let told: Vec<_> = seen
            .events
            .iter()
            .map(|event| (event.at_ms, event.until_ms, event.text.as_str(), event.times))
            .collect();
        assert_eq!(
            told,
            [(1_000, 61_000, "last", 5), (2_000, 2_000, "other", 1), (121_001, 121_001, "later", 1)]
        );
        assert_eq!((seen.made, seen.merged, seen.dropped, seen.began_ms), (3, 1, 0, 5));
    }

    #[test]
    fn a_clock_that_goes_back_begins_another_event() {
        let mut ring = Ring::default();
        ring.add(9_000, ("paused", ""), String::new(), 1);
        ring.add(8_000, ("paused", ""), String::new(), 1);
        assert_eq!(ring.seen().events.len(), 2);
    }

    #[test]
    fn the_oldest_make_room_and_are_counted_and_texts_are_short() {
        let mut ring = Ring::default();
        for number in 0..=EVENTS_MAX {
            ring.add(1, ("calls-failed", &number.to_string()), "x".repeat(1_000), 1);
        }
        let seen = ring.seen();
        assert_eq!((seen.events.len(), seen.dropped, seen.events[0].number), (EVENTS_MAX, 1, 2));
        assert!(seen.events.iter().all(|event| event.text.len() == TEXT_BYTES_MAX));
    }
}
