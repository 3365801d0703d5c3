//! Room for an answer while it comes from a node, and until its client has read it.
//!
//! All answers come by one connection, so one that nobody reads must not be left there: it would keep those of other clients
//! from coming. An answer for which its client's connection has no room is given up instead, and asked for again when the
//! client has read others. The cluster gives every attempt of a call the same outcome.

use tonic::Status;
use tripod_port::{CALL_BYTES, CallBytes, Charge, Making, Short};

/// An answer of so many bytes is read in any case: its call was let in, and counts as many.
const SMALL_BYTES: u64 = CALL_BYTES;

/// Why an answer is not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The client has not read as many bytes as its connection may have.
    Unread,
    /// Clients hold all that there is.
    Short(Short),
}

/// Where the bytes of one call's answer are counted.
#[derive(Debug)]
pub(crate) struct AnswerBytes {
    call: CallBytes,
    /// Whoever has it reads its answer to the end, whatever else its client has not read; one of a connection at a time.
    making: Option<Making>,
}

impl AnswerBytes {
    pub(crate) fn of(call: CallBytes) -> Self {
        Self { call, making: None }
    }

    /// So many bytes of the answer are here; `charge` is what was counted of them before.
    ///
    /// # Errors
    /// [`NoRoom`]: they are to be dropped.
    pub(crate) fn hold(&self, charge: &mut Option<Charge>, bytes: u64) -> Result<(), NoRoom> {
        if bytes <= SMALL_BYTES {
            return Ok(());
        }
        let account = self.call.account();
        if self.making.is_none() && account.untaken() >= account.budget().limits().one_connection {
            return Err(NoRoom::Unread);
        }
        let held = match charge {
            Some(charge) => charge.set(bytes),
            None => account.answer(bytes).map(|new| *charge = Some(new)),
        };
        held.map_err(NoRoom::Short)
    }

    /// Whether the answer is asked for again, as there was no room for it.
    pub(crate) fn is_asked_again(&self) -> bool {
        self.making.is_some()
    }

    /// Waits until an answer may be asked for again for which there was no room.
    ///
    /// # Errors
    /// [`Short`]: there will be none.
    pub(crate) async fn wait(&mut self) -> Result<(), Short> {
        // Its place is for who waited before.
        self.making = None;
        self.making = Some(self.call.making().await?);
        Ok(())
    }
}

/// What a client is told for whose call or answer there is no room. It is this agent's word, and other nodes do not help.
pub(crate) fn refusal(short: Short) -> Status {
    Status::resource_exhausted(short.to_string())
}
