//! Tasks as they come in. The scheduler may send one twice, when it changes its leader in between.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tripod_proto::ray::ExecuteTaskRequest;

/// Attempts that are remembered, to recognise them. A leader that took over sends what was not reported: at most the
/// worker's slots.
const REMEMBERED: usize = 4_096;

/// What a worker is told, in the order in which it does it.
#[derive(Debug)]
pub(super) enum Item {
    Task(Box<ExecuteTaskRequest>),
    End,
}

/// The queue's end that is filled.
#[derive(Debug)]
pub(super) struct Inbox {
    sender: mpsc::UnboundedSender<Item>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    attempts: BTreeMap<u64, u32>,
    order: VecDeque<u64>,
}

impl Inbox {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Item>) {
        let (sender, items) = mpsc::unbounded_channel();
        (Self { sender, seen: Mutex::default() }, items)
    }

    /// Queues a task, unless this attempt of it, or a later one, is queued or was.
    pub(super) fn task(&self, request: ExecuteTaskRequest) {
        let is_new = match request.operationid {
            Some(operation) => self.seen.lock().note(operation, request.attempt),
            // A scheduler that names no attempts sends none twice.
            None => true,
        };
        if is_new {
            // A worker that ends takes no more.
            let _ = self.sender.send(Item::Task(Box::new(request)));
        }
    }

    /// The worker is to end after what is queued.
    pub(super) fn end(&self) {
        let _ = self.sender.send(Item::End);
    }
}

impl Seen {
    fn note(&mut self, operation: u64, attempt: u32) -> bool {
        match self.attempts.get_mut(&operation) {
            Some(last) if *last >= attempt => return false,
            Some(last) => *last = attempt,
            None => {
                self.attempts.insert(operation, attempt);
                self.order.push_back(operation);
            }
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.attempts.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(operation: u64, attempt: u32) -> ExecuteTaskRequest {
        ExecuteTaskRequest { operationid: Some(operation), attempt, ..ExecuteTaskRequest::default() }
    }

    #[test]
    fn an_attempt_that_comes_twice_is_executed_once_and_a_later_one_again() {
        let (inbox, mut items) = Inbox::new();
        for (operation, attempt) in [(0, 1), (1, 1), (0, 1), (0, 2), (0, 1)] {
            inbox.task(request(operation, attempt));
        }
        inbox.end();
        let mut told = Vec::new();
        while let Ok(Item::Task(task)) = items.try_recv() {
            told.push((task.operationid.unwrap(), task.attempt));
        }
        assert_eq!(told, [(0, 1), (1, 1), (0, 2)]);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut seen = Seen::default();
        for operation in 0..3 * REMEMBERED as u64 {
            assert!(seen.note(operation, 1));
        }
        assert_eq!((seen.attempts.len(), seen.order.len()), (REMEMBERED, REMEMBERED));
    }
}
