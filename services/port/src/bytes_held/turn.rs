//! One who waits until more may be held for his connection.

use std::future::poll_fn;
use std::task::{Context, Poll};

use super::account::{Account, Direction};
use super::short::Short;

/// A place among those who wait, which is given up when this is dropped.
#[derive(Debug)]
pub struct Turn {
    account: Account,
    direction: Direction,
    number: Option<u64>,
}

impl Turn {
    pub(super) fn new(account: Account, direction: Direction) -> Self {
        Self { account, direction, number: None }
    }

    /// Ready when something more may be held, which is then to be charged. To be asked again before more.
    ///
    /// # Errors
    /// [`Short::Node`]: there is not even room for what lies unread while a request waits.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Short>> {
        self.account.poll_turn(self.direction, &mut self.number, context)
    }

    /// [`Self::poll`] as a future.
    ///
    /// # Errors
    /// As [`Self::poll`].
    pub async fn come(&mut self) -> Result<(), Short> {
        poll_fn(|context| self.poll(context)).await
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.account.leave(self.direction, number);
        }
    }
}
