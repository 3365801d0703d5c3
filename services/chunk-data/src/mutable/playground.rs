//! A chunk without a file, for `fuzzing`.

use super::cells::{Cells, Place};
use super::frames::scan;
use super::records::apply;
use super::{ChunkId, Definition, Stored};
use crate::element::Element;

/// A chunk of four numbers.
#[derive(Debug)]
pub(crate) struct Playground {
    cells: Cells,
}

impl Playground {
    pub(crate) fn new() -> Self {
        let id = ChunkId { session: "s".to_owned(), key: "k".to_owned() };
        let definition = Definition {
            tileable: 1,
            element: Element::F64,
            shape: vec![4],
            default: vec![0; 8],
            columns: Vec::new(),
        };
        Self { cells: Cells::new(id, definition, 1) }
    }

    /// A batch that is looked at can be added, and another one changes nothing.
    pub(crate) fn write(&mut self, mut batch: Stored) {
        let before = self.cells.next();
        match self.cells.look(&batch) {
            Ok(Place::New) => {
                batch.seq = before;
                let added = self.cells.add(batch);
                assert!(added.is_ok(), "{added:?}");
                self.cells.confirmed = self.cells.next();
            }
            Ok(Place::Duplicate) | Err(_) => assert_eq!(self.cells.next(), before),
        }
        assert_eq!(self.cells.as_of(None).len(), 32);
    }

    /// What is whole of a file, applied.
    pub(crate) fn replay(file: &[u8]) {
        let Ok(scanned) = scan(file) else { return };
        let again = scan(&file[..scanned.end]);
        assert_eq!(again.as_ref(), Ok(&scanned), "what is whole stays whole");
        let mut playground = Self::new();
        for content in &scanned.contents {
            // What is none is told.
            _ = apply(&mut playground.cells, content);
        }
        assert_eq!(playground.cells.as_of(None).len(), 32);
    }
}
