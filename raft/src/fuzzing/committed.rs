//! Commands on their way through the log.

use tripod_state::{Envelope, State, level};

use crate::base::codec;
use crate::base::command::{self, COMMAND_BYTES_MAX};

/// A command as it is proposed.
#[must_use]
pub fn encode(envelope: &Envelope) -> Vec<u8> {
    codec::encode(envelope)
}

/// What is committed is read back as it was written.
///
/// # Panics
/// It is not.
pub fn check_committed(envelope: &Envelope) {
    let payload = codec::encode(envelope);
    if payload.len() > COMMAND_BYTES_MAX {
        // Who proposes it is refused.
        return;
    }
    match command::readable(&payload, level::NEWEST) {
        Ok(read) => assert!(read == *envelope, "{envelope:?} was committed, and {read:?} is read"),
        Err(error) => panic!("a command of {} bytes was committed that nobody reads: {error}", payload.len()),
    }
}

/// The command that another node proposes by these bytes, if a leader in that state appends it.
///
/// # Panics
/// It is not the same when it is read again.
#[must_use]
pub fn check_proposed(payload: &[u8], state: &State) -> Option<Envelope> {
    if payload.len() > COMMAND_BYTES_MAX {
        return None;
    }
    let envelope = command::readable(payload, level::NEWEST).ok()?;
    envelope.command.check_lists(&|job| state.tasks_of(job)).ok()?;
    check_committed(&envelope);
    Some(envelope)
}
