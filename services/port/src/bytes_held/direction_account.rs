//! Who waits for room in one direction of a connection.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use parking_lot::Mutex;

/// Who waits goes on in the order in which they came.
#[derive(Debug)]
pub(super) struct DirectionAccount {
    /// Set before who begins to wait looks for room the last time, so that who makes room later sees it.
    is_waited_for: AtomicBool,
    queue: Mutex<Queue>,
}

#[derive(Debug)]
struct Queue {
    /// Whether one may always go on, however much is held: of messages that have come in part, and cannot all come
    /// whole, the first must.
    is_favouring: bool,
    /// By when they came.
    waiting: BTreeMap<u64, Waker>,
    /// Who has the right of way.
    favoured: Option<u64>,
    came: u64,
}

impl DirectionAccount {
    pub(super) fn new(is_favouring: bool) -> Self {
        let queue = Queue { is_favouring, waiting: BTreeMap::new(), favoured: None, came: 0 };
        Self { is_waited_for: AtomicBool::new(false), queue: Mutex::new(queue) }
    }

    /// Whether anybody waits, at a glance.
    pub(super) fn is_waited_for(&self) -> bool {
        self.is_waited_for.load(Ordering::SeqCst)
    }

    /// Whether it is the turn of who has this number, or comes now. If not, he has a number and is woken.
    pub(super) fn is_turn(
        &self,
        number: &mut Option<u64>,
        has_room: impl Fn() -> bool,
        waker: &Waker,
    ) -> bool {
        let mut queue = self.queue.lock();
        self.is_waited_for.store(true, Ordering::SeqCst);
        let is_turn = queue.is_turn(number, has_room(), waker);
        if is_turn {
            queue.wake(has_room());
        }
        self.settle(&queue);
        is_turn
    }

    /// Forgets who had this number, and wakes who is to go on next, if he can.
    pub(super) fn leave(&self, number: u64, has_room: impl Fn() -> bool) {
        let mut queue = self.queue.lock();
        queue.waiting.remove(&number);
        if queue.favoured == Some(number) {
            queue.favoured = None;
        }
        queue.wake(has_room());
        self.settle(&queue);
    }

    /// Wakes who is to go on next, if he can.
    pub(super) fn wake(&self, has_room: impl Fn() -> bool) {
        self.queue.lock().wake(has_room());
    }

    fn settle(&self, queue: &Queue) {
        self.is_waited_for.store(!queue.waiting.is_empty(), Ordering::SeqCst);
    }
}

impl Queue {
    fn is_turn(&mut self, number: &mut Option<u64>, has_room: bool, waker: &Waker) -> bool {
        let is_first = match *number {
            Some(own) if self.favoured == Some(own) => return true,
            Some(own) => self.waiting.first_key_value().is_none_or(|(first, _)| *first == own),
            None => self.waiting.is_empty(),
        };
        if is_first && has_room {
            self.waiting.pop_first();
            *number = None;
            return true;
        }
        let own = *number.get_or_insert_with(|| {
            self.came += 1;
            self.came
        });
        if is_first && self.may_favour() {
            self.waiting.remove(&own);
            self.favoured = Some(own);
            return true;
        }
        self.waiting.insert(own, waker.clone());
        false
    }

    fn wake(&self, has_room: bool) {
        if (has_room || self.may_favour())
            && let Some((_, waker)) = self.waiting.first_key_value()
        {
            waker.wake_by_ref();
        }
    }

    fn may_favour(&self) -> bool {
        self.is_favouring && self.favoured.is_none()
    }
}
