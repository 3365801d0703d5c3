//! A chunk with its file. Whatever changes it is durable before it counts. Blocks.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use prost::Message as _;
use tripod_proto::mars::v1::ElementType;

use super::cells::{Cells, Place};
use super::frames::{self, scan};
use super::record::{Batches, Begin, BeginColumn, Entry, Epoch, Record, Seal, Stored};
use super::{ChunkId, Definition, FrameColumn, MutableError};
use crate::element::Element;

/// A chunk, its file, and where the next frame goes.
#[derive(Debug)]
pub(super) struct Records {
    pub(super) cells: Cells,
    path: PathBuf,
    file: File,
    end: u64,
    frames: u64,
    /// Why nothing is written any more: what the disk has is not known.
    broken: Option<String>,
}

/// What a file comes to when it is read.
#[derive(Debug)]
pub(super) enum Replayed {
    Whole(Box<Records>),
    /// It was never made durable, so nobody was told of it.
    Unbegun,
    /// Of which chunk, if that can still be read.
    Damaged {
        id: Option<ChunkId>,
        why: String,
    },
}

/// What came of some batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counted {
    pub(super) accepted: u64,
    pub(super) duplicates: u64,
}

impl Records {
    /// Begins the file of a chunk. The directory is the caller's to make durable.
    ///
    /// # Errors
    /// [`MutableError::Disk`].
    pub(super) fn begin(path: PathBuf, cells: Cells) -> Result<Self, MutableError> {
        let made = tripod_local::files::options().create_new(true).read(true).write(true).open(&path);
        let file = made.map_err(|error| disk(&cells.id, &error))?;
        let Cells { id, definition, epoch, .. } = &cells;
        let begin = Begin {
            session: id.session.clone(),
            key: id.key.clone(),
            tileable: definition.tileable,
            epoch: *epoch,
            element: definition.element.number().into(),
            shape: definition.shape.clone(),
            default: definition.default.clone(),
            columns: definition.columns.iter().map(of_column).collect(),
        };
        let mut records = Self { cells, path, file, end: 0, frames: 0, broken: None };
        records.append(Entry::Begin(begin))?;
        Ok(records)
    }

    /// Reads a file back, and takes off what a crash left behind its last whole frame.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn replay(path: PathBuf) -> io::Result<Replayed> {
        let file = File::options().read(true).write(true).open(&path)?;
        let bytes = std::fs::read(&path)?;
        let (scanned, damage) = match scan(&bytes) {
            Ok(scanned) => (scanned, None),
            Err(damage) => {
                let before = scan(&bytes[..damage.at]);
                let why = format!("{} (byte {} of {})", damage.why, damage.at, path.display());
                match before {
                    Ok(before) => (before, Some(why)),
                    Err(_) => return Ok(Replayed::Damaged { id: None, why }),
                }
            }
        };
        let Some(first) = scanned.contents.first() else {
            return Ok(match damage {
                Some(why) => Replayed::Damaged { id: None, why },
                None => Replayed::Unbegun,
            });
        };
        let mut cells = match begun(first) {
            Ok(cells) => cells,
            Err(why) => return Ok(Replayed::Damaged { id: None, why }),
        };
        let id = Some(cells.id.clone());
        if let Some(why) = damage {
            return Ok(Replayed::Damaged { id, why });
        }
        for (number, content) in scanned.contents.iter().enumerate().skip(1) {
            if let Err(why) = apply(&mut cells, content) {
                let why = format!("frame {number} of {}: {why}", path.display());
                return Ok(Replayed::Damaged { id, why });
            }
        }
        // Of the last batches nobody knows whether the other owners have them.
        cells.sure = cells.confirmed == cells.next();
        let (frames, end) = (scanned.contents.len() as u64, scanned.end as u64);
        if (bytes.len() as u64) > end {
            file.set_len(end)?;
            file.sync_all()?;
        }
        Ok(Replayed::Whole(Box::new(Self { cells, path, file, end, frames, broken: None })))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes batches as one frame: after a crash all of them are there or none. Those that are there already are
    /// counted only. `reserve` is asked for room before anything is written.
    ///
    /// # Errors
    /// [`MutableError`]: nothing was written, or with [`MutableError::Disk`] nobody knows.
    pub(super) fn put(
        &mut self,
        batches: Vec<Stored>,
        reserve: impl FnOnce(u64) -> Result<(), MutableError>,
    ) -> Result<Counted, MutableError> {
        let mut counted = Counted::default();
        let mut fresh: Vec<Stored> = Vec::with_capacity(batches.len());
        for mut batch in batches {
            let again = fresh
                .iter()
                .find(|other| (&other.client_id, other.batch_no) == (&batch.client_id, batch.batch_no));
            let place = match again {
                Some(other) if other.checksum() == batch.checksum() => Place::Duplicate,
                Some(_) => {
                    return Err(MutableError::Reused {
                        client_id: batch.client_id,
                        batch_no: batch.batch_no,
                    });
                }
                None => self.cells.look(&batch)?,
            };
            match place {
                Place::Duplicate => counted.duplicates += 1,
                Place::New => {
                    counted.accepted += 1;
                    batch.seq = self.cells.next() + fresh.len() as u64;
                    fresh.push(batch);
                }
            }
        }
        if fresh.is_empty() {
            return Ok(counted);
        }
        reserve(fresh.iter().map(Stored::taken_bytes).sum())?;
        let frame = Batches { confirmed: self.cells.confirmed, batches: fresh };
        let entry = self.append(Entry::Batches(frame))?;
        if let Entry::Batches(frame) = entry {
            for batch in frame.batches {
                self.cells.add(batch)?;
            }
        }
        Ok(counted)
    }

    /// Nothing is written in this epoch any more. Twice is once.
    ///
    /// # Errors
    /// [`MutableError`].
    pub(super) fn seal(&mut self, timestamp_ns: Option<i64>) -> Result<(), MutableError> {
        let epoch = self.cells.epoch;
        match self.cells.sealed {
            Some(sealed) if sealed == timestamp_ns => return Ok(()),
            Some(_) => return Err(MutableError::Sealed { key: self.cells.id.key.clone(), epoch }),
            None => {}
        }
        self.append(Entry::Seal(Seal { epoch, timestamp_ns }))?;
        self.cells.sealed = Some(timestamp_ns);
        Ok(())
    }

    /// The scheduler has begun another epoch.
    ///
    /// # Errors
    /// [`MutableError`].
    pub(super) fn begin_epoch(&mut self, epoch: u64) -> Result<(), MutableError> {
        self.append(Entry::Epoch(Epoch { epoch }))?;
        self.cells.open_epoch(epoch);
        Ok(())
    }

    /// Writes a frame behind the others, and waits until the disk has it.
    fn append(&mut self, entry: Entry) -> Result<Entry, MutableError> {
        let id = &self.cells.id;
        if let Some(why) = &self.broken {
            return Err(MutableError::Disk { key: id.key.clone(), why: why.clone() });
        }
        let record = Record { entry: Some(entry) };
        let content = record.encode_to_vec();
        let frame = [&frames::head(self.frames, &content)[..], &content].concat();
        if let Err(error) = self.file.write_all_at(&frame, self.end) {
            // Nothing may stand behind the last frame when the next one is written.
            let taken_off = self.file.set_len(self.end);
            let told = disk(id, &error);
            self.broken = taken_off.err().map(|error| error.to_string());
            return Err(told);
        }
        if let Err(error) = self.file.sync_data() {
            // What of it reaches the disk nobody knows, and asking again would not tell.
            self.broken = Some(error.to_string());
            return Err(disk(id, &error));
        }
        self.end += frame.len() as u64;
        self.frames += 1;
        record.entry.ok_or_else(|| MutableError::Illegal("nothing was written".to_owned()))
    }
}

fn of_column(column: &FrameColumn) -> BeginColumn {
    BeginColumn { name: column.name.clone(), element: column.number(), default: column.default.clone() }
}

fn column_of(column: BeginColumn) -> Option<FrameColumn> {
    let is_text = column.element == i32::from(ElementType::Text);
    let element = if is_text { None } else { Some(Element::numbered(column.element)?) };
    Some(FrameColumn { name: column.name, element, default: column.default })
}

fn disk(id: &ChunkId, error: &io::Error) -> MutableError {
    MutableError::Disk { key: id.key.clone(), why: error.to_string() }
}

fn begun(content: &[u8]) -> Result<Cells, String> {
    let record = Record::decode(content).map_err(|error| error.to_string())?;
    let Some(Entry::Begin(begin)) = record.entry else {
        return Err("it does not say of which chunk it is".into());
    };
    let Begin { tileable, shape, default, columns, .. } = begin;
    let element = Element::numbered(begin.element).ok_or("its type is not known")?;
    let columns: Option<Vec<FrameColumn>> = columns.into_iter().map(column_of).collect();
    let columns = columns.ok_or("the type of a column is not known")?;
    let definition = Definition { tileable, element, shape, default, columns };
    definition.check().map_err(|error| error.to_string())?;
    let id = ChunkId { session: begin.session, key: begin.key };
    Ok(Cells::new(id, definition, begin.epoch))
}

pub(super) fn apply(cells: &mut Cells, content: &[u8]) -> Result<(), String> {
    let record = Record::decode(content).map_err(|error| error.to_string())?;
    match record.entry {
        Some(Entry::Batches(frame)) => {
            cells.confirmed = frame.confirmed;
            for batch in frame.batches {
                cells.add(batch).map_err(|error| error.to_string())?;
            }
        }
        Some(Entry::Seal(seal)) => cells.sealed = Some(seal.timestamp_ns),
        Some(Entry::Epoch(epoch)) => cells.open_epoch(epoch.epoch),
        Some(Entry::Begin(_)) | None => return Err("it is none that can stand there".to_owned()),
    }
    Ok(())
}
