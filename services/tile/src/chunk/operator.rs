//! What a worker does for one chunk. All are functions of their inputs and attributes alone, so that a chunk that is lost
//! is computed again as it was.

use serde::{Deserialize, Serialize};

use super::Content;
use crate::extent::Extent;
use crate::index::Range;
use crate::operator::{Aggregate, BinaryFunction, FrameFormat, Operand, Reduction, UnaryFunction};
use crate::scalar::Scalar;

/// How a chunk is made of its inputs. Extents and type of the result are those of the node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum ChunkOperator {
    Full {
        value: Scalar,
    },
    /// Ones where column minus row is this.
    Eye {
        diagonal: i64,
    },
    /// `start + (offset + i) * delta`.
    Arange {
        start: Scalar,
        delta: Scalar,
        offset: u64,
    },
    /// `(offset + i) * step + start`, and `last` for element `num - 1` if there is one.
    Linspace {
        start: Scalar,
        step: Scalar,
        last: Option<Scalar>,
        num: u64,
        offset: u64,
    },
    /// From the generator of this key: the seed and the number of the chunk.
    RandUniform {
        seed: u64,
        stream: u64,
        low: Scalar,
        high: Scalar,
    },
    RandNormal {
        seed: u64,
        stream: u64,
        mean: Scalar,
        deviation: Scalar,
    },
    /// The node's data.
    FromBytes,
    Fetch {
        chunk: String,
    },

    Unary {
        function: UnaryFunction,
    },
    Cast,
    /// Both sides are cast to the common type of the two first, as numpy does.
    Binary {
        function: BinaryFunction,
        left: Operand,
        right: Operand,
    },
    Where {
        yes: Operand,
        no: Operand,
    },

    /// A range of each axis; then the dropped axes, which have one element, are dropped.
    Slice {
        ranges: Vec<Range>,
        drop: Vec<usize>,
    },
    /// Pieces of the inputs side by side in a grid, the last axis first.
    Assemble {
        grid: Vec<usize>,
        pieces: Vec<Vec<Range>>,
    },
    /// For each element along the axis: which input, and which of its elements.
    Gather {
        axis: usize,
        from: Vec<(usize, u64)>,
    },
    /// The first input with the value where the ranges are; the value has no dropped axes.
    Assign {
        ranges: Vec<Range>,
        drop: Vec<usize>,
        value: Operand,
    },
    Compress {
        axis: usize,
    },

    Transpose {
        axes: Vec<usize>,
    },
    ExpandDims {
        axis: usize,
    },
    /// To the extents of the node.
    Reshape,

    Matmul,
    /// The sum of the products of each two inputs, from the first to the last.
    MatmulSum,
    /// The sum of all inputs, from the first to the last.
    AddN,
    /// One step of a reduction. Several inputs are a grid, the last axis first, and are merged from the first to the last.
    Reduce {
        reduction: Reduction,
        takes: Takes,
        gives: Gives,
        /// Where the chunk begins and the shape of the whole, for functions that find a place.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        begin: Vec<u64>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        whole: Vec<u64>,
    },
    /// Partial results of one chunk by several reductions, each of them `Reduce`, as one chunk.
    ReduceSeveral {
        parts: Vec<ChunkOperator>,
    },
    /// Partial results of one reduction, merged in the order in which `Reduce` would merge them in nodes of their own.
    ReduceTree {
        reduction: Reduction,
        gives: Gives,
        /// Which input, and which of its partial results: 0 where it has one.
        leaves: Vec<(usize, usize)>,
        /// Each is merged from the first to the last. They are numbered behind the leaves; the last one is the whole.
        groups: Vec<Vec<usize>>,
    },

    ReadFrame {
        format: FrameFormat,
    },
    Project {
        columns: Vec<String>,
    },
    Column {
        name: String,
    },
    FilterRows,
    /// The first rows of all inputs, one after the other.
    Head {
        rows: u64,
    },
    GroupBy {
        by: Vec<String>,
        aggregates: Vec<Aggregate>,
        takes: Takes,
        gives: Gives,
    },
    /// For each reducer the rows, or groups, whose columns hash to it.
    ShuffleMap {
        by: Vec<String>,
        reducers: u32,
    },
    /// What is for this reducer, of each input, one after the other.
    ShuffleReduce {
        reducer: u32,
    },

    /// One after the other, each of what the one before has made; the first has the node's inputs and data.
    Fused {
        steps: Vec<Step>,
    },
    /// Steps of several chunks that read nothing, one chunk after the other. The partial results of all of them are one chunk.
    Chains {
        chains: Vec<Vec<Step>>,
    },

    Sleep {
        ms: u64,
    },
    Fail {
        message: String,
        attempts: u32,
    },
    Alloc {
        bytes: u64,
    },
}

/// One of several functions that make a chunk, and what it makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub operator: ChunkOperator,
    pub extents: Vec<Extent>,
    pub content: Content,
}

/// What a step of a reduction begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Takes {
    /// A chunk.
    Values,
    /// What other steps gave.
    Partials,
}

/// What it ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gives {
    Partial,
    Result,
}

impl ChunkOperator {
    /// How many ranges and indexes it has, which are bounded.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Slice { ranges, .. } | Self::Assign { ranges, .. } => ranges.len(),
            Self::Assemble { grid, pieces } => grid.len() + pieces.len().saturating_mul(grid.len()),
            Self::Gather { from, .. } => from.len(),
            Self::GroupBy { by, aggregates, .. } => by.len() + aggregates.len(),
            Self::Project { columns } | Self::ShuffleMap { by: columns, .. } => columns.len(),
            Self::ReduceSeveral { parts } => parts.iter().map(Self::part_weight).sum(),
            Self::ReduceTree { leaves, groups, .. } => {
                leaves.len() + groups.iter().map(Vec::len).sum::<usize>()
            }
            Self::Fused { steps } => weight_of(steps),
            Self::Chains { chains } => chains.iter().map(|steps| weight_of(steps)).sum(),
            _ => 0,
        }
    }

    /// The same of one of several reductions, each of which says its axes.
    fn part_weight(&self) -> usize {
        match self {
            Self::Reduce { reduction, begin, whole, .. } => {
                1 + reduction.axes.len() + begin.len() + whole.len()
            }
            other => other.weight(),
        }
    }

    /// How many partial results it has, if it has any.
    pub(crate) fn partials(&self) -> usize {
        match self {
            Self::ReduceSeveral { parts } => parts.len(),
            Self::Fused { steps } => partials_of(steps),
            Self::Chains { chains } => chains.iter().map(|steps| partials_of(steps)).sum(),
            _ => 1,
        }
    }

    /// One step of a function that finds no place.
    pub(crate) const fn reduce(reduction: Reduction, takes: Takes, gives: Gives) -> Self {
        Self::Reduce { reduction, takes, gives, begin: Vec::new(), whole: Vec::new() }
    }
}

fn weight_of(steps: &[Step]) -> usize {
    steps.iter().map(|step| step.operator.weight()).sum()
}

fn partials_of(steps: &[Step]) -> usize {
    steps.last().map_or(1, |step| step.operator.partials())
}
