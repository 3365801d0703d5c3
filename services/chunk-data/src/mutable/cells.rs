//! The batches of one chunk. Pure: no file, no time.

use std::collections::{BTreeMap, HashMap};

use tripod_proto::mars::v1::{DimIndex, dim_index};

use super::frame::{self, FrameCells};
use super::{ChunkId, Definition, MutableError, Stored};
use crate::index::{OutOfRange, Picked, scatter};
use crate::layout::Chunk;
use crate::limits::MUTABLE_CHUNK_BYTES_MAX;

/// A batch, and what its index means in this chunk.
#[derive(Debug)]
struct Held {
    stored: Stored,
    picked: Option<Picked>,
    checksum: u32,
}

/// One chunk.
#[derive(Debug)]
pub(super) struct Cells {
    pub(super) id: ChunkId,
    pub(super) definition: Definition,
    pub(super) epoch: u64,
    /// Nothing is written in this epoch any more, and it is read as of this time; within, `None` is everything.
    pub(super) sealed: Option<Option<i64>>,
    /// In the order that decides who is read.
    batches: BTreeMap<(i64, u64), Held>,
    /// Timestamps in the order in which batches came.
    arrivals: Vec<i64>,
    /// Places of batches by clients and their numbers.
    numbers: HashMap<String, BTreeMap<u64, u64>>,
    /// How many of the first batches all owners have. Others are not read: they may be lost.
    pub(super) confirmed: u64,
    /// Whether it is known how many were answered: not when the file was just read.
    pub(super) sure: bool,
    pub(super) taken_bytes: u64,
}

/// What becomes of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    New,
    /// It is there.
    Duplicate,
}

impl Cells {
    pub(super) fn new(id: ChunkId, definition: Definition, epoch: u64) -> Self {
        Self {
            id,
            definition,
            epoch,
            sealed: None,
            batches: BTreeMap::new(),
            arrivals: Vec::new(),
            numbers: HashMap::new(),
            confirmed: 0,
            sure: true,
            taken_bytes: 0,
        }
    }

    /// Another epoch begins, perhaps with other owners: which of them has what is found out anew.
    pub(super) fn open_epoch(&mut self, epoch: u64) {
        (self.epoch, self.sealed) = (epoch, None);
        (self.confirmed, self.sure) = (0, false);
    }

    /// How many batches there are, which is the place of the next one.
    pub(super) fn next(&self) -> u64 {
        self.arrivals.len() as u64
    }

    /// Whether the batch may be written, compared with the chunk and those that are there.
    ///
    /// # Errors
    /// [`MutableError`].
    pub(super) fn look(&self, batch: &Stored) -> Result<Place, MutableError> {
        if let Some(seq) = self.numbers.get(&batch.client_id).and_then(|numbers| numbers.get(&batch.batch_no))
        {
            let same = self.at(*seq).is_some_and(|held| held.checksum == batch.checksum());
            let reused =
                || MutableError::Reused { client_id: batch.client_id.clone(), batch_no: batch.batch_no };
            return if same { Ok(Place::Duplicate) } else { Err(reused()) };
        }
        self.pick(batch)?;
        // A tensor's cells are as many as they are, however much is written to them; a frame's texts are not.
        let bytes = self.taken_bytes.saturating_add(batch.taken_bytes());
        if self.definition.is_frame() && bytes > MUTABLE_CHUNK_BYTES_MAX {
            return Err(MutableError::Illegal(format!(
                "{MUTABLE_CHUNK_BYTES_MAX} bytes are all that may be written to a chunk of a frame until it is sealed"
            )));
        }
        Ok(Place::New)
    }

    /// The batch has become durable; it was looked at before.
    ///
    /// # Errors
    /// [`MutableError`] if it does not belong here: then nothing changes.
    pub(super) fn add(&mut self, batch: Stored) -> Result<(), MutableError> {
        if batch.seq != self.next() {
            return Err(MutableError::Illegal(format!("batch {} is not the next one", batch.seq)));
        }
        let picked = self.pick(&batch)?;
        self.numbers.entry(batch.client_id.clone()).or_default().insert(batch.batch_no, batch.seq);
        self.arrivals.push(batch.timestamp_ns);
        self.taken_bytes += batch.taken_bytes();
        let checksum = batch.checksum();
        let place = (batch.timestamp_ns, batch.seq);
        self.batches.insert(place, Held { stored: batch, picked, checksum });
        Ok(())
    }

    /// The batch at a place of the order in which they came.
    pub(super) fn batch(&self, seq: u64) -> Option<&Stored> {
        self.at(seq).map(|held| &held.stored)
    }

    /// Whether that batch came before, at that place.
    pub(super) fn is_at(&self, seq: u64, batch: &Stored) -> bool {
        self.at(seq).is_some_and(|held| {
            let stored = &held.stored;
            (&stored.client_id, stored.batch_no) == (&batch.client_id, batch.batch_no)
                && held.checksum == batch.checksum()
        })
    }

    /// All cells as of a time, in C order; `None` is everything.
    pub(super) fn as_of(&self, timestamp_ns: Option<i64>) -> Vec<u8> {
        let (shape, width) = (&self.definition.shape, self.definition.element.width());
        let mut cells = self.definition.defaults();
        let last = (timestamp_ns.unwrap_or(i64::MAX), u64::MAX);
        for ((_, seq), held) in self.batches.range(..=last) {
            if *seq >= self.confirmed {
                continue;
            }
            if let Some(picked) = &held.picked {
                scatter(&mut cells, shape, width, picked, &held.stored.values);
                continue;
            }
            for (place, value) in held.stored.places.iter().zip(held.stored.values.chunks_exact(width)) {
                let start = usize::try_from(*place).unwrap_or(usize::MAX).saturating_mul(width);
                if let Some(cell) = cells.get_mut(start..start.saturating_add(width)) {
                    cell.copy_from_slice(value);
                }
            }
        }
        cells
    }

    /// The same of a frame.
    ///
    /// # Errors
    /// [`MutableError`]: a batch is not what it was when it came.
    pub(super) fn frame_as_of(&self, timestamp_ns: Option<i64>) -> Result<Chunk, MutableError> {
        let columns = &self.definition.columns;
        let mut cells = FrameCells::new(columns, self.definition.cells());
        let last = (timestamp_ns.unwrap_or(i64::MAX), u64::MAX);
        for ((_, seq), held) in self.batches.range(..=last) {
            if *seq >= self.confirmed {
                continue;
            }
            let Stored { places, values, .. } = &held.stored;
            match held.picked.as_ref().and_then(|picked| picked.picks.first()) {
                Some(pick) => {
                    let part = frame::part(columns, values, pick.count())?;
                    cells.put(&(0..pick.count()).map(|at| pick.place(at)), &part);
                }
                None => {
                    let part = frame::part(columns, values, places.len() as u64)?;
                    cells.put(&places.iter().copied(), &part);
                }
            }
        }
        Ok(cells.finish())
    }

    fn at(&self, seq: u64) -> Option<&Held> {
        let timestamp_ns = self.arrivals.get(usize::try_from(seq).ok()?)?;
        self.batches.get(&(*timestamp_ns, seq))
    }

    /// What the index of a batch means here, and whether its values are as many as that.
    fn pick(&self, batch: &Stored) -> Result<Option<Picked>, MutableError> {
        let Definition { element, shape, columns, .. } = &self.definition;
        let is_frame = self.definition.is_frame();
        let (picked, cells) = match &batch.index {
            Some(index) => {
                let drops = |dim: &DimIndex| matches!(dim.index, Some(dim_index::Index::Integer(_)));
                if is_frame && index.dims.iter().any(drops) {
                    return Err(OutOfRange::Dropped.into());
                }
                let picked = Picked::of(index, shape, if is_frame { 0 } else { element.width() })?;
                let cells = picked.elements();
                (Some(picked), cells)
            }
            None => {
                let all = self.definition.cells();
                if let Some(place) = batch.places.iter().find(|place| **place >= all) {
                    return Err(MutableError::OutOfRange(format!("{place} is no place among {all} cells")));
                }
                (None, batch.places.len() as u64)
            }
        };
        if is_frame {
            frame::part(columns, &batch.values, cells)?;
            return Ok(picked);
        }
        let bytes = batch.values.len();
        if cells.checked_mul(element.width() as u64) != Some(bytes as u64) {
            return Err(MutableError::Illegal(format!(
                "{bytes} bytes are not the values of {cells} cells; next: broadcast and cast them before they are sent"
            )));
        }
        if *element == crate::element::Element::Bool && batch.values.iter().any(|byte| *byte > 1) {
            return Err(MutableError::Illegal("a value is neither true nor false".to_owned()));
        }
        Ok(picked)
    }
}
