//! One direction of a connection: how much is held, and who waits for room.

use std::collections::BTreeMap;
use std::task::Waker;

/// Who waits goes on in the order in which they came.
#[derive(Debug)]
pub(super) struct DirectionAccount {
    /// Whether one may always go on, however much is held: of messages that have come in part, and cannot all come
    /// whole, the first must.
    is_favouring: bool,
    /// Bytes.
    pub(super) held: u64,
    /// By when they came.
    waiting: BTreeMap<u64, Waker>,
    /// Who has the right of way.
    favoured: Option<u64>,
    came: u64,
}

impl DirectionAccount {
    pub(super) fn new(is_favouring: bool) -> Self {
        Self { is_favouring, held: 0, waiting: BTreeMap::new(), favoured: None, came: 0 }
    }

    /// Whether it is the turn of who has this number, or comes now. If not, he has a number and is woken.
    pub(super) fn is_turn(&mut self, number: &mut Option<u64>, limit: u64, waker: &Waker) -> bool {
        let is_first = match *number {
            Some(own) if self.favoured == Some(own) => return true,
            Some(own) => self.waiting.first_key_value().is_none_or(|(first, _)| *first == own),
            None => self.waiting.is_empty(),
        };
        if is_first && self.held < limit {
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

    /// Forgets who had this number.
    pub(super) fn leave(&mut self, number: u64) {
        self.waiting.remove(&number);
        if self.favoured == Some(number) {
            self.favoured = None;
        }
    }

    /// Wakes who is to go on next, if he can.
    pub(super) fn wake(&self, limit: u64) {
        if (self.held < limit || self.may_favour())
            && let Some((_, waker)) = self.waiting.first_key_value()
        {
            waker.wake_by_ref();
        }
    }

    fn may_favour(&self) -> bool {
        self.is_favouring && self.favoured.is_none()
    }

    pub(super) fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }
}
