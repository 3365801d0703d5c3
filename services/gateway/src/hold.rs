//! Holding a call while the cluster cannot take it: nobody leads, the leader is out of reach, or a
//! queue is full. Clients of the coordination protocols end their process on an error, so a pause is
//! always better than a refusal.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tripod_backoff::Backoff;
use tripod_port::{CallerConnection, StreamOrder, StreamPosition};
use tripod_raft::ProposeError;

use crate::backend::Replica;
use crate::calls::{Calls, Waiting};
use crate::clock::millis;
use crate::fairness::{Turn, Turns};
use crate::outage::Outage;

/// The longest pause between attempts.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// Between attempts while there is a leader that does not answer.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(5), PAUSE_MAX);

/// The patience of one call.
pub(crate) struct Hold<'a> {
    backend: &'a dyn Replica,
    calls: &'a Arc<Calls>,
    began: Instant,
    deadline: Instant,
    backoff: Backoff,
    /// Taken at the first failure: a call that goes through at once does not wait.
    waiting: Option<Waiting>,
    /// What was said of an attempt that may have taken effect.
    uncertain: Option<String>,
}

/// What a call has that may change something now.
pub(crate) struct ToChange {
    _turn: Option<Turn>,
    position: Option<StreamPosition>,
}

impl ToChange {
    /// The call's command has been handed on: those behind it in its stream may follow.
    pub(crate) fn handed_on(&mut self) {
        self.position = None;
    }
}

impl<'a> Hold<'a> {
    pub(crate) fn new(backend: &'a dyn Replica, calls: &'a Arc<Calls>, patience: Duration) -> Self {
        let began = Instant::now();
        Self {
            backend,
            calls,
            began,
            deadline: began + patience,
            backoff: BACKOFF,
            waiting: None,
            uncertain: None,
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// What the call must be told if it ends now, when an earlier attempt may have taken effect.
    pub(crate) fn uncertain(&self) -> Option<Outage> {
        self.uncertain.clone().map(Outage::Unknown)
    }

    /// Notes that an attempt may have taken effect.
    pub(crate) fn doubt(&mut self, why: String) {
        self.uncertain = Some(why);
    }

    /// Waits for the turn of a client's call with so many bytes; what this node asks by itself needs none.
    ///
    /// # Errors
    /// It did not come before patience was at its end, or too many calls wait.
    pub(crate) async fn turn(
        &mut self,
        turns: &Turns,
        bytes: impl FnOnce() -> u64,
    ) -> Result<Option<Turn>, Outage> {
        let Some(caller) = CallerConnection::current() else { return Ok(None) };
        let bytes = bytes();
        if let Some(turn) = turns.at_once(bytes) {
            return Ok(Some(turn));
        }
        let leaderless = self.backend.leadership().borrow().leader.is_none();
        if leaderless && self.waiting.is_none() {
            self.waiting = Some(self.calls.hold()?);
        }
        let _waiting = if self.waiting.is_none() { Some(self.calls.enter()?) } else { None };
        if let Ok(turn) = tokio::time::timeout_at(self.deadline, turns.wait(caller, bytes)).await {
            return Ok(Some(turn));
        }
        turns.refuse();
        let last = "its turn did not come on this node".to_owned();
        let waited_ms = millis(self.began.elapsed());
        let leaderless = self.backend.leadership().borrow().leader.is_none();
        Err(if leaderless { Outage::NoLeader { waited_ms, last } } else { Outage::Overloaded(last) })
    }

    /// [`Self::turn`] of a call that changes something. If it is an op of a stream, its turn has come when those before it in
    /// the stream, of which each has had its turn, have handed their commands on.
    ///
    /// # Errors
    /// As [`Self::turn`].
    pub(crate) async fn turn_to_change(
        &mut self,
        turns: &Turns,
        bytes: impl FnOnce() -> u64,
    ) -> Result<ToChange, Outage> {
        // Taken in the step in which the call begins to wait for its turn. So nobody has a turn who comes later in the
        // stream and waits, by this position, for somebody who has none.
        let position = StreamOrder::take_position();
        let turn = self.turn(turns, bytes).await?;
        if let Some(position) = &position
            && tokio::time::timeout_at(self.deadline, position.first()).await.is_err()
        {
            turns.refuse();
            let why = "a call before it in its stream was not handed on by this node".to_owned();
            return Err(Outage::Overloaded(why));
        }
        Ok(ToChange { _turn: turn, position })
    }

    /// Waits until another attempt is worth making.
    ///
    /// # Errors
    /// The call's outcome, when patience is at its end or another attempt is pointless.
    pub(crate) async fn after(&mut self, error: ProposeError) -> Result<(), Outage> {
        let refusal = match error {
            ProposeError::Stopped(_) => return Err(self.uncertain().unwrap_or(Outage::Stopping)),
            // Holding it until somebody has made room would take longer than any caller waits.
            ProposeError::DiskFull(why) => return Err(self.uncertain().unwrap_or(Outage::DiskFull(why))),
            ProposeError::JobFull(why) => return Err(self.uncertain().unwrap_or(Outage::JobFull(why))),
            ProposeError::StateFull(why) => return Err(self.uncertain().unwrap_or(Outage::StateFull(why))),
            // Somebody must upgrade a node first.
            ProposeError::Level(why) => return Err(self.uncertain().unwrap_or(Outage::Level(why))),
            ProposeError::NoLeader(last) => {
                Outage::NoLeader { waited_ms: millis(self.began.elapsed()), last }
            }
            ProposeError::Overloaded(why) => Outage::Overloaded(why),
            ProposeError::Unknown(why) => {
                self.doubt(why.clone());
                Outage::Unknown(why)
            }
        };
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.uncertain().unwrap_or(refusal));
        }
        if self.waiting.is_none() {
            self.waiting = Some(self.calls.hold().map_err(|full| self.uncertain().unwrap_or(full))?);
        }
        self.rest(left).await;
        Ok(())
    }

    /// Sleeps until somebody leads; if somebody does, until another one does or for a pause that grows:
    /// the leader that does not answer may be the dead one, whose successor must not be kept waiting.
    async fn rest(&mut self, left: Duration) {
        let mut leadership = self.backend.leadership();
        let leaderless = leadership.borrow_and_update().leader.is_none();
        if leaderless {
            let elected = leadership.wait_for(|now| now.leader.is_some());
            // An error means that the node is stopping, which the next attempt will say.
            if matches!(tokio::time::timeout(left.min(PAUSE_MAX), elected).await, Ok(Err(_))) {
                tokio::time::sleep(self.backoff.pause().min(left)).await;
            }
            return;
        }
        let pause = self.backoff.pause().min(left);
        match tokio::time::timeout(pause, leadership.changed()).await {
            Ok(Ok(())) => self.backoff.reset(),
            // The node is stopping, which the next attempt will say.
            Ok(Err(_)) => tokio::time::sleep(pause).await,
            Err(_) => {}
        }
    }
}
