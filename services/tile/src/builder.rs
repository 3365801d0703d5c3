//! What the rules add chunks to. Every bound of a chunk graph is looked at here, before memory is taken.

use std::fmt::Write as _;

use crate::chunk::{ChunkGraph, ChunkId, ChunkKey, ChunkNode, ChunkOperator, Content, Target};
use crate::extent::{Extent, Measure, Unknown};
use crate::key::TileableKey;
use crate::limits::{ATTRIBUTES_MAX, CHUNK_EDGES_MAX, CHUNKS_MAX, PLACES_MAX};
use crate::refusal::Reason;
use crate::splits::{Indexes, Splits, indexes};

/// Bytes that most keys have behind that of their tileable.
const AROUND_NUMBERS: usize = 16;

/// A chunk graph that grows.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    nodes: Vec<ChunkNode>,
    /// Of the tileable that is tiled.
    place: usize,
    key: String,
    between: usize,
    /// What is bounded, so far.
    edges: usize,
    places: usize,
    attributes: usize,
}

/// A node that is to be.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) operator: ChunkOperator,
    pub(crate) inputs: Vec<ChunkId>,
    pub(crate) index: Vec<usize>,
    pub(crate) extents: Vec<Extent>,
    pub(crate) content: Content,
    pub(crate) data: Vec<u8>,
}

/// What a chunk is to its tileable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// One of its chunks.
    Output,
    /// On the way to one.
    Between,
}

impl Draft {
    pub(crate) fn new(operator: ChunkOperator, inputs: Vec<ChunkId>, content: &Content) -> Self {
        let (index, extents, data) = (Vec::new(), Vec::new(), Vec::new());
        Self { operator, inputs, index, extents, content: content.clone(), data }
    }

    /// The chunk at an index of a tileable that is cut like that.
    pub(crate) fn at(self, index: &[usize], splits: &Splits) -> Self {
        Self { index: index.to_vec(), extents: splits.extents(index), ..self }
    }

    pub(crate) fn with_data(self, data: Vec<u8>) -> Self {
        Self { data, ..self }
    }
}

impl Builder {
    /// What is added from now on belongs to the tileable at that place of its graph.
    pub(crate) fn begin(&mut self, place: usize, key: &TileableKey) {
        self.place = place;
        key.0.clone_into(&mut self.key);
        self.between = 0;
    }

    /// All indexes of a tileable that is cut like that, if there is room for so many chunks.
    pub(crate) fn grid(&mut self, splits: &Splits) -> Result<Indexes, Reason> {
        let counts = splits.counts();
        self.room(&counts)?;
        Ok(indexes(&counts))
    }

    /// Notes that so many chunks will be listed.
    pub(crate) fn room(&mut self, counts: &[usize]) -> Result<(), Reason> {
        let chunks = counts.iter().try_fold(1_usize, |chunks, count| chunks.checked_mul(*count));
        let chunks = chunks.filter(|chunks| *chunks <= CHUNKS_MAX).ok_or(Reason::TooManyChunks)?;
        self.places = self.places.saturating_add(chunks);
        if self.places > PLACES_MAX { Err(Reason::TooManyPlaces) } else { Ok(()) }
    }

    /// Adds a node.
    pub(crate) fn add(&mut self, part: Part, draft: Draft) -> Result<ChunkId, Reason> {
        if self.nodes.len() >= CHUNKS_MAX {
            return Err(Reason::TooManyChunks);
        }
        self.edges = self.edges.saturating_add(draft.inputs.len());
        if self.edges > CHUNK_EDGES_MAX {
            return Err(Reason::TooManyEdges);
        }
        self.attributes = self.attributes.saturating_add(draft.operator.weight());
        if self.attributes > ATTRIBUTES_MAX {
            return Err(Reason::TooManyAttributes);
        }
        let id = ChunkId(self.nodes.len());
        assert!(draft.inputs.iter().all(|input| *input < id), "the inputs of a chunk stand before it");
        let key = self.name(part, &draft.index);
        let Draft { operator, inputs, index, extents, content, data } = draft;
        self.nodes.push(ChunkNode { key, operator, inputs, index, extents, content, data });
        Ok(id)
    }

    /// An extent of the tileable that only execution tells.
    pub(crate) fn unknown(&self, part: usize) -> Extent {
        Extent::Unknown(Unknown { tileable: self.place, axis: 0, part, measure: Measure::Extent })
    }

    /// The place of the tileable in its graph.
    pub(crate) fn place(&self) -> usize {
        self.place
    }

    /// The graph, without chunks of which no target is made.
    pub(crate) fn finish(self, mut targets: Vec<Target>) -> ChunkGraph {
        let mut needed = vec![false; self.nodes.len()];
        for chunk in targets.iter().flat_map(|target| &target.chunks) {
            needed[chunk.0] = true;
        }
        for at in (0..self.nodes.len()).rev() {
            if needed[at] {
                for input in &self.nodes[at].inputs {
                    needed[input.0] = true;
                }
            }
        }
        let mut renamed = Vec::with_capacity(needed.len());
        let mut next = 0;
        for is_needed in &needed {
            renamed.push(ChunkId(next));
            next += usize::from(*is_needed);
        }
        let rename = |chunks: &mut [ChunkId]| chunks.iter_mut().for_each(|chunk| *chunk = renamed[chunk.0]);
        targets.iter_mut().for_each(|target| rename(&mut target.chunks));
        let mut nodes: Vec<ChunkNode> =
            self.nodes.into_iter().zip(&needed).filter_map(|(node, needed)| needed.then_some(node)).collect();
        nodes.iter_mut().for_each(|node| rename(&mut node.inputs));
        ChunkGraph { nodes, targets }
    }

    fn name(&mut self, part: Part, index: &[usize]) -> ChunkKey {
        let mut key = String::with_capacity(self.key.len() + AROUND_NUMBERS);
        key.push_str(&self.key);
        // A text takes whatever is written to it.
        let mut add = |mark: char, number: usize| {
            key.push(mark);
            let _ = write!(key, "{number}");
        };
        match part {
            Part::Output if index.is_empty() => key.push(':'),
            Part::Output => {
                for (axis, at) in index.iter().enumerate() {
                    add(if axis == 0 { ':' } else { '.' }, *at);
                }
            }
            Part::Between => {
                self.between += 1;
                add('~', self.between - 1);
            }
        }
        ChunkKey(key)
    }
}
