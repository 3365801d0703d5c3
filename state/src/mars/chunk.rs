//! What is known of a chunk. There may be millions, so what several of them say is said once, in the tables of their graph.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use imbl::Vector;
use serde::{Deserialize, Serialize};

use crate::mars::ids::Place;
use crate::mars::key::{ChunkKey, Suffix};
use crate::memory::{Weigh, of_entry, of_list, of_shared, of_text};
use crate::ray::Needs;
use crate::ray::ids::{ObjectId, OperationId};

/// A place in a table that is none.
pub(crate) const NONE: u32 = u32::MAX;

/// Where a chunk is on its way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Stage {
    #[default]
    Pending,
    Running,
    Succeeded,
    Errored,
    Cancelled,
    /// It was made by another graph of the session.
    Fetched,
}

impl Stage {
    pub(crate) fn is_over(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}

/// A chunk of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ChunkMeta {
    /// The text of its key, among the texts of the graph.
    pub(crate) text: u32,
    pub(crate) suffix: Suffix,
    /// Among the indexes of the graph; [`NONE`]: as its key says.
    pub(crate) index: u32,
    /// As the client said, among the shapes of the graph.
    pub(crate) shape: u32,
    pub(crate) element_type: u8,
    pub(crate) stage: Stage,
    /// Chunks that are not over and read it, each occurrence.
    pub(crate) readers: u32,
    /// Tileables that somebody refers to and that consist of it, each occurrence; and one if it is a target itself.
    pub(crate) holders: u32,
    /// With one reference of its graph.
    pub(crate) object: Option<ObjectId>,
    /// Until it is over.
    pub(crate) work: Option<Arc<Work>>,
}

/// How a chunk is made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Work {
    /// Empty when its task was submitted.
    pub(crate) argument: Bytes,
    pub(crate) inputs: Vec<Place>,
    pub(crate) needs: Needs,
    pub(crate) is_retryable: bool,
    pub(crate) operation: Option<OperationId>,
}

impl ChunkMeta {
    /// Whether nobody needs it any more.
    pub(crate) fn is_idle(&self) -> bool {
        self.readers == 0 && self.holders == 0 && self.stage.is_over()
    }

    /// Whether it is found by its key: one of another graph is there only as long as this one has it.
    pub(crate) fn is_listed(&self) -> bool {
        self.stage != Stage::Fetched || self.object.is_some()
    }
}

impl Weigh for ChunkMeta {
    fn outside(&self) -> u64 {
        self.work.as_ref().map_or(0, |work| of_shared::<Work>().saturating_add(work.outside()))
    }
}

impl Weigh for Work {
    fn outside(&self) -> u64 {
        let names = self.needs.named_milli.keys().map(|name| of_text(name.len()).saturating_add(64));
        let lists = of_text(self.argument.len()).saturating_add(of_list::<Place>(self.inputs.len()));
        names.fold(lists, u64::saturating_add)
    }
}

/// What the chunks of one graph share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Tables {
    pub(crate) texts: Vector<Arc<str>>,
    pub(crate) shapes: Vector<Arc<[i64]>>,
    pub(crate) indexes: Vector<Arc<[u64]>>,
    /// What all of it takes outside. Derived.
    bytes: u64,
}

impl Tables {
    pub(crate) fn add_text(&mut self, text: Arc<str>) -> u32 {
        self.bytes = self.bytes.saturating_add(of_text(text.len()));
        self.texts.push_back(text);
        last(self.texts.len())
    }

    pub(crate) fn add_shape(&mut self, shape: Arc<[i64]>) -> u32 {
        self.bytes = self.bytes.saturating_add(of_list::<i64>(shape.len()));
        self.shapes.push_back(shape);
        last(self.shapes.len())
    }

    pub(crate) fn add_index(&mut self, index: Arc<[u64]>) -> u32 {
        self.bytes = self.bytes.saturating_add(of_list::<u64>(index.len()));
        self.indexes.push_back(index);
        last(self.indexes.len())
    }

    pub(crate) fn key(&self, chunk: &ChunkMeta) -> ChunkKey {
        ChunkKey { text: Arc::clone(self.text(chunk)), suffix: chunk.suffix }
    }

    pub(crate) fn key_text(&self, chunk: &ChunkMeta) -> String {
        format!("{}{}", self.text(chunk), chunk.suffix)
    }

    pub(crate) fn text(&self, chunk: &ChunkMeta) -> &Arc<str> {
        self.texts.get(chunk.text as usize).expect("every chunk's text is in the table")
    }

    pub(crate) fn shape(&self, chunk: &ChunkMeta) -> &[i64] {
        self.shapes.get(chunk.shape as usize).expect("every chunk's shape is in the table")
    }

    pub(crate) fn index(&self, chunk: &ChunkMeta) -> Vec<u64> {
        match self.indexes.get(chunk.index as usize) {
            Some(index) => index.to_vec(),
            None => chunk.suffix.numbers().unwrap_or_default(),
        }
    }

    /// Whether everything that a chunk says is in them.
    pub(crate) fn have(&self, chunk: &ChunkMeta) -> bool {
        let index = chunk.index == NONE || (chunk.index as usize) < self.indexes.len();
        index && (chunk.text as usize) < self.texts.len() && (chunk.shape as usize) < self.shapes.len()
    }

    /// What they take.
    pub(crate) fn bytes(&self) -> u64 {
        let pointers = self.texts.len() + self.shapes.len() + self.indexes.len();
        self.bytes.saturating_add((pointers as u64).saturating_mul(of_entry::<Arc<str>, ()>()))
    }
}

/// The place of the last of so many.
fn last(len: usize) -> u32 {
    u32::try_from(len.saturating_sub(1)).unwrap_or(NONE)
}

/// Finds in the tables what a command said already.
#[derive(Default)]
pub(crate) struct Shared {
    texts: BTreeMap<Arc<str>, u32>,
    shapes: BTreeMap<Arc<[i64]>, u32>,
    indexes: BTreeMap<Arc<[u64]>, u32>,
}

impl Shared {
    pub(crate) fn text(&mut self, tables: &mut Tables, text: &str) -> u32 {
        if let Some(place) = self.texts.get(text) {
            return *place;
        }
        let text: Arc<str> = text.into();
        let place = tables.add_text(Arc::clone(&text));
        self.texts.insert(text, place);
        place
    }

    pub(crate) fn shape(&mut self, tables: &mut Tables, shape: &[i64]) -> u32 {
        if let Some(place) = self.shapes.get(shape) {
            return *place;
        }
        let shape: Arc<[i64]> = shape.into();
        let place = tables.add_shape(Arc::clone(&shape));
        self.shapes.insert(shape, place);
        place
    }

    pub(crate) fn index(&mut self, tables: &mut Tables, index: &[u64]) -> u32 {
        if let Some(place) = self.indexes.get(index) {
            return *place;
        }
        let index: Arc<[u64]> = index.into();
        let place = tables.add_index(Arc::clone(&index));
        self.indexes.insert(index, place);
        place
    }
}
