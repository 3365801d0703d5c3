//! What a node holds for one connection.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::budget::Budget;
use super::charge::{Charge, Kind};
use super::direction_account::DirectionAccount;
use super::identity_share::IdentityShare;
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
    /// With what else counts what is held by this: it comes back from where it was held, whatever became known since.
    owner: Owner,
}

/// For whom something is held, beside its connection and its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Its client had not proved who it is when it was held.
    Nobody,
    /// The identity of the connection.
    Identity,
}

/// Every call changes these numbers several times, from more than one thread. Each change is one step without a lock: a number
/// is raised before it is compared with its limit, and lowered again if it is beyond. So of two who pass at the same time the
/// later one sees both, and no limit is exceeded; who is refused may keep another one out who comes at that moment.
#[derive(Debug)]
struct Shared {
    budget: Budget,
    /// That of its client, once it has proved who it is.
    identity: OnceLock<Arc<IdentityShare>>,
    requests: DirectionAccount,
    /// Their bytes are those of both periods together.
    answers: DirectionAccount,
    /// Bytes of requests that are held, heartbeats apart.
    request_bytes: AtomicU64,
    /// The answers' bytes by the period in which they were made or last taken of, the current one and the one before.
    answer_bytes: [AtomicU64; 2],
    /// Which of both is the current one.
    period: AtomicUsize,
    /// Bytes of heartbeats that are in neither.
    beats: AtomicU64,
    /// Of the requests' bytes, those of calls that have ended and whose answers may not have been written.
    ended: AtomicU64,
    /// Of those, the bytes that are held for the identity, too. They are raised before `ended` is, and taken after it: so none
    /// of them stay here when that is nothing.
    ended_of_identity: AtomicU64,
    /// Calls that were refused since all was written the last time.
    refusals: AtomicU64,
    /// For whom what lies unread is counted, because requests wait.
    window: Mutex<Option<Owner>>,
    /// Of answers that are large before they are sent, one is made at a time.
    making: Arc<Semaphore>,
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
                identity: OnceLock::new(),
                requests: DirectionAccount::new(true),
                // Answers go as they are read, and never wait for each other.
                answers: DirectionAccount::new(false),
                request_bytes: AtomicU64::new(0),
                answer_bytes: [AtomicU64::new(0), AtomicU64::new(0)],
                period: AtomicUsize::new(0),
                beats: AtomicU64::new(0),
                ended: AtomicU64::new(0),
                ended_of_identity: AtomicU64::new(0),
                refusals: AtomicU64::new(0),
                window: Mutex::new(None),
                making: Arc::new(Semaphore::new(1)),
            }),
            owner: Owner::Nobody,
        }
    }

    /// The node's.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.shared.budget
    }

    /// The same for what is held since its client has proved this name: it counts with what is held for all connections of
    /// that name. The first name of a connection is that of all of it.
    pub(crate) fn named(&self, name: &str) -> Self {
        let Shared { budget, identity, .. } = &*self.shared;
        let _ = identity.get_or_init(|| budget.identity(name));
        Self { shared: Arc::clone(&self.shared), owner: Owner::Identity }
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
        let is_free = raise(&self.shared.beats, bytes) <= BEAT_BYTES_FREE;
        if is_free {
            self.shared.hold_anyway(self.owner, bytes);
        } else {
            lower(&self.shared.beats, bytes);
        }
        is_free
    }

    /// Holds bytes of a call that is refused, until its refusal is written.
    #[must_use]
    pub fn refused_call(&self, bytes: u64) -> Charge {
        raise(&self.shared.refusals, 1);
        self.hold_anyway(Kind::Request, bytes)
    }

    /// Whether its client has not read that thousands of its calls were refused, and makes more.
    #[must_use]
    pub fn is_deaf(&self) -> bool {
        self.shared.refusals.load(Ordering::SeqCst) > REFUSALS_UNREAD_MAX
    }

    /// Holds bytes of an answer whose turn it is.
    ///
    /// # Errors
    /// [`Short::Node`].
    pub fn answer(&self, bytes: u64) -> Result<Charge, Short> {
        let kind = self.answer_kind();
        self.hold(kind, bytes, false).map(|()| Charge::new(self.clone(), kind, bytes))
    }

    /// Holds bytes of an answer that must be given.
    #[must_use]
    pub fn answer_anyway(&self, bytes: u64) -> Charge {
        self.hold_anyway(self.answer_kind(), bytes)
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
        self.held_of(Direction::Requests).saturating_add(self.untaken())
    }

    /// Of those, bytes of answers that have not been written.
    #[must_use]
    pub fn untaken(&self) -> u64 {
        self.held_of(Direction::Answers)
    }

    /// Begins a new period, and gives how many bytes of answers were held all through the last one without any of them
    /// being taken. To be asked by one only.
    #[must_use]
    pub fn next_period(&self) -> u64 {
        let next = 1 - self.period();
        let unread = self.shared.answer_bytes[next].load(Ordering::SeqCst);
        self.shared.period.store(next, Ordering::SeqCst);
        unread
    }

    /// Gives back the bytes of calls that have ended. If `is_all_written` is not certain, only if they are few; whether
    /// none are left.
    pub fn written(&self, is_all_written: bool) -> bool {
        let Shared { ended, refusals, .. } = &*self.shared;
        if ended.load(Ordering::SeqCst) == 0 {
            return true;
        }
        // Before the bytes: refusals that come later are of calls whose bytes stay.
        let written = refusals.load(Ordering::SeqCst);
        let goes = |ended| (is_all_written || ended <= CONNECTION_BYTES_FREE).then_some(0);
        let Ok(bytes) = ended.fetch_update(Ordering::SeqCst, Ordering::SeqCst, goes) else { return false };
        if written > 0 {
            lower(refusals, written);
        }
        let of_identity = self.shared.ended_of_identity.swap(0, Ordering::SeqCst);
        self.shared.release_to(Owner::Identity, of_identity);
        self.shared.budget.release(bytes);
        self.take_off(Kind::Request, bytes);
        true
    }

    /// Has bytes of a call that ends wait for [`Self::written`].
    pub(super) fn end(&self, kind: Kind, bytes: u64) {
        match kind {
            Kind::Request => {
                if self.owner == Owner::Identity {
                    raise(&self.shared.ended_of_identity, bytes);
                }
                raise(&self.shared.ended, bytes);
            }
            Kind::Beat | Kind::Answer(_) => self.release(kind, bytes),
        }
    }

    /// Holds more bytes. `is_bound`: within the connection's limit, too.
    pub(super) fn hold(&self, kind: Kind, bytes: u64, is_bound: bool) -> Result<(), Short> {
        let Shared { budget, .. } = &*self.shared;
        self.add(kind, bytes);
        let would = self.held_of(kind.direction());
        let other = match kind.direction() {
            Direction::Requests => Direction::Answers,
            Direction::Answers => Direction::Requests,
        };
        if would.saturating_add(self.held_of(other)) <= CONNECTION_BYTES_FREE {
            self.shared.hold_anyway(self.owner, bytes);
            return Ok(());
        }
        let limit = budget.limits().one_connection;
        let held = if is_bound && would > limit {
            Err(Short::Connection { limit })
        } else {
            self.shared.hold(self.owner, bytes)
        };
        if let Err(short) = held {
            self.take_off(kind, bytes);
            budget.refuse(short);
        }
        held
    }

    fn hold_anyway(&self, kind: Kind, bytes: u64) -> Charge {
        self.add(kind, bytes);
        self.shared.hold_anyway(self.owner, bytes);
        Charge::new(self.clone(), kind, bytes)
    }

    pub(super) fn release(&self, kind: Kind, bytes: u64) {
        self.shared.release(self.owner, bytes);
        self.take_off(kind, bytes);
    }

    /// Has an answer's bytes be those of the current period.
    pub(super) fn renew(&self, kind: Kind, bytes: u64) -> Kind {
        let current = self.answer_kind();
        if !matches!(kind, Kind::Answer(_)) || kind == current {
            return kind;
        }
        self.add(current, bytes);
        self.take_off(kind, bytes);
        current
    }

    /// Whether more may be held at once: there is room and nobody waits for it.
    pub(crate) fn is_open(&self, direction: Direction) -> bool {
        !self.direction(direction).is_waited_for() && self.has_room(direction)
    }

    pub(super) fn poll_turn(
        &self,
        direction: Direction,
        number: &mut Option<u64>,
        context: &Context<'_>,
    ) -> Poll<Result<(), Short>> {
        if self.is_open(direction) {
            // Who has a number and does not wait has the right of way, and keeps it.
            return Poll::Ready(Ok(()));
        }
        if self.direction(direction).is_turn(number, || self.has_room(direction), context.waker()) {
            self.settle_window();
            return Poll::Ready(Ok(()));
        }
        match direction {
            Direction::Requests => self.hold_window(),
            Direction::Answers => Poll::Pending,
        }
    }

    pub(super) fn leave(&self, direction: Direction, number: u64) {
        self.direction(direction).leave(number, || self.has_room(direction));
        self.settle_window();
    }

    /// Counts what lies unread while a request waits.
    fn hold_window(&self) -> Poll<Result<(), Short>> {
        let mut window = self.shared.window.lock();
        if window.is_none() {
            if let Err(short) = self.shared.hold(self.owner, CONNECTION_WINDOW_BYTES.into()) {
                drop(window);
                self.shared.budget.refuse(short);
                return Poll::Ready(Err(short));
            }
            *window = Some(self.owner);
        }
        Poll::Pending
    }

    /// What lies unread is not counted when no request waits.
    fn settle_window(&self) {
        let mut window = self.shared.window.lock();
        if !self.shared.requests.is_waited_for()
            && let Some(owner) = window.take()
        {
            self.shared.release(owner, CONNECTION_WINDOW_BYTES.into());
        }
    }
}

impl Account {
    fn period(&self) -> usize {
        self.shared.period.load(Ordering::SeqCst)
    }

    fn answer_kind(&self) -> Kind {
        Kind::Answer(self.period())
    }

    fn direction(&self, direction: Direction) -> &DirectionAccount {
        match direction {
            Direction::Requests => &self.shared.requests,
            Direction::Answers => &self.shared.answers,
        }
    }

    fn held_of(&self, direction: Direction) -> u64 {
        let Shared { request_bytes, answer_bytes: [one, other], .. } = &*self.shared;
        match direction {
            Direction::Requests => request_bytes.load(Ordering::SeqCst),
            Direction::Answers => one.load(Ordering::SeqCst).saturating_add(other.load(Ordering::SeqCst)),
        }
    }

    fn has_room(&self, direction: Direction) -> bool {
        self.held_of(direction) < self.shared.budget.limits().one_connection
    }

    fn bytes_of(&self, kind: Kind) -> &AtomicU64 {
        let Shared { request_bytes, answer_bytes: [one, other], beats, .. } = &*self.shared;
        match kind {
            Kind::Request => request_bytes,
            Kind::Answer(0) => one,
            Kind::Answer(_) => other,
            Kind::Beat => beats,
        }
    }

    fn add(&self, kind: Kind, bytes: u64) {
        raise(self.bytes_of(kind), bytes);
    }

    fn take_off(&self, kind: Kind, bytes: u64) {
        lower(self.bytes_of(kind), bytes);
        let direction = kind.direction();
        // Whoever begins to wait after this looks for room itself.
        if kind != Kind::Beat && self.direction(direction).is_waited_for() {
            self.direction(direction).wake(|| self.has_room(direction));
        }
    }
}

/// What is held for a connection is held for its identity and by its node, too.
impl Shared {
    fn identity(&self, owner: Owner) -> Option<&IdentityShare> {
        match owner {
            Owner::Nobody => None,
            Owner::Identity => self.identity.get().map(|identity| &**identity),
        }
    }

    fn hold(&self, owner: Owner, bytes: u64) -> Result<(), Short> {
        let Some(identity) = self.identity(owner) else { return self.budget.hold(bytes) };
        identity.hold(bytes)?;
        self.budget.hold(bytes).inspect_err(|_| identity.release(bytes))
    }

    fn hold_anyway(&self, owner: Owner, bytes: u64) {
        if let Some(identity) = self.identity(owner) {
            identity.hold_anyway(bytes);
        }
        self.budget.hold_anyway(bytes);
    }

    fn release(&self, owner: Owner, bytes: u64) {
        self.release_to(owner, bytes);
        self.budget.release(bytes);
    }

    /// Gives bytes back to their owner alone.
    fn release_to(&self, owner: Owner, bytes: u64) {
        if let Some(identity) = self.identity(owner) {
            identity.release(bytes);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Calls that ended after the last word was written.
        let of_identity = *self.ended_of_identity.get_mut();
        self.release_to(Owner::Identity, of_identity);
        let ended = *self.ended.get_mut();
        self.budget.release(ended);
    }
}

/// Gives the number as it is then.
fn raise(number: &AtomicU64, by: u64) -> u64 {
    number.fetch_add(by, Ordering::SeqCst).saturating_add(by)
}

fn lower(number: &AtomicU64, by: u64) {
    number.fetch_sub(by, Ordering::SeqCst);
}
