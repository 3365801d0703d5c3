//! The bytes of one call's request.

use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;

use super::account::{Account, Direction};
use super::charge::Charge;
use super::reserved::Making;
use super::short::Short;
use super::turn::Turn;

/// What a call holds beside its answer, among the extensions of its request. Cheap to clone.
#[derive(Debug, Clone)]
pub struct CallBytes {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    account: Account,
    /// It is an op of a stream: its answer waits beside those of others, and takes no more than the op did.
    is_op: bool,
    held: Mutex<CallCharge>,
}

#[derive(Debug)]
struct CallCharge {
    charge: Charge,
    /// What it weighs without a message.
    base: u64,
    /// Of one that has had to wait. Whoever has the right of way keeps it until the call has ended: until then its message
    /// is held.
    turn: Option<Turn>,
    is_ended: bool,
}

impl CallBytes {
    /// Those of a call that begins.
    #[must_use]
    pub fn of(charge: Charge) -> Self {
        Self::with(charge, false)
    }

    /// Those of an op of a stream that begins. They are held until the last clone of this is dropped, which is when its
    /// answer was taken.
    pub(crate) fn of_op(charge: Charge) -> Self {
        Self::with(charge, true)
    }

    fn with(charge: Charge, is_op: bool) -> Self {
        let (account, base) = (charge.account().clone(), charge.bytes());
        let held = Mutex::new(CallCharge { charge, base, turn: None, is_ended: false });
        Self { shared: Arc::new(Shared { account, is_op, held }) }
    }

    /// Ready when more of its message may be read.
    ///
    /// # Errors
    /// [`Short::Node`]: there is not even room for what lies unread while it waits.
    pub fn poll_turn(&self, context: &mut Context<'_>) -> Poll<Result<(), Short>> {
        let account = self.account();
        if account.is_open(Direction::Requests) {
            return Poll::Ready(Ok(()));
        }
        let mut held = self.shared.held.lock();
        held.turn.get_or_insert_with(|| account.turn(Direction::Requests)).poll(context)
    }

    /// Whether it is an op of a stream.
    pub(crate) fn is_op(&self) -> bool {
        self.shared.is_op
    }

    /// The account of its connection.
    #[must_use]
    pub fn account(&self) -> &Account {
        &self.shared.account
    }

    /// Its message takes so many bytes, as far as it has come.
    ///
    /// # Errors
    /// [`Short::Node`].
    pub fn message(&self, bytes: u64) -> Result<(), Short> {
        let mut held = self.shared.held.lock();
        if held.is_ended {
            return Ok(());
        }
        let bytes = held.base + bytes;
        held.charge.set(bytes)
    }

    /// Waits until an answer may be made that costs as much before it is sent.
    ///
    /// # Errors
    /// [`Short`].
    pub async fn making(&self) -> Result<Making, Short> {
        let account = self.account();
        let permit = account.making().acquire_owned().await.ok();
        account.turn(Direction::Answers).come().await?;
        Ok(Making::new(account.clone(), permit))
    }

    /// Its message has waited for its turn for too long: why it is refused.
    #[must_use]
    pub fn give_up(&self) -> Short {
        let budget = self.account().budget();
        let short = Short::Connection { limit: budget.limits().one_connection };
        budget.refuse(short);
        short
    }

    /// It has ended.
    pub fn end(&self) {
        let mut held = self.shared.held.lock();
        held.is_ended = true;
        held.turn = None;
        if !self.shared.is_op {
            held.charge.end();
        }
    }
}
