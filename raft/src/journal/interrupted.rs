//! A home that knows no journal, beside a journal. Either the creation of the journal was interrupted
//! before the home was told, and nothing is in it; or the home has forgotten, and it is the log.

use std::io;

use crate::journal::files::{Blob, Files};
use crate::journal::frame::{FrameNumber, JournalId, SegmentNumber};
use crate::journal::recovery::FIRST_SEGMENT;
use crate::journal::scan::Scan;
use crate::log_store::DiskError;

/// What a journal that was created, and no more, says comes next.
const SECOND_FRAME: FrameNumber = FrameNumber(2);

/// # Errors
/// [`DiskError::DamagedFile`] if the journal in the directory was ever written to.
pub(crate) fn check(files: &dyn Files) -> Result<(), DiskError> {
    let failed = |error: io::Error| DiskError::Io {
        action: "open",
        directory: files.place().to_owned(),
        cause: error.to_string(),
    };
    for name in files.list().map_err(failed)? {
        let Some(number) = SegmentNumber::of_file(&name) else { continue };
        let file = files.open(&name).map_err(failed)?;
        if number != FIRST_SEGMENT || was_written(&*file).map_err(failed)? {
            return Err(DiskError::DamagedFile {
                file: format!("{}/{name}", files.place()),
                offset_bytes: 0,
                problem: "it is a part of the log, but sled has forgotten that there is a journal".into(),
            });
        }
    }
    Ok(())
}

/// Whether anything came after the frame with which a first segment is created.
fn was_written(file: &dyn Blob) -> io::Result<bool> {
    // Whose it is stands in its head; nothing but the head is read with a wrong id.
    let Some(head) = Scan::read(file, JournalId(0), FIRST_SEGMENT)?.head() else { return Ok(false) };
    let scan = Scan::read(file, head.journal, FIRST_SEGMENT)?;
    Ok(scan.frames.len() > 1 || scan.claim().is_some_and(|claim| claim > SECOND_FRAME))
}
