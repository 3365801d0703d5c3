//! Why a graph is not tiled.

use thiserror::Error;

use crate::dtype::DType;
use crate::key::TileableKey;

/// A graph that is refused. Nothing of it is tiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The first node that cannot be, if it is about one.
    pub node: Option<TileableKey>,
    pub reason: Reason,
}

impl std::error::Error for Refusal {}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.node {
            Some(node) => write!(f, "tileable {node}: {}", self.reason),
            None => write!(f, "{}", self.reason),
        }
    }
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Reason {
    // The graph.
    #[error("no key: 1 to 128 letters, digits, dots, lines and underscores")]
    Key,
    #[error("two tileables have this key")]
    SameKey,
    #[error("unknown input {0}")]
    UnknownInput(TileableKey),
    #[error("unknown target {0}")]
    UnknownTarget(TileableKey),
    #[error("in a cycle: {}", path(.0))]
    Cycle(Vec<TileableKey>),
    #[error("{is} inputs, and this operator takes {wanted}")]
    Inputs { is: usize, wanted: String },
    #[error("{tileables} tileables, which is more than {most}")]
    TooManyTileables { tileables: usize, most: usize },
    #[error("more inputs than {most}")]
    TooManyInputs { most: usize },
    #[error("{bytes} inline bytes, which is more than {most}")]
    TooMuchData { bytes: usize, most: usize },

    // Operators.
    #[error("unknown operator {0}")]
    UnknownOperator(String),
    #[error("attributes of {operator}: {why}")]
    Attributes { operator: String, why: String },
    #[error("operators for tests are turned off")]
    TestHelper,
    #[error("data, and this operator takes none")]
    Data,
    #[error("{is} bytes of data, and {wanted} are needed")]
    DataBytes { is: u64, wanted: u64 },
    #[error("chunking: {0}")]
    Chunking(String),

    // Shapes and types.
    #[error("declared as {declared}, and it is {is}")]
    Declared { declared: String, is: String },
    #[error("a frame, where a tensor is needed")]
    Frame,
    #[error("a tensor, where a frame is needed")]
    Tensor,
    #[error("not for elements of type {0}")]
    DType(DType),
    #[error("elements of type {is}, where {wanted} is needed")]
    WrongDType { is: DType, wanted: DType },
    #[error("a number that has no place in elements of type {0}")]
    ScalarRange(DType),
    #[error("no input among the operands")]
    OnlyScalars,
    #[error("shapes {} and {} do not go together", shape(.left), shape(.right))]
    Shapes { left: Vec<Option<u64>>, right: Vec<Option<u64>> },
    #[error("axis {axis} of {dims}")]
    Axis { axis: i64, dims: usize },
    #[error("axis {axis} twice")]
    AxisTwice { axis: i64 },
    #[error("{is} axes, where {wanted} are needed")]
    Axes { is: usize, wanted: String },
    #[error("index {index} of an axis of extent {extent}")]
    Index { index: i64, extent: u64 },
    #[error("a step of 0")]
    Step,
    #[error("{shape:?} cannot become {wanted:?}")]
    Reshape { shape: Vec<u64>, wanted: Vec<i64> },
    #[error("a reduction of no elements has no result")]
    Empty,
    #[error("the extent of axis {axis} is known only when it has been computed; execute that first")]
    Unknown { axis: usize },
    #[error("unknown column {0}")]
    UnknownColumn(String),
    #[error("columns: {0}")]
    Columns(String),
    #[error("{0}")]
    Value(&'static str),

    // Bounds.
    #[error("{dims} axes, which is more than {}", crate::limits::DIMS_MAX)]
    Dims { dims: usize },
    #[error("shape {shape:?} is more than {} bytes", crate::limits::BYTES_MAX)]
    TooLarge { shape: Vec<u64> },
    #[error("more chunks than {}", crate::limits::CHUNKS_MAX)]
    TooManyChunks,
    #[error("more chunks of all tileables than {}", crate::limits::PLACES_MAX)]
    TooManyPlaces,
    #[error("more inputs of chunks than {}", crate::limits::CHUNK_EDGES_MAX)]
    TooManyEdges,
    #[error("more ranges and indexes of chunks than {}", crate::limits::ATTRIBUTES_MAX)]
    TooManyAttributes,
    #[error("more indexes than {}", crate::limits::INDICES_MAX)]
    TooManyIndices,
    #[error("a text of {bytes} bytes, which is more than {most}")]
    Text { bytes: usize, most: usize },
}

fn path(keys: &[TileableKey]) -> String {
    let keys: Vec<_> = keys.iter().map(|key| key.0.as_str()).collect();
    keys.join(" <- ")
}

/// A shape as people write it.
pub(crate) fn shape(extents: &[Option<u64>]) -> String {
    let extents: Vec<_> =
        extents.iter().map(|extent| extent.map_or("?".to_owned(), |extent| extent.to_string())).collect();
    format!("[{}]", extents.join(", "))
}
