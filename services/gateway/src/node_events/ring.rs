//! Bounded lists of events, of which the oldest make room. What callers can bring about has a list of its own, so that it
//! pushes out nothing of what the node has seen of itself.

use std::collections::VecDeque;

use super::{Kind, NodeEvent, NodeEventsSeen};

/// Events that are remembered: with the longest texts some two megabytes.
pub(super) const EVENTS_MAX: usize = 4_096;
/// Those of each list.
const PART_MAX: usize = EVENTS_MAX / 2;
/// Bytes of a name, and of a text, that are kept.
const TEXT_BYTES_MAX: usize = 256;
/// What is alike and no later than this after the one before is the same event.
const TOGETHER_MS: u64 = 60_000;
/// So many of the newest events of a list are looked through for one that is alike: more than there are RPCs, each with all
/// that can become of its calls.
const LOOKED_AT: usize = 1_024;

#[derive(Debug, Default)]
pub(super) struct Ring {
    /// What the node has seen of itself and of the others.
    own: Part,
    of_callers: Part,
    made: u64,
    merged: u64,
    began_ms: u64,
}

#[derive(Debug, Default)]
struct Part {
    events: VecDeque<NodeEvent>,
    dropped: u64,
}

impl Ring {
    pub(super) fn begun(at_ms: u64) -> Self {
        Self { began_ms: at_ms, ..Self::default() }
    }

    /// Something has happened, so many times.
    pub(super) fn add(&mut self, now_ms: u64, (kind, name): (Kind, &str), text: String, times: u64) {
        let part = if kind.is_of_callers() { &mut self.of_callers } else { &mut self.own };
        let (kind, name, text) = (kind.word().to_owned(), shortened(name.to_owned()), shortened(text));
        let is_alike = |event: &&mut NodeEvent| {
            event.kind == kind
                && event.name == name
                // A clock that was set back parts them, too.
                && (event.until_ms..=event.until_ms.saturating_add(TOGETHER_MS)).contains(&now_ms)
        };
        if let Some(event) = part.events.iter_mut().rev().take(LOOKED_AT).find(is_alike) {
            event.until_ms = now_ms;
            event.times = event.times.saturating_add(times);
            event.text = text;
            self.merged = self.merged.saturating_add(1);
            return;
        }
        if part.events.len() >= PART_MAX {
            part.events.pop_front();
            part.dropped += 1;
        }
        self.made += 1;
        let (number, at_ms, until_ms) = (self.made, now_ms, now_ms);
        part.events.push_back(NodeEvent { number, at_ms, until_ms, kind, name, text, times });
    }

    pub(super) fn seen(&self) -> NodeEventsSeen {
        let mut events: Vec<NodeEvent> =
            self.own.events.iter().chain(&self.of_callers.events).cloned().collect();
        events.sort_unstable_by_key(|event| event.number);
        let own_since_ms = self.own.since_ms(self.began_ms);
        NodeEventsSeen {
            events,
            made: self.made,
            merged: self.merged,
            dropped: self.own.dropped + self.of_callers.dropped,
            began_ms: self.began_ms,
            own_since_ms,
            since_ms: own_since_ms.max(self.of_callers.since_ms(self.began_ms)),
        }
    }
}

impl Part {
    /// Since when none is missing.
    fn since_ms(&self, began_ms: u64) -> u64 {
        self.events.front().filter(|_| self.dropped > 0).map_or(began_ms, |oldest| oldest.at_ms)
    }
}

fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_alike_within_a_minute_is_one_event_and_has_the_last_words() {
        let mut ring = Ring::begun(5);
        ring.add(1_000, (Kind::CallsFailed, "/a"), "first".into(), 2);
        ring.add(2_000, (Kind::CallsFailed, "/b"), "other".into(), 1);
        ring.add(61_000, (Kind::CallsFailed, "/a"), "last".into(), 3);
        ring.add(121_001, (Kind::CallsFailed, "/a"), "later".into(), 1);
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
        assert_eq!((seen.own_since_ms, seen.since_ms), (5, 5));
    }

    #[test]
    fn a_clock_that_goes_back_begins_another_event() {
        let mut ring = Ring::default();
        ring.add(9_000, (Kind::Paused, ""), String::new(), 1);
        ring.add(8_000, (Kind::Paused, ""), String::new(), 1);
        assert_eq!(ring.seen().events.len(), 2);
    }

    #[test]
    fn the_oldest_make_room_and_are_counted_and_texts_are_short() {
        let mut ring = Ring::default();
        for number in 0..=PART_MAX {
            ring.add(1, (Kind::CallsFailed, &number.to_string()), "x".repeat(1_000), 1);
        }
        let seen = ring.seen();
        assert_eq!((seen.events.len(), seen.dropped, seen.events[0].number), (PART_MAX, 1, 2));
        assert!(seen.events.iter().all(|event| event.text.len() == TEXT_BYTES_MAX));
    }

    #[test]
    fn whatever_callers_do_pushes_out_nothing_that_the_node_has_seen_itself() {
        let mut ring = Ring::begun(5);
        ring.add(7, (Kind::LeaderGone, "node 3"), "is heard no more".into(), 1);
        for number in 0..10_000_u64 {
            // No two of them are within a minute, so each is another event.
            ring.add(10 + number * 100_000, (Kind::CallsRefused, "/a"), String::new(), 1);
        }
        let seen = ring.seen();
        assert_eq!((seen.events[0].kind.as_str(), seen.events.len()), ("leader-gone", PART_MAX + 1));
        assert!(seen.events.is_sorted_by_key(|event| event.number));
        assert_eq!((seen.own_since_ms, seen.since_ms), (5, seen.events[1].at_ms));
    }

    #[test]
    fn calls_of_many_rpcs_that_take_turns_are_one_event_each_and_long_names_too() {
        let mut ring = Ring::default();
        let names: Vec<String> = (0..500).map(|number| format!("{number}{}", "n".repeat(300))).collect();
        for round in 0..10 {
            for name in &names {
                ring.add(round, (Kind::CallsRefused, name), String::new(), 1);
            }
        }
        let seen = ring.seen();
        assert_eq!((seen.events.len(), seen.merged, seen.dropped), (500, 4_500, 0));
        assert!(seen.events.iter().all(|event| event.times == 10));
    }
}
