//! Answers that cost as much before they are sent.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use super::account::Account;
use super::charge::Charge;
use super::short::Short;

/// The right to make such an answer, one of a connection at a time.
#[derive(Debug)]
pub struct Making {
    account: Account,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Making {
    pub(super) fn new(account: Account, permit: Option<OwnedSemaphorePermit>) -> Self {
        Self { account, _permit: permit }
    }

    /// It is made, and takes so many bytes.
    ///
    /// # Errors
    /// [`Short::Node`].
    pub fn made(self, bytes: u64) -> Result<Reserved, Short> {
        self.account.answer(bytes).map(Reserved::of)
    }
}

/// What is held for an answer that has been made, among the extensions of its response.
#[derive(Debug, Clone)]
pub struct Reserved {
    charge: Arc<Mutex<Option<Charge>>>,
}

impl Reserved {
    /// What is held already for an answer that has come from elsewhere.
    #[must_use]
    pub fn of(charge: Charge) -> Self {
        Self { charge: Arc::new(Mutex::new(Some(charge))) }
    }

    /// What is held, for who sends the answer.
    #[must_use]
    pub fn take(&self) -> Option<Charge> {
        self.charge.lock().take()
    }
}
