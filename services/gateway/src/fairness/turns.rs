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
    occupancy: Mutex<Occupancy>,
    refused: AtomicU64,
}

/// While somebody waits, there is no room for whoever is next.
#[derive(Debug)]
struct Occupancy {
    count: usize,
    bytes: u64,
    queue: Queue<oneshot::Sender<Turn>>,
}

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
        let occupancy = Mutex::new(Occupancy { count: 0, bytes: 0, queue: Queue::new() });
        Self { shared: Arc::new(Shared { limits, occupancy, refused: AtomicU64::new(0) }) }
    }

    /// A turn, if there is room and nobody waits.
    pub(crate) fn at_once(&self, bytes: u64) -> Option<Turn> {
        let mut occupancy = self.shared.occupancy.lock();
        if occupancy.queue.len() > 0 || !occupancy.has_room(bytes, self.shared.limits) {
            return None;
        }
        occupancy.enter(bytes);
        Some(Turn { shared: Arc::clone(&self.shared), bytes })
    }

    /// Waits for a turn. Whoever stops waiting leaves nothing behind.
    pub(crate) async fn wait(&self, caller: CallerConnection, bytes: u64) -> Turn {
        let (give, turn) = oneshot::channel();
        let ticket = self.shared.occupancy.lock().queue.push(caller, bytes, give);
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
        let occupancy = self.shared.occupancy.lock();
        TurnCounts {
            waiting: occupancy.queue.len() as u64,
            waited_total: occupancy.queue.total(),
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
    fn has_room(&self, bytes: u64, limits: Limits) -> bool {
        self.count == 0 || (self.count < limits.count && self.bytes.saturating_add(bytes) <= limits.bytes)
    }

    fn enter(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }

    /// Whoever is next, if there is room.
    fn next(&mut self, limits: Limits) -> Option<(oneshot::Sender<Turn>, u64)> {
        let bytes = self.queue.first_bytes()?;
        if !self.has_room(bytes, limits) {
            return None;
        }
        self.enter(bytes);
        self.queue.pop()
    }
}

impl Shared {
    /// Gives out what room there is.
    fn give(self: &Arc<Self>) {
        loop {
            // Told without the lock: a turn that nobody takes any more is given back at once.
            let next = self.occupancy.lock().next(self.limits);
            let Some((give, bytes)) = next else { return };
            drop(give.send(Turn { shared: Arc::clone(self), bytes }));
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut occupancy = self.shared.occupancy.lock();
        occupancy.count -= 1;
        occupancy.bytes -= self.bytes;
        drop(occupancy);
        self.shared.give();
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.shared.occupancy.lock().queue.remove(&self.ticket);
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
