//! What a node holds for one connection.

use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::budget::Budget;
use super::charge::{Charge, Kind};
use super::direction_account::DirectionAccount;
use super::limits::{
    BEAT_BYTES_FREE, CONNECTION_BYTES_FREE, CONNECTION_WINDOW_BYTES, MemoryLimits, REFUSALS_UNREAD_MAX,
};
use super::short::Short;
use super::turn::Turn;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Requests, and calls that run or wait.
    Requests,
    Answers,
}

/// The bytes of one connection. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Account {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    budget: Budget,
    state: Mutex<State>,
    /// Of answers that are large before they are sent, one is made at a time.
    making: Arc<Semaphore>,
}

#[derive(Debug)]
pub(super) struct State {
    requests: DirectionAccount,
    answers: DirectionAccount,
    /// Bytes of heartbeats that are in neither.
    beats: u64,
    /// Of the requests' bytes, those of calls that have ended and whose answers may not have been written.
    ended: u64,
    /// Calls that were refused since all was written the last time.
    refusals: u64,
    /// The answers' bytes by the period in which they were made or last taken of, the current one and the one before.
    by_period: [u64; 2],
    /// Which of both is the current one.
    period: usize,
    /// What lies unread is counted, because requests wait.
    is_window_held: bool,
}

impl State {
    fn new() -> Self {
        Self {
            requests: DirectionAccount::new(true),
            // Answers go as they are read, and never wait for each other.
            answers: DirectionAccount::new(false),
            beats: 0,
            ended: 0,
            refusals: 0,
            by_period: [0; 2],
            period: 0,
            is_window_held: false,
        }
    }

    fn part(&mut self, direction: Direction) -> &mut DirectionAccount {
        match direction {
            Direction::Requests => &mut self.requests,
            Direction::Answers => &mut self.answers,
        }
    }

    fn held(&self) -> u64 {
        self.requests.held + self.answers.held
    }
}

impl Default for Account {
    /// Without a limit.
    fn default() -> Self {
        Budget::new(MemoryLimits::none()).account()
    }
}

impl Account {
    pub(super) fn of(budget: Budget) -> Self {
        Self {
            shared: Arc::new(Shared {
                budget,
                state: Mutex::new(State::new()),
                making: Arc::new(Semaphore::new(1)),
            }),
        }
    }

    /// The node's.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.shared.budget
    }

    /// Holds bytes of a call.
    ///
    /// # Errors
    /// [`Short`].
    pub fn call(&self, bytes: u64) -> Result<Charge, Short> {
        self.hold(Kind::Request, bytes, true).map(|()| Charge::new(self.clone(), Kind::Request, bytes))
    }

    /// [`Self::call`] for a heartbeat: some of them pass whatever else is held.
    ///
    /// # Errors
    /// [`Short`].
    pub fn beat(&self, bytes: u64) -> Result<Charge, Short> {
        if !self.grow_beat(bytes) {
            return self.call(bytes);
        }
        Ok(Charge::new(self.clone(), Kind::Beat, bytes))
    }

    /// Holds more bytes of a heartbeat, if they are among those that pass.
    pub(super) fn grow_beat(&self, bytes: u64) -> bool {
        let mut state = self.shared.state.lock();
        let is_free = state.beats.saturating_add(bytes) <= BEAT_BYTES_FREE;
        if is_free {
            state.beats += bytes;
            self.shared.budget.hold_anyway(bytes);
        }
        is_free
    }

    /// Holds bytes of a call that is refused, until its refusal is written.
    #[must_use]
    pub fn refused_call(&self, bytes: u64) -> Charge {
        let mut state = self.shared.state.lock();
        state.refusals += 1;
        self.shared.budget.hold_anyway(bytes);
        add(&mut state, Kind::Request, bytes);
        Charge::new(self.clone(), Kind::Request, bytes)
    }

    /// Whether its client has not read that thousands of its calls were refused, and makes more.
    #[must_use]
    pub fn is_deaf(&self) -> bool {
        self.shared.state.lock().refusals > REFUSALS_UNREAD_MAX
    }

    /// Holds bytes of an answer whose turn it is.
    ///
    /// # Errors
    /// [`Short::Node`].
    pub fn answer(&self, bytes: u64) -> Result<Charge, Short> {
        let kind = Kind::Answer(self.shared.state.lock().period);
        self.hold(kind, bytes, false).map(|()| Charge::new(self.clone(), kind, bytes))
    }

    /// Holds bytes of an answer that must be given.
    #[must_use]
    pub fn answer_anyway(&self, bytes: u64) -> Charge {
        let mut state = self.shared.state.lock();
        let kind = Kind::Answer(state.period);
        self.shared.budget.hold_anyway(bytes);
        add(&mut state, kind, bytes);
        Charge::new(self.clone(), kind, bytes)
    }

    /// Whose permit is to make a large answer.
    pub(super) fn making(&self) -> Arc<Semaphore> {
        Arc::clone(&self.shared.making)
    }

    /// One who is about to wait until there is room.
    #[must_use]
    pub fn turn(&self, direction: Direction) -> Turn {
        Turn::new(self.clone(), direction)
    }

    /// Bytes that are held for this connection.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.shared.state.lock().held()
    }

    /// Of those, bytes of answers that have not been written.
    #[must_use]
    pub fn untaken(&self) -> u64 {
        self.shared.state.lock().answers.held
    }

    /// Begins a new period, and gives how many bytes of answers were held all through the last one without any of them
    /// being taken.
    #[must_use]
    pub fn next_period(&self) -> u64 {
        let mut state = self.shared.state.lock();
        state.period = 1 - state.period;
        state.by_period[state.period]
    }

    /// Gives back the bytes of calls that have ended. If `is_all_written` is not certain, only if they are few; whether
    /// none are left.
    pub fn written(&self, is_all_written: bool) -> bool {
        let mut state = self.shared.state.lock();
        let ended = state.ended;
        if ended == 0 {
            return true;
        }
        if ended > CONNECTION_BYTES_FREE && !is_all_written {
            return false;
        }
        state.ended = 0;
        state.refusals = 0;
        self.give_back(&mut state, Kind::Request, ended);
        true
    }

    /// Has bytes of a call that ends wait for [`Self::written`].
    pub(super) fn end(&self, kind: Kind, bytes: u64) {
        let mut state = self.shared.state.lock();
        match kind {
            Kind::Request => state.ended += bytes,
            Kind::Beat | Kind::Answer(_) => self.give_back(&mut state, kind, bytes),
        }
    }

    /// Holds more bytes. `is_bound`: within the connection's limit, too.
    pub(super) fn hold(&self, kind: Kind, bytes: u64, is_bound: bool) -> Result<(), Short> {
        let limits = self.shared.budget.limits();
        let mut state = self.shared.state.lock();
        if state.held().saturating_add(bytes) <= CONNECTION_BYTES_FREE {
            self.shared.budget.hold_anyway(bytes);
        } else {
            let limit = limits.one_connection;
            let would = state.part(kind.direction()).held.saturating_add(bytes);
            let held = if is_bound && would > limit {
                Err(Short::Connection { limit })
            } else {
                self.shared.budget.hold(bytes)
            };
            if let Err(short) = held {
                drop(state);
                self.shared.budget.refuse(short);
                return Err(short);
            }
        }
        add(&mut state, kind, bytes);
        Ok(())
    }

    pub(super) fn release(&self, kind: Kind, bytes: u64) {
        self.give_back(&mut self.shared.state.lock(), kind, bytes);
    }

    /// Has an answer's bytes be those of the current period.
    pub(super) fn renew(&self, kind: Kind, bytes: u64) -> Kind {
        let Kind::Answer(period) = kind else { return kind };
        let mut state = self.shared.state.lock();
        let current = state.period;
        state.by_period[period] -= bytes;
        state.by_period[current] += bytes;
        Kind::Answer(current)
    }

    pub(super) fn poll_turn(
        &self,
        direction: Direction,
        number: &mut Option<u64>,
        context: &Context<'_>,
    ) -> Poll<Result<(), Short>> {
        let limit = self.shared.budget.limits().one_connection;
        let mut state = self.shared.state.lock();
        let part = state.part(direction);
        if part.is_turn(number, limit, context.waker()) {
            part.wake(limit);
            self.settle_window(&mut state);
            return Poll::Ready(Ok(()));
        }
        if direction == Direction::Requests && !state.is_window_held {
            let held = self.shared.budget.hold(CONNECTION_WINDOW_BYTES.into());
            if let Err(short) = held {
                drop(state);
                self.shared.budget.refuse(short);
                return Poll::Ready(Err(short));
            }
            state.is_window_held = true;
        }
        Poll::Pending
    }

    pub(super) fn leave(&self, direction: Direction, number: u64) {
        let limit = self.shared.budget.limits().one_connection;
        let mut state = self.shared.state.lock();
        let part = state.part(direction);
        part.leave(number);
        part.wake(limit);
        self.settle_window(&mut state);
    }

    /// What lies unread is not counted when no request waits.
    fn settle_window(&self, state: &mut State) {
        if state.is_window_held && !state.requests.is_waited_for() {
            state.is_window_held = false;
            self.shared.budget.release(CONNECTION_WINDOW_BYTES.into());
        }
    }

    fn give_back(&self, state: &mut State, kind: Kind, bytes: u64) {
        self.shared.budget.release(bytes);
        match kind {
            Kind::Beat => {
                state.beats -= bytes;
                return;
            }
            Kind::Answer(period) => state.by_period[period] -= bytes,
            Kind::Request => {}
        }
        let limit = self.shared.budget.limits().one_connection;
        let part = state.part(kind.direction());
        part.held -= bytes;
        part.wake(limit);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        // Calls that ended after the last word was written.
        self.budget.release(state.ended);
    }
}

fn add(state: &mut State, kind: Kind, bytes: u64) {
    match kind {
        Kind::Beat => {
            state.beats += bytes;
            return;
        }
        Kind::Answer(period) => state.by_period[period] += bytes,
        Kind::Request => {}
    }
    state.part(kind.direction()).held += bytes;
}
