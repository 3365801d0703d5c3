//! What a hostile peer of an older build left behind, for tests of the way back.

use std::path::Path;

use bytes::Bytes;
use openraft::EntryPayload;

use super::{Error, OpenLog};
use crate::base::types::{Entry, LogCommand, LogId};
use crate::disk::{Change, Disk as _};

/// Appends a command to the log of a stopped node, whatever its bytes mean, as if the last leader had; gives its index.
/// With the same done to all nodes whose logs end alike, it is committed by the next leader. Blocks.
///
/// # Errors
/// [`Error`]: the log cannot be opened, has no entries, or cannot be written.
#[doc(hidden)]
pub fn plant(data: &Path, payload: &'static [u8]) -> Result<u64, Error> {
    let mut last: Option<LogId> = None;
    let mut log = OpenLog::open(data, &mut |entry| last = Some(entry.log_id))?;
    let Some(last) = last else { return Err(Error::Refused("the log has no entries".into())) };
    let id = LogId::new(last.leader_id, last.index + 1);
    let command = LogCommand { now_ms: 0, payload: Bytes::from_static(payload) };
    let entry = Entry { log_id: id, payload: EntryPayload::Normal(command) };
    let written = log.disk.write(&[Change::Append(vec![entry])]).and_then(|()| log.disk.sync());
    log.close();
    written?;
    Ok(id.index)
}
