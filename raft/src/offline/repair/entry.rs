//! A committed entry that no build can read.

use std::path::Path;
use std::sync::Arc;

use openraft::EntryPayload;
use tripod_state::level;

use super::{Error, OpenLog};
use crate::base::command;
use crate::disk::skipped::{self, Skipped};
use crate::disk::{Files, RealFiles};

/// What is passed over from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassedOver {
    pub index: u64,
    pub term: u64,
    /// Of the entry's command.
    pub checksum: u64,
}

/// Has the node of `data` pass over the entry at `index`, whose command has this checksum, when it starts. Blocks.
///
/// # Errors
/// [`Error`]: the entry is not there, is another one, or can be read. Nothing was changed.
pub fn pass_over(data: &Path, index: u64, checksum: u64) -> Result<PassedOver, Error> {
    let mut found = None;
    let log = OpenLog::open(data, &mut |entry| {
        if entry.log_id.index == index {
            found = Some(entry);
        }
    })?;
    let refused = |problem: String| {
        Err(Error::Refused(format!(
            "T5501 repair-refused: entry {index} in {} is not passed over: {problem}; nothing was changed",
            data.display()
        )))
    };
    // Held until the note is written: no node starts meanwhile.
    let Some(entry) = found else { return refused("the log does not hold it".into()) };
    let EntryPayload::Normal(command) = &entry.payload else { return refused("it is no command".into()) };
    let computed = skipped::checksum(&command.payload);
    if computed != checksum {
        return refused(format!("its checksum is {computed:016x}, not {checksum:016x}"));
    }
    if command::readable(&command.payload, level::NEWEST).is_ok() {
        return refused("this build can read it: start the node".into());
    }
    let written = RealFiles::open(data).and_then(|files| {
        let files: Arc<dyn Files> = Arc::new(files);
        Skipped::read(files.as_ref())?.add(&files, index, checksum)
    });
    log.close();
    written.map_err(|error| {
        Error::Storage(format!("T3102 log-io: cannot write the note in {}: {error}", data.display()))
    })?;
    Ok(PassedOver { index, term: entry.log_id.leader_id.term, checksum })
}
