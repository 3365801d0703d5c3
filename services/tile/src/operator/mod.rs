//! What clients may do with tensors and frames. A variant says what is wanted; the rule for it is in `rules`.

mod aggregate;
mod chunking;
mod function;
mod reduction;

use serde::{Deserialize, Serialize};

pub use aggregate::{Aggregate, AggregateFunction, FrameFormat};
pub use chunking::Chunking;
pub(crate) use chunking::check_shape;
pub use function::{BinaryFunction, Operand, UnaryFunction};
pub use reduction::{Reduction, ReductionFunction};

use crate::chunk::Content;
use crate::column::Column;
use crate::dtype::DType;
use crate::index::AxisIndex;
use crate::scalar::Scalar;

/// How a tileable is made of its inputs. Axes may be negative, and then count from the last one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Operator {
    // Sources.
    Full {
        value: Scalar,
        shape: Vec<u64>,
        dtype: DType,
        #[serde(default)]
        chunks: Chunking,
    },
    Zeros {
        shape: Vec<u64>,
        dtype: DType,
        #[serde(default)]
        chunks: Chunking,
    },
    Ones {
        shape: Vec<u64>,
        dtype: DType,
        #[serde(default)]
        chunks: Chunking,
    },
    /// Ones on a diagonal: 0 the main one, positive above it.
    Eye {
        rows: u64,
        columns: u64,
        #[serde(default)]
        diagonal: i64,
        dtype: DType,
        #[serde(default)]
        chunks: Chunking,
    },
    Arange {
        start: Scalar,
        stop: Scalar,
        step: Scalar,
        dtype: DType,
        #[serde(default)]
        chunks: Chunking,
    },
    /// `num` fractions of 64 bits from `start` to `stop`.
    Linspace {
        start: Scalar,
        stop: Scalar,
        num: u64,
        endpoint: bool,
        #[serde(default)]
        chunks: Chunking,
    },
    RandUniform {
        seed: u64,
        low: Scalar,
        high: Scalar,
        shape: Vec<u64>,
        dtype: DType,
        #[serde(default)]
        chunks: Chunking,
    },
    RandNormal {
        seed: u64,
        mean: Scalar,
        deviation: Scalar,
        shape: Vec<u64>,
        dtype: DType,
        #[serde(default)]
        chunks: Chunking,
    },
    /// The data of the tileable: elements as numpy lays them out, little-endian.
    FromBytes {
        shape: Vec<u64>,
        dtype: DType,
        #[serde(default)]
        chunks: Chunking,
    },
    /// Chunks that are there, by their keys.
    Fetch {
        content: Content,
        splits: Vec<Vec<Option<u64>>>,
        chunks: Vec<String>,
    },

    // Of each element.
    Unary {
        function: UnaryFunction,
    },
    Cast {
        dtype: DType,
    },
    Binary {
        function: BinaryFunction,
        left: Operand,
        right: Operand,
    },
    /// `yes` where the first input is true.
    Where {
        yes: Operand,
        no: Operand,
    },

    // Parts.
    /// What is picked along each axis; along those that are not named, everything.
    Slice {
        index: Vec<AxisIndex>,
    },
    /// The first input with something else where the index picks.
    SetItem {
        index: Vec<AxisIndex>,
        value: Operand,
    },
    Take {
        indices: Vec<i64>,
        axis: i64,
    },
    /// The first input where the second one, of one axis, is true.
    Compress {
        axis: i64,
    },
    /// One of so many equal parts; as with numpy, the first ones may be one longer.
    Split {
        sections: u64,
        part: u64,
        axis: i64,
    },

    // Shapes.
    Concat {
        axis: i64,
    },
    Stack {
        axis: i64,
    },
    Transpose {
        axes: Vec<i64>,
    },
    ExpandDims {
        axis: i64,
    },
    /// One of the extents may be -1: what is left.
    Reshape {
        shape: Vec<i64>,
    },
    Rechunk {
        chunks: Chunking,
    },

    // Along axes.
    /// As numpy's, of tensors of one or two axes.
    Matmul,
    Reduce {
        function: ReductionFunction,
        /// All of them if absent.
        #[serde(default)]
        axes: Option<Vec<i64>>,
        #[serde(default)]
        keepdims: bool,
        #[serde(default)]
        ddof: u64,
    },

    // Frames.
    /// The data of the tileable, cut into files of so many bytes.
    ReadFrame {
        format: FrameFormat,
        files: Vec<u64>,
        columns: Vec<Column>,
    },
    Project {
        columns: Vec<String>,
    },
    /// One column as a tensor.
    Column {
        name: String,
    },
    /// The rows of the first input where the second one is true.
    FilterRows,
    Head {
        rows: u64,
    },
    /// With one reducer, partial results are merged in a tree; with more, groups are shuffled.
    GroupBy {
        by: Vec<String>,
        aggregates: Vec<Aggregate>,
        reducers: u32,
    },
    /// Equal values of these columns come into one chunk.
    Shuffle {
        by: Vec<String>,
        reducers: u32,
    },

    // For tests; refused where they are not turned on.
    Sleep {
        ms: u64,
    },
    /// Fails in the first so many attempts.
    Fail {
        message: String,
        attempts: u32,
    },
    Alloc {
        bytes: u64,
    },
}

/// The names of all operators, as they are sent.
pub(crate) const NAMES: &[&str] = &[
    "full",
    "zeros",
    "ones",
    "eye",
    "arange",
    "linspace",
    "rand_uniform",
    "rand_normal",
    "from_bytes",
    "fetch",
    "unary",
    "cast",
    "binary",
    "where",
    "slice",
    "set_item",
    "take",
    "compress",
    "split",
    "concat",
    "stack",
    "transpose",
    "expand_dims",
    "reshape",
    "rechunk",
    "matmul",
    "reduce",
    "read_frame",
    "project",
    "column",
    "filter_rows",
    "head",
    "group_by",
    "shuffle",
    "sleep",
    "fail",
    "alloc",
];

impl Operator {
    /// How many inputs it takes.
    pub(crate) fn inputs(&self) -> Arity {
        let inputs =
            |operands: &[&Operand]| operands.iter().filter(|side| matches!(side, Operand::Input)).count();
        match self {
            Self::Full { .. }
            | Self::Zeros { .. }
            | Self::Ones { .. }
            | Self::Eye { .. }
            | Self::Arange { .. } => Arity::Exactly(0),
            Self::Linspace { .. } | Self::RandUniform { .. } | Self::RandNormal { .. } => Arity::Exactly(0),
            Self::FromBytes { .. } | Self::Fetch { .. } | Self::ReadFrame { .. } => Arity::Exactly(0),
            Self::Binary { left, right, .. } => Arity::Exactly(inputs(&[left, right])),
            Self::Where { yes, no } => Arity::Exactly(1 + inputs(&[yes, no])),
            Self::SetItem { value, .. } => Arity::Exactly(1 + inputs(&[value])),
            Self::Compress { .. } | Self::Matmul | Self::FilterRows => Arity::Exactly(2),
            Self::Concat { .. } | Self::Stack { .. } => Arity::Some,
            Self::Unary { .. }
            | Self::Cast { .. }
            | Self::Slice { .. }
            | Self::Take { .. }
            | Self::Split { .. }
            | Self::Transpose { .. }
            | Self::ExpandDims { .. }
            | Self::Reshape { .. }
            | Self::Rechunk { .. }
            | Self::Reduce { .. }
            | Self::Project { .. }
            | Self::Column { .. }
            | Self::Head { .. }
            | Self::GroupBy { .. }
            | Self::Shuffle { .. }
            | Self::Sleep { .. }
            | Self::Fail { .. }
            | Self::Alloc { .. } => Arity::Exactly(1),
        }
    }

    /// Whether the tileable brings bytes of its own.
    pub(crate) fn has_data(&self) -> bool {
        matches!(self, Self::FromBytes { .. } | Self::ReadFrame { .. })
    }
}

/// A number of inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arity {
    Exactly(usize),
    /// At least one.
    Some,
}
