//! What comes of a graph: chunks, and what a worker does for each.

mod operator;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use operator::{ChunkOperator, Gives, Step, Takes};

use crate::column::Column;
use crate::dtype::DType;
use crate::extent::Extent;
use crate::key::TileableKey;
use crate::splits::Splits;

/// Chunks in an order in which they can be computed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChunkGraph {
    pub nodes: Vec<ChunkNode>,
    pub targets: Vec<Target>,
}

/// The place of a node in its graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChunkId(pub usize);

/// The name of a chunk: `KEY:1.0` is the chunk of a tileable at that index, `KEY~7` a result on the way there. Chunks of
/// several tileables may be one and the same; it has the name of the first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChunkKey(pub String);

/// One chunk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChunkNode {
    pub key: ChunkKey,
    pub operator: ChunkOperator,
    /// Each stands before this one.
    pub inputs: Vec<ChunkId>,
    /// Where it is in its tileable.
    pub index: Vec<usize>,
    pub extents: Vec<Extent>,
    pub content: Content,
    /// The part of the client's bytes that it brings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<u8>,
}

/// What a chunk holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    Tensor(DType),
    Frame(Vec<Column>),
    /// What only the next operator understands: partial results, and rows on their way to a reducer.
    Partial,
}

/// A tileable that the client wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    pub key: TileableKey,
    pub content: Content,
    pub splits: Splits,
    /// Its chunks, the last axis first.
    pub chunks: Vec<ChunkId>,
}

impl ChunkNode {
    /// How many bytes the result has, if that is known.
    #[must_use]
    pub fn result_bytes(&self) -> Option<u64> {
        tensor_bytes(&self.content, &self.extents)
    }
}

/// How many bytes a tensor of these extents has, if it is one and they are known.
pub(crate) fn tensor_bytes(content: &Content, extents: &[Extent]) -> Option<u64> {
    let Content::Tensor(dtype) = content else { return None };
    extents.iter().try_fold(dtype.bytes(), |bytes, extent| Some(bytes.saturating_mul(extent.known()?)))
}

impl fmt::Display for ChunkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensor(dtype) => write!(f, "{dtype}"),
            Self::Frame(columns) => {
                let columns: Vec<_> = columns.iter().map(ToString::to_string).collect();
                write!(f, "frame({})", columns.join(","))
            }
            Self::Partial => f.write_str("partial"),
        }
    }
}
