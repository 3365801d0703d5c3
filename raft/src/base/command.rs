//! Encoded commands: how long they may be, and whether a build can read them.

use tripod_state::ids::FeatureLevel;
use tripod_state::{Envelope, level};

use crate::base::codec;

/// Bytes of one encoded command. With what surrounds it, it must fit one message between peers: a
/// command that does not could be appended, but never replicated.
pub(crate) const COMMAND_BYTES_MAX: usize = 72 << 20;

/// Reads an encoded command as a build that supports levels up to `level_max` does.
///
/// # Errors
/// It cannot read it, in words.
pub(crate) fn readable(payload: &[u8], level_max: FeatureLevel) -> Result<Envelope, String> {
    let envelope: Envelope = codec::decode(payload).map_err(|error| error.to_string())?;
    let needs = envelope.command.needs_at(level::FIRST);
    if needs > level_max {
        return Err(format!("it needs feature level {needs}, this build supports {level_max} at most"));
    }
    Ok(envelope)
}
