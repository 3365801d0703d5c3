//! The events of a job, or of the cluster: milestones, and traffic that never pushes them out.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::events::part::Part;
use crate::events::{Event, MILESTONE_BYTES_MAX, Position, TRAFFIC_BYTES_MAX, Tasks, What};
use crate::ids::{LogIndex, TaskId, TimeMs};

/// What a ring knows of events that it may not have any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Head {
    /// When it began: before, nothing was told.
    pub(crate) began: TimeMs,
    /// Events so far, which is the number of the newest one.
    pub(crate) made: u64,
    /// What was told by an event that was there.
    pub(crate) merged: u64,
    /// The newest change.
    pub(crate) last: Position,
    pub(crate) milestones: Dropped,
    pub(crate) traffic: Dropped,
}

impl Head {
    /// Whether a snapshot may hold it, with so many events: its counts have room for what comes.
    pub(crate) fn is_legal(&self, events: u64) -> bool {
        let dropped = self.milestones.events.saturating_add(self.traffic.events);
        let most = u64::MAX / 2;
        self.made > 0
            && self.made.max(self.merged) <= most
            && self.made == events.saturating_add(dropped)
            && self.last.sequence <= u32::MAX / 2
    }
}

/// Events that made room for others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Dropped {
    pub(crate) events: u64,
    /// The log's time of the newest of them: behind it none is missing.
    pub(crate) until: TimeMs,
}

/// Bounded lists of events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Ring {
    pub(crate) head: Head,
    pub(crate) milestones: Part,
    pub(crate) traffic: Part,
}

impl Ring {
    pub(crate) fn is_empty(&self) -> bool {
        self.head.made == 0
    }

    /// Tells another one by an event that is there, if a run of the same is going on. In kinds of which all are one run
    /// whatever they say `what` may say nothing: its words are not taken.
    pub(crate) fn join(
        &mut self,
        (index, now): (LogIndex, TimeMs),
        what: &What,
        task: Option<TaskId>,
    ) -> bool {
        let last = self.next(index);
        let is_milestone = what.is_milestone();
        let part = self.part_mut(is_milestone);
        let Some(run) = part.run(now, |event| event.what.takes(what)) else { return false };
        if !part.change(run, |event| event.merge(what, task, last, now)) {
            return false;
        }
        self.head.last = last;
        self.head.merged += 1;
        self.make_room(is_milestone);
        true
    }

    /// Adds an event.
    pub(crate) fn add(&mut self, (index, now): (LogIndex, TimeMs), what: What, task: Option<TaskId>) {
        let at = self.next(index);
        if self.is_empty() {
            self.head.began = now;
        }
        self.head.made += 1;
        self.head.last = at;
        let is_milestone = what.is_milestone();
        let tasks = task.map(Tasks::of).unwrap_or_default();
        let (number, times) = (self.head.made, 1);
        let event = Event { number, what, tasks, times, first: at, last: at, at: now, until: now };
        self.part_mut(is_milestone).push(Arc::new(event));
        self.make_room(is_milestone);
    }

    /// Every event, as they began.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Arc<Event>> {
        let mut milestones = self.milestones.iter().peekable();
        let mut traffic = self.traffic.iter().peekable();
        std::iter::from_fn(move || match (milestones.peek(), traffic.peek()) {
            (Some(one), Some(other)) if one.number < other.number => milestones.next(),
            (Some(_), None) => milestones.next(),
            _ => traffic.next(),
        })
    }

    /// Bytes of its events, as its bounds count them.
    pub(crate) fn bytes(&self) -> u64 {
        self.milestones.bytes() + self.traffic.bytes()
    }

    fn part_mut(&mut self, is_milestone: bool) -> &mut Part {
        if is_milestone { &mut self.milestones } else { &mut self.traffic }
    }

    fn next(&self, index: LogIndex) -> Position {
        let sequence =
            if self.head.last.index == index { self.head.last.sequence.saturating_add(1) } else { 1 };
        Position { index, sequence }
    }

    fn make_room(&mut self, is_milestone: bool) {
        let (part, most, dropped) = if is_milestone {
            (&mut self.milestones, MILESTONE_BYTES_MAX, &mut self.head.milestones)
        } else {
            (&mut self.traffic, TRAFFIC_BYTES_MAX, &mut self.head.traffic)
        };
        if part.bytes() > most {
            let (events, until) = part.keep(most, usize::MAX);
            dropped.events += events;
            dropped.until = dropped.until.max(until);
        }
    }
}
