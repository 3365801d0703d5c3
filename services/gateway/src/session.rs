//! The gateway's own session: numbers its commands and knows which replies it still waits for.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tripod_state::Stamp;
use tripod_state::ids::{Sequence, SessionId};
use tripod_state::limits::SESSION_WINDOW;

/// How far the newest command may be ahead of the oldest unanswered one. Half of what the state
/// allows, so that the state never has to refuse one of ours.
const SPAN_MAX: usize = (SESSION_WINDOW / 2) as usize;

/// A session that is open in the replicated state.
pub(crate) struct Session {
    id: SessionId,
    numbers: Mutex<Numbers>,
    advanced: Notify,
}

/// Which sequence numbers are out. A ring: one flag a number from the floor to the newest.
struct Numbers {
    /// The lowest number whose reply is still awaited.
    floor: u64,
    answered: VecDeque<bool>,
}

/// One command under way. Dropped when its reply is here or its caller has gone: in both cases nobody
/// will send it again, so the state may forget its reply. A copy that is still on its way to the
/// leader is then refused by the state instead of executed late.
pub(crate) struct Flight {
    session: Arc<Session>,
    stamp: Stamp,
}

impl Session {
    pub(crate) fn new(id: SessionId) -> Arc<Self> {
        let numbers = Mutex::new(Numbers { floor: 1, answered: VecDeque::new() });
        Arc::new(Self { id, numbers, advanced: Notify::new() })
    }

    pub(crate) fn id(&self) -> SessionId {
        self.id
    }

    /// Takes the next number, unless the oldest unanswered command is too far behind.
    pub(crate) fn try_begin(self: &Arc<Self>) -> Option<Flight> {
        let (sequence, floor) = self.numbers.lock().begin()?;
        let stamp =
            Stamp { session: self.id, sequence: Sequence(sequence), acknowledged_below: Sequence(floor) };
        Some(Flight { session: Arc::clone(self), stamp })
    }

    /// Takes the next number; waits while the oldest unanswered command is too far behind, `None`
    /// when it still is at `deadline`.
    pub(crate) async fn begin(self: &Arc<Self>, deadline: Instant) -> Option<Flight> {
        loop {
            let advanced = self.advanced.notified();
            if let Some(flight) = self.try_begin() {
                return Some(flight);
            }
            tokio::time::timeout_at(deadline, advanced).await.ok()?;
        }
    }
}

impl Numbers {
    fn begin(&mut self) -> Option<(u64, u64)> {
        if self.answered.len() >= SPAN_MAX {
            return None;
        }
        let sequence = self.floor + self.answered.len() as u64;
        self.answered.push_back(false);
        Some((sequence, self.floor))
    }

    /// Whether the floor rose.
    fn finish(&mut self, sequence: u64) -> bool {
        let place = usize::try_from(sequence - self.floor).expect("a number under way is within the span");
        self.answered[place] = true;
        let before = self.floor;
        while self.answered.front() == Some(&true) {
            self.answered.pop_front();
            self.floor += 1;
        }
        self.floor > before
    }
}

impl Flight {
    pub(crate) fn stamp(&self) -> Stamp {
        self.stamp
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let rose = self.session.numbers.lock().finish(self.stamp.sequence.0);
        if rose {
            self.session.advanced.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(1)
    }

    async fn floor(session: &Arc<Session>) -> u64 {
        session.begin(soon()).await.unwrap().stamp().acknowledged_below.0
    }

    #[tokio::test(start_paused = true)]
    async fn the_floor_is_the_oldest_command_under_way() {
        let session = Session::new(SessionId(9));
        let first = session.begin(soon()).await.unwrap();
        let second = session.begin(soon()).await.unwrap();
        let third = session.begin(soon()).await.unwrap();
        assert_eq!((first.stamp().sequence, third.stamp().sequence), (Sequence(1), Sequence(3)));

        drop(second);
        assert_eq!(floor(&session).await, 1, "the first is still out");
        drop(first);
        assert_eq!(floor(&session).await, 3);
        drop(third);

        assert_eq!(floor(&session).await, 6, "two more numbers were used to ask");
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_that_stays_out_bounds_how_far_the_others_run_ahead() {
        let session = Session::new(SessionId(9));
        let oldest = session.begin(soon()).await.unwrap();
        for _ in 1..SPAN_MAX {
            drop(session.begin(soon()).await.unwrap());
        }
        assert!(session.begin(soon()).await.is_none(), "one more would leave the window");

        let waiting = tokio::spawn({
            let session = Arc::clone(&session);
            async move { session.begin(soon()).await.map(|flight| flight.stamp()) }
        });
        tokio::task::yield_now().await;
        drop(oldest);

        let stamp = waiting.await.unwrap().expect("the floor rose");
        assert_eq!(stamp.sequence.0, SPAN_MAX as u64 + 1);
        assert_eq!(stamp.acknowledged_below, stamp.sequence);
    }
}
