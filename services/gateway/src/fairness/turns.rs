//! The room for calls of one kind, and how what comes free of it is given out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tripod_port::CallerConnection;

use super::queue::{Queue, Ticket};

/// How much may be under way at a time. One call always may, however large it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) count: usize,
    /// Bytes of their commands together.
    pub(crate) bytes: u64,
}

/// What has become of calls that found no room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnCounts {
    /// Those that wait.
    pub waiting: u64,
    /// Those that have ever waited.
    pub waited_total: u64,
    /// Those that have been given up because their turn did not come for as long as calls are held.
    pub refused_total: u64,
}

/// The calls of one kind. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Turns {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limits: Limits,
    /// Looked at and changed in one go, so that a call for which there is room needs no lock.
    occupancy: AtomicU64,
    /// Locked by those who wait, and by those who end a turn while somebody waits.
    queue: Mutex<Queue<oneshot::Sender<Turn>>>,
    refused: AtomicU64,
}

/// What is under way, as one number.
#[derive(Debug, Clone, Copy)]
struct Occupancy(u64);

/// A call under way, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Turn {
    shared: Arc<Shared>,
    bytes: u64,
}

/// Who waits. Dropped, it leaves the queue; a turn that came meanwhile goes to the next.
struct Waiting<'a> {
    shared: &'a Arc<Shared>,
    ticket: Ticket,
    turn: oneshot::Receiver<Turn>,
}

impl Turns {
    pub(crate) fn new(limits: Limits) -> Self {
        let limits = Limits { bytes: limits.bytes.min(Occupancy::CALL_BYTES_MAX), ..limits };
        let (occupancy, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { shared: Arc::new(Shared { limits, occupancy, queue: Mutex::new(Queue::new()), refused }) }
    }

    /// A turn, if there is room and nobody waits.
    pub(crate) fn at_once(&self, bytes: u64) -> Option<Turn> {
        let bytes = bytes.min(Occupancy::CALL_BYTES_MAX);
        let enters = self.shared.enters(bytes, |occupancy| !occupancy.is_waited_for());
        enters.then(|| Turn { shared: Arc::clone(&self.shared), bytes })
    }

    /// Waits for a turn. Whoever stops waiting leaves nothing behind.
    pub(crate) async fn wait(&self, caller: CallerConnection, bytes: u64) -> Turn {
        let (give, turn) = oneshot::channel();
        let ticket = self.shared.push(caller, bytes.min(Occupancy::CALL_BYTES_MAX), give);
        let mut waiting = Waiting { shared: &self.shared, ticket, turn };
        // Room may have come since there was none.
        self.shared.give();
        (&mut waiting.turn).await.expect("who waits is told, or leaves")
    }

    /// Counts a call that waits no more for a turn that does not come.
    pub(crate) fn refuse(&self) {
        self.shared.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> TurnCounts {
        let queue = self.shared.queue.lock();
        TurnCounts {
            waiting: queue.len() as u64,
            waited_total: queue.total(),
            refused_total: self.shared.refused.load(Ordering::Relaxed),
        }
    }
}

impl TurnCounts {
    /// Of two kinds of calls together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            waiting: self.waiting + other.waiting,
            waited_total: self.waited_total + other.waited_total,
            refused_total: self.refused_total + other.refused_total,
        }
    }
}

impl Occupancy {
    /// Somebody waits; then there is no room for whoever comes.
    const WAITED_FOR: u64 = 1 << 63;
    /// Bits of the bytes. Between them and the flag are those of the count, for eight million calls.
    const BYTES_BITS: u32 = 40;
    /// A call more.
    const CALL: u64 = 1 << Self::BYTES_BITS;
    /// What one call counts as at most, and what all but one do together: half of what there are bits for. No command is as
    /// long.
    const CALL_BYTES_MAX: u64 = (Self::CALL - 1) / 2;

    fn is_waited_for(self) -> bool {
        self.0 & Self::WAITED_FOR != 0
    }

    fn count(self) -> u64 {
        (self.0 & !Self::WAITED_FOR) >> Self::BYTES_BITS
    }

    fn bytes(self) -> u64 {
        self.0 & (Self::CALL - 1)
    }

    fn has_room(self, bytes: u64, limits: Limits) -> bool {
        let may_count = self.count() < limits.count as u64;
        let may_bytes = self.bytes().saturating_add(bytes) <= limits.bytes;
        self.count() == 0 || (may_count && may_bytes)
    }
}

impl Shared {
    /// Whether there is room for a call with so many bytes, and it `may` go beside what is under way. If so it is under way,
    /// too.
    fn enters(&self, bytes: u64, may: impl Fn(Occupancy) -> bool) -> bool {
        let entered = |now| {
            let is_let_in = may(Occupancy(now)) && Occupancy(now).has_room(bytes, self.limits);
            is_let_in.then(|| now + Occupancy::CALL + bytes)
        };
        self.occupancy.fetch_update(Ordering::SeqCst, Ordering::SeqCst, entered).is_ok()
    }

    fn push(&self, caller: CallerConnection, bytes: u64, give: oneshot::Sender<Turn>) -> Ticket {
        let mut queue = self.queue.lock();
        let ticket = queue.push(caller, bytes, give);
        self.settle(&queue);
        ticket
    }

    /// Says whether somebody waits, as the locked queue knows.
    fn settle(&self, queue: &Queue<oneshot::Sender<Turn>>) {
        if queue.len() > 0 {
            self.occupancy.fetch_or(Occupancy::WAITED_FOR, Ordering::SeqCst);
        } else {
            self.occupancy.fetch_and(!Occupancy::WAITED_FOR, Ordering::SeqCst);
        }
    }

    /// Whoever is next, if there is room.
    fn next(&self) -> Option<(oneshot::Sender<Turn>, u64)> {
        let mut queue = self.queue.lock();
        let bytes = queue.first_bytes()?;
        if !self.enters(bytes, |_| true) {
            return None;
        }
        let next = queue.pop();
        self.settle(&queue);
        next
    }

    /// Gives out what room there is.
    fn give(self: &Arc<Self>) {
        // Told without the lock: a turn that nobody takes any more is given back at once.
        while let Some((give, bytes)) = self.next() {
            drop(give.send(Turn { shared: Arc::clone(self), bytes }));
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let before = self.shared.occupancy.fetch_sub(Occupancy::CALL + self.bytes, Ordering::SeqCst);
        // Whoever begins to wait after this looks for room itself.
        if Occupancy(before).is_waited_for() {
            self.shared.give();
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut queue = self.shared.queue.lock();
        queue.remove(&self.ticket);
        self.shared.settle(&queue);
        drop(queue);
        // It may have been what there was no room for.
        self.shared.give();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use futures::FutureExt as _;
    use tripod_port::CallerAddress;

    use super::*;

    const LIMITS: Limits = Limits { count: 3, bytes: 100 };

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    fn caller() -> CallerConnection {
        CallerConnection::from(CallerAddress::default())
    }

    type Waits<'a> = Pin<Box<dyn Future<Output = Turn> + 'a>>;

    /// Somebody who has begun to wait.
    fn waits(turns: &Turns, bytes: u64) -> Waits<'_> {
        let mut waits: Waits<'_> = Box::pin(turns.wait(caller(), bytes));
        assert!(waits.as_mut().now_or_never().is_none(), "there was room");
        waits
    }

    #[test]
    fn a_turn_that_ends_is_given_to_who_waits_and_to_nobody_before() {
        let turns = Turns::new(LIMITS);
        let mut under_way: Vec<_> = (0..LIMITS.count).map(|_| turns.at_once(1).unwrap()).collect();
        assert!(turns.at_once(0).is_none());
        let mut first = waits(&turns, 1);
        under_way.pop();
        assert!(turns.at_once(0).is_none(), "that room is the other's");
        assert!(first.as_mut().now_or_never().is_some());
        assert!(turns.at_once(0).is_some(), "and it has been given back");
        assert_eq!(turns.counts(), TurnCounts { waiting: 0, waited_total: 1, refused_total: 0 });
    }

    #[test]
    fn what_comes_and_goes_on_many_threads_never_is_beyond_the_limits_and_none_is_forgotten() {
        const CALLS: usize = 2_000;
        let turns = Turns::new(LIMITS);
        let (now, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        let call = |size: u64| {
            let turn = turns.at_once(size);
            let turn = turn.unwrap_or_else(|| runtime().block_on(turns.wait(caller(), size)));
            assert!(now.fetch_add(1, Ordering::SeqCst) < LIMITS.count as u64);
            assert!(bytes.fetch_add(size, Ordering::SeqCst) + size <= LIMITS.bytes);
            std::thread::yield_now();
            bytes.fetch_sub(size, Ordering::SeqCst);
            now.fetch_sub(1, Ordering::SeqCst);
            drop(turn);
        };
        std::thread::scope(|threads| {
            for size in [0, 1, 30, 60, 100] {
                threads.spawn(move || (0..CALLS).for_each(|_| call(size)));
            }
        });
        assert_eq!(turns.counts().waiting, 0);
        assert_eq!(turns.shared.occupancy.load(Ordering::SeqCst), 0, "no room is lost");
    }

    #[test]
    fn who_goes_while_it_waits_or_when_its_turn_has_come_takes_no_room_with_it() {
        let turns = Turns::new(Limits { count: 1, ..LIMITS });
        let under_way = turns.at_once(1).unwrap();
        let (goes, told, mut last) = (waits(&turns, 1), waits(&turns, 1), waits(&turns, 1));
        drop(goes);
        assert_eq!(turns.counts().waiting, 2);
        drop(under_way);
        assert_eq!(turns.counts().waiting, 1, "the second has its turn and does not know it");
        drop(told);
        assert!(last.as_mut().now_or_never().is_some());
        assert!(turns.at_once(1).is_some());
    }

    #[test]
    fn what_is_large_goes_when_there_is_nothing_beside_it_and_makes_way_when_it_is_given_up() {
        let turns = Turns::new(LIMITS);
        let small = turns.at_once(60).unwrap();
        let mut large = waits(&turns, 1_000);
        assert!(turns.at_once(1).is_none(), "it would overtake");
        let mut behind = waits(&turns, 1);
        drop(small);
        let alone = large.as_mut().now_or_never().expect("nothing is beside it");
        assert!(behind.as_mut().now_or_never().is_none());
        drop(alone);
        let _small = behind.as_mut().now_or_never().expect("room");
        let gives_up = waits(&turns, 1_000);
        let mut behind = waits(&turns, 1);
        drop(gives_up);
        assert!(behind.as_mut().now_or_never().is_some());
    }
}
