//! Chunks and tileables as they come: each is looked at by itself, and put behind the others of its graph.

use std::sync::Arc;

use crate::fault::Fault;
use crate::limits::within;
use crate::mars::chunk::{ChunkMeta, NONE, Shared, Stage, Work};
use crate::mars::command::{Chunk, Graph as Content, Input, Tileable};
use crate::mars::graph::{FETCHED_FIRST, Graph};
use crate::mars::ids::Place;
use crate::mars::key::{ChunkKey, Suffix};
use crate::mars::limits::{
    ARGUMENT_BYTES_MAX, COLUMNS_MAX, COMMAND_BYTES_MAX, COMMAND_CHUNKS_MAX, DIMS_MAX, GRAPH_BYTES_MAX,
    GRAPH_CHUNKS_MAX, INPUTS_MAX, KEY_BYTES_MAX, LISTED_CHUNKS_MAX, RESOURCES_MAX, SPLITS_MAX,
    TEXT_BYTES_MAX, TILEABLES_MAX, check_key,
};
use crate::mars::refusal::Refusal;
use crate::mars::tileable::{TileableMeta, cells};

/// A node of a graph is refused.
pub(super) fn of_node(key: &str, reason: impl Into<String>) -> Fault {
    let cut = (0..=KEY_BYTES_MAX).rev().find(|end| key.is_char_boundary(*end)).unwrap_or(0);
    let key = key.get(..cut.min(key.len())).unwrap_or(key).to_owned();
    Refusal::Node { key, reason: reason.into() }.into()
}

impl Graph {
    /// Puts everything behind what is there. What is refused leaves the graph unusable.
    pub(super) fn take_in(&mut self, content: Content) -> Result<(), Fault> {
        within("chunks in one command", content.chunks.len() as u64, COMMAND_CHUNKS_MAX)?;
        within("bytes of one command", said(&content), COMMAND_BYTES_MAX)?;
        let chunks = u64::from(self.nodes()) + content.chunks.len() as u64;
        within("chunks of a graph", chunks, GRAPH_CHUNKS_MAX)?;
        let tileables = self.tileables.len() + content.tileables.len();
        within("tileables of a graph", tileables as u64, TILEABLES_MAX)?;
        let mut shared = Shared::default();
        for chunk in content.chunks {
            self.take_chunk(&mut shared, chunk)?;
        }
        within("bytes of a graph", self.waiting_bytes, GRAPH_BYTES_MAX)?;
        for tileable in content.tileables {
            self.take_tileable(&mut shared, tileable)?;
        }
        let listed: usize = self.tileables.values().map(|tileable| tileable.chunks.len()).sum();
        within("chunks of a graph's tileables", listed as u64, LISTED_CHUNKS_MAX)
    }

    fn take_chunk(&mut self, shared: &mut Shared, chunk: Chunk) -> Result<(), Fault> {
        let Chunk { key, argument, inputs, index, shape, element_type, needs, is_retryable } = chunk;
        check_key("a chunk's key", &key)?;
        let place = self.nodes();
        // A hundred thousand chunks come at once: words are made for the one that is refused.
        let fits = |what: &str, count: usize, most: u64| {
            let count = count as u64;
            if count <= most { Ok(()) } else { within(&format!("{what} of node `{key}`"), count, most) }
        };
        fits("bytes", argument.len(), ARGUMENT_BYTES_MAX)?;
        fits("inputs", inputs.len(), INPUTS_MAX)?;
        fits("axes", shape.len().max(index.len()), DIMS_MAX)?;
        fits("named resources", needs.named_milli.len(), RESOURCES_MAX)?;
        for name in needs.named_milli.keys() {
            fits("bytes of a resource's name", name.len(), TEXT_BYTES_MAX as u64)?;
        }
        if shape.iter().any(|extent| *extent < -1) {
            return Err(of_node(&key, "has an extent below -1"));
        }
        let mut places = Vec::with_capacity(inputs.len());
        for input in inputs {
            places.push(match input {
                Input::Chunk(input) if input.0 < place => input,
                Input::Chunk(_) => return Err(of_node(&key, "has an input that does not stand before it")),
                Input::Session(input) => self.fetch(shared, &input)?,
            });
        }
        let work = Work { argument, inputs: places, needs, is_retryable, operation: None };
        let (text, suffix) = Suffix::split(&key);
        let text = shared.text(&mut self.tables, text);
        let says_so = index.is_empty() || suffix.says(&index);
        let index = if says_so { NONE } else { shared.index(&mut self.tables, &index) };
        let shape = shared.shape(&mut self.tables, &shape);
        let meta = ChunkMeta {
            text,
            suffix,
            index,
            shape,
            element_type,
            stage: Stage::Pending,
            readers: 0,
            holders: 0,
            object: None,
            work: Some(Arc::new(work)),
        };
        self.add_chunk(Place(place), meta);
        Ok(())
    }

    /// The place of a chunk that another graph made; which one, the commit says.
    fn fetch(&mut self, shared: &mut Shared, key: &str) -> Result<Place, Fault> {
        check_key("a chunk's key", key)?;
        let chunk_key = ChunkKey::of(key);
        if let Some(place) = self.fetched.get(&chunk_key) {
            return Ok(*place);
        }
        within("chunks of a graph", self.fetched.len() as u64 + 1, GRAPH_CHUNKS_MAX)?;
        let text = shared.text(&mut self.tables, &chunk_key.text);
        let shape = shared.shape(&mut self.tables, &[]);
        let place = self.next_fetched();
        let meta = ChunkMeta {
            text,
            suffix: chunk_key.suffix,
            index: NONE,
            shape,
            element_type: 0,
            stage: Stage::Fetched,
            readers: 0,
            holders: 0,
            object: None,
            work: None,
        };
        self.add_chunk(place, meta);
        Ok(place)
    }

    fn take_tileable(&mut self, shared: &mut Shared, tileable: Tileable) -> Result<(), Fault> {
        let Tileable { key, kind, name, element_type, columns, nsplits, chunks } = tileable;
        check_key("a tileable's key", &key)?;
        if self.tileables.contains_key(key.as_str()) {
            return Err(of_node(&key, "is there twice"));
        }
        within("bytes of a tileable's name", name.len() as u64, TEXT_BYTES_MAX as u64)?;
        within("columns of a frame", columns.len() as u64, COLUMNS_MAX)?;
        for column in &columns {
            within("bytes of a column's name", column.name.len() as u64, TEXT_BYTES_MAX as u64)?;
        }
        within("axes of a tileable", nsplits.len() as u64, DIMS_MAX)?;
        let parts: usize = nsplits.iter().map(Vec::len).sum();
        within("parts of a tileable", parts as u64, SPLITS_MAX)?;
        if nsplits.iter().flatten().any(|extent| *extent < -1) {
            return Err(of_node(&key, "has an extent below -1"));
        }
        if cells(&nsplits) != Some(chunks.len() as u64) {
            return Err(of_node(&key, "has not as many chunks as its extents along all axes say"));
        }
        let mut places = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            places.push(match chunk {
                // Whether it is there, the commit says: it may come later.
                Input::Chunk(place) if place.0 < FETCHED_FIRST => place,
                Input::Chunk(_) => return Err(of_node(&key, "lists a chunk that is not in the graph")),
                Input::Session(chunk) => self.fetch(shared, &chunk)?,
            });
        }
        let name = name.as_str().into();
        let meta = TileableMeta { kind, name, element_type, columns, nsplits, chunks: places, count: 0 };
        self.tileables.insert(key.as_str().into(), Arc::new(meta));
        Ok(())
    }
}

/// How much a command says, roughly.
fn said(content: &Content) -> u64 {
    let chunks = content.chunks.iter().map(Chunk::said_bytes);
    chunks.chain(content.tileables.iter().map(Tileable::said_bytes)).fold(0, u64::saturating_add)
}
