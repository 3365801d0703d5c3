//! A chunk without a file, for `fuzzing`.

use super::cells::{Cells, Place};
use super::frames::scan;
use super::records::apply;
use super::{ChunkId, Definition, FrameColumn, Stored};
use crate::element::Element;
use crate::layout::Chunk;

/// A chunk of four numbers, or of four rows.
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

    /// A frame with numbers `n` and texts `t`.
    pub(crate) fn frame(rows: u64) -> Self {
        let id = ChunkId { session: "s".to_owned(), key: "k".to_owned() };
        let numbers = FrameColumn { name: "n".to_owned(), element: Some(Element::I32), default: vec![7; 4] };
        let texts = FrameColumn { name: "t".to_owned(), element: None, default: b"-".to_vec() };
        let definition = Definition {
            tileable: 1,
            element: Element::Bool,
            shape: vec![rows],
            default: vec![0],
            columns: vec![numbers, texts],
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
        self.read();
    }

    /// All of it can be read, and what is read of a frame is one.
    fn read(&self) {
        if !self.cells.definition.is_frame() {
            assert_eq!(self.cells.as_of(None).len(), 32);
            return;
        }
        let read = self.cells.frame_as_of(None);
        let Ok(chunk) = &read else { panic!("what was taken is not read: {read:?}") };
        let image = chunk.image().concat().into();
        assert_eq!(Chunk::read(&image, 0).as_ref(), Ok(chunk), "what is read is written as it is");
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
        playground.read();
    }
}
