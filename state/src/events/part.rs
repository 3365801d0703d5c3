//! A bounded list of events, the oldest of which make room for the newest.

use std::sync::Arc;

use imbl::OrdMap;

use crate::events::{Event, RUN_MS};
use crate::ids::TimeMs;
use crate::memory::{of_map, of_shared};

/// So many of the newest events are looked at for one that a new one belongs to: runs of a few kinds that take turns.
const LOOK_BACK: usize = 4;

/// Events by number, within so many bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Part {
    events: OrdMap<u64, Arc<Event>>,
    /// Of all of them. Derived.
    bytes: u64,
}

impl Part {
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Event>> {
        self.events.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of the newest of the same run, if it began less than a second ago.
    pub(crate) fn run(&self, now: TimeMs, takes: impl Fn(&Event) -> bool) -> Option<u64> {
        let newest = self.events.iter().rev().take(LOOK_BACK);
        let recent = |event: &Event| now.0.saturating_sub(event.at.0) < RUN_MS.0;
        newest.map(|(_, event)| event).find(|event| recent(event) && takes(event)).map(|event| event.number)
    }

    /// Changes one that is there.
    pub(crate) fn change(&mut self, number: u64, change: impl FnOnce(&mut Event) -> bool) -> bool {
        let Some(event) = self.events.get_mut(&number) else { return false };
        let event = Arc::make_mut(event);
        self.bytes -= event.bytes();
        let changed = change(event);
        self.bytes += event.bytes();
        changed
    }

    pub(crate) fn push(&mut self, event: Arc<Event>) {
        self.bytes += event.bytes();
        let before = self.events.insert(event.number, event);
        debug_assert!(before.is_none(), "numbers ascend");
    }

    /// Drops the oldest ones until the rest is within both bounds. How many those were, and the time of the newest of them.
    pub(crate) fn keep(&mut self, bytes_max: u64, events_max: usize) -> (u64, TimeMs) {
        let (mut dropped, mut until) = (0, TimeMs(0));
        while self.bytes > bytes_max || self.events.len() > events_max {
            let number = self.events.get_min().map(|(number, _)| *number);
            let Some(oldest) = number.and_then(|number| self.events.remove(&number)) else { break };
            self.bytes -= oldest.bytes();
            until = until.max(oldest.until);
            dropped += 1;
        }
        (dropped, until)
    }

    /// What it takes of memory.
    pub(crate) fn weight(&self) -> u64 {
        self.weighed(self.bytes)
    }

    /// The same from all events.
    pub(crate) fn recounted(&self) -> u64 {
        self.weighed(self.events.values().map(|event| event.bytes()).sum())
    }

    fn weighed(&self, bytes: u64) -> u64 {
        let shared = (self.events.len() as u64).saturating_mul(of_shared::<Event>());
        of_map::<u64, Arc<Event>>(self.events.len()).saturating_add(shared).saturating_add(bytes)
    }
}
