//! Reads entries of the journal and of its home, from any thread, without holding up the writer: the
//! index is looked at under a short lock, the files are read without one. A file that is recycled
//! meanwhile does not pass the checks; then the index is asked again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

use crate::base::types::{Entry, entry_bytes};
use crate::disk::journal::frame::{FrameHead, HEADER_BYTES, JournalId, Salt};
use crate::disk::journal::index::{Index, RecordPosition};
use crate::disk::journal::record::{self, Record};
use crate::disk::{Blob, DiskError, OldEntries};

/// Reads entries. Shared by the journal, its mover, and everyone who asks for old entries.
pub(crate) struct JournalReader {
    pub(crate) journal: JournalId,
    pub(crate) index: RwLock<Index>,
    home: Arc<dyn OldEntries>,
    /// The directory, for messages.
    place: String,
    closed: AtomicBool,
}

/// Where the next entries are.
enum Source {
    Journal { file: Arc<dyn Blob>, place: RecordPosition, end: u64 },
    Home { end: u64 },
    Nowhere,
}

impl JournalReader {
    pub(crate) fn new(journal: JournalId, index: Index, home: Arc<dyn OldEntries>, place: String) -> Self {
        Self { journal, index: RwLock::new(index), home, place, closed: AtomicBool::new(false) }
    }

    fn source(&self, index: u64, end: u64) -> Source {
        let known = self.index.read();
        if let Some(run) = known.run_with(index)
            && let Some(file) = known.file(run.place.segment)
        {
            return Source::Journal { file, place: run.place, end: end.min(run.last + 1) };
        }
        let end = end.min(known.home_end).min(known.next_run(index).unwrap_or(u64::MAX));
        if index < end { Source::Home { end } } else { Source::Nowhere }
    }

    /// The entries of one record.
    ///
    /// # Errors
    /// [`DiskError::DamagedFile`] if they are not what was written.
    pub(crate) fn read_record(
        &self,
        file: &dyn Blob,
        place: RecordPosition,
    ) -> Result<Vec<Entry>, DiskError> {
        let damaged = |problem: String| DiskError::DamagedFile {
            file: format!("{}/{}", self.place, place.segment.file_name()),
            offset_bytes: place.offset_bytes,
            problem,
        };
        let salt = Salt::new(self.journal, place.segment);
        let mut bytes = vec![0; HEADER_BYTES + place.length as usize];
        let read = file.read_at(place.offset_bytes, &mut bytes).map_err(|error| DiskError::Io {
            action: "read",
            directory: self.place.clone(),
            cause: error.to_string(),
        })?;
        let (head, body) = bytes.split_at(HEADER_BYTES);
        let head = FrameHead::parse(salt, head).filter(|head| head.number == place.frame && !head.seal);
        let whole = read == bytes.len() && head.is_some_and(|head| head.fits(salt, body));
        if !whole {
            return Err(damaged(format!("frame {} is not what was written there", place.frame.0)));
        }
        match record::parse(body, place.record_at as usize).map_err(damaged)? {
            (Record::Entries(entries), _) => entries.entries().collect::<Result<_, _>>().map_err(damaged),
            _ => Err(damaged(format!("frame {} holds no entries where it should", place.frame.0))),
        }
    }

    /// The entries of a run from `index` to before `end`; `None` if the run has moved meanwhile.
    fn read_run(
        &self,
        file: &dyn Blob,
        place: RecordPosition,
        index: u64,
        end: u64,
    ) -> Result<Option<Vec<Entry>>, DiskError> {
        match self.read_record(file, place) {
            Ok(mut entries) => {
                entries.retain(|entry| (index..end).contains(&entry.log_id.index));
                Ok(Some(entries))
            }
            Err(error) => {
                let now = self.index.read().run_with(index).map(|run| run.place);
                if now == Some(place) { Err(error) } else { Ok(None) }
            }
        }
    }
}

impl OldEntries for JournalReader {
    fn read(&self, start: u64, end: u64, bytes_max: usize) -> Result<Vec<Entry>, DiskError> {
        let mut found: Vec<Entry> = Vec::new();
        let mut bytes = 0;
        let mut index = start;
        while index < end && bytes < bytes_max {
            if self.closed.load(Ordering::Acquire) {
                return Err(DiskError::Closed);
            }
            let entries = match self.source(index, end) {
                Source::Nowhere => break,
                Source::Home { end } => self.home.read(index, end, bytes_max - bytes)?,
                Source::Journal { file, place, end } => match self.read_run(&*file, place, index, end)? {
                    Some(entries) => entries,
                    None => continue,
                },
            };
            let before = found.len();
            for entry in entries {
                if bytes >= bytes_max {
                    break;
                }
                bytes += entry_bytes(&entry);
                found.push(entry);
            }
            if found.len() == before {
                break;
            }
            index += (found.len() - before) as u64;
        }
        Ok(found)
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.index.write().clear();
        self.home.close();
    }
}
