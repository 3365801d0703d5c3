//! Bytes that are held.

use super::account::{Account, Direction};
use super::short::Short;

/// What bytes are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    /// A heartbeat, beside all others.
    Beat,
    /// An answer, of this period.
    Answer(usize),
}

impl Kind {
    pub(super) fn direction(self) -> Direction {
        match self {
            Self::Request | Self::Beat => Direction::Requests,
            Self::Answer(_) => Direction::Answers,
        }
    }
}

/// Bytes that are held until this is dropped.
#[derive(Debug)]
pub struct Charge {
    account: Account,
    kind: Kind,
    bytes: u64,
}

impl Charge {
    pub(super) fn new(account: Account, kind: Kind, bytes: u64) -> Self {
        Self { account, kind, bytes }
    }

    #[must_use]
    pub fn account(&self) -> &Account {
        &self.account
    }

    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Holds so many bytes, more than before or fewer. More are held beyond the connection's limit, too: who may wait
    /// has waited for his [`Turn`](super::Turn).
    ///
    /// # Errors
    /// [`Short::Node`], and what was held is held still.
    pub fn set(&mut self, bytes: u64) -> Result<(), Short> {
        if bytes < self.bytes {
            self.account.release(self.kind, self.bytes - bytes);
        } else if bytes > self.bytes {
            let more = bytes - self.bytes;
            if self.kind == Kind::Beat && !self.account.grow_beat(more) {
                // A large one is a call like others.
                let call = self.account.call(self.bytes)?;
                *self = call;
            }
            if self.kind != Kind::Beat {
                self.account.hold(self.kind, more, false)?;
            }
        }
        self.bytes = bytes;
        Ok(())
    }

    /// So many of the bytes, as a charge of their own.
    #[must_use]
    pub fn split(&mut self, bytes: u64) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { account: self.account.clone(), kind: self.kind, bytes }
    }

    /// Notes that something of the answer was taken.
    pub fn renew(&mut self) {
        self.kind = self.account.renew(self.kind, self.bytes);
    }

    /// The call has ended; its bytes are given back when its answer was written.
    pub fn end(&mut self) {
        self.account.end(self.kind, self.bytes);
        self.bytes = 0;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.account.release(self.kind, self.bytes);
        }
    }
}
