//! The calls of one task.

use std::collections::VecDeque;

use tokio::time::Instant;
use tripod_state::Ticket;

use super::call::subject;
use super::{CallKind, CallOutcome, ShownCall, TaskCalls};

/// Calls of a task that wait at a time and are shown: a program has a few threads that call.
pub(super) const OPEN_MAX: usize = 8;
/// Ended calls of a task that are shown.
pub(super) const LAST_MAX: usize = 4;

#[derive(Default)]
pub(super) struct TaskEntry {
    open: Vec<Call>,
    /// The newest first.
    last: VecDeque<Call>,
}

struct Call {
    number: u64,
    kind: CallKind,
    subject: Box<str>,
    since: Instant,
    ended: Option<(CallOutcome, Instant)>,
}

impl TaskEntry {
    /// `false`: there is no room.
    pub(super) fn begin(&mut self, number: u64, kind: CallKind, ticket: &Ticket, now: Instant) -> bool {
        let has_room = self.open.len() < OPEN_MAX;
        if has_room {
            // Nearly every task has one at a time, and there are thousands of tasks.
            self.open.reserve_exact(1);
            self.open.push(Call { number, kind, subject: subject(ticket), since: now, ended: None });
        }
        has_room
    }

    pub(super) fn end(&mut self, number: u64, outcome: CallOutcome, now: Instant) {
        let Some(place) = self.open.iter().position(|call| call.number == number) else { return };
        let mut call = self.open.remove(place);
        if self.open.is_empty() {
            self.open = Vec::new();
        }
        call.ended = Some((outcome, now));
        self.last.truncate(LAST_MAX - 1);
        self.last.reserve_exact(1);
        self.last.push_front(call);
    }

    /// Whether a call of it waits.
    pub(super) fn waits(&self) -> bool {
        !self.open.is_empty()
    }

    pub(super) fn shown(&self, now: Instant) -> TaskCalls {
        let show = |call: &Call| ShownCall {
            kind: call.kind,
            subject: call.subject.to_string(),
            since: now.saturating_duration_since(call.since),
            ended: call.ended.map(|(outcome, at)| (outcome, now.saturating_duration_since(at))),
        };
        TaskCalls { open: self.open.iter().map(show).collect(), last: self.last.iter().map(show).collect() }
    }
}
